//! Of how much use of a device the user wants to be told: `90%,20GiB`, or `off`.
//!
//! Owns: reading and writing it. Refuses: to act on it (`crate::alert`).

use std::fmt;
use std::str::FromStr;

use memscope_core::journal::entry::Threshold;

use super::size::parse_size;

/// Of how much use of a device the user wants to be told; of none in particular by default.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Alerts(pub Vec<Threshold>);

impl FromStr for Alerts {
    type Err = String;

    fn from_str(text: &str) -> Result<Alerts, String> {
        match text {
            "off" => Ok(Alerts::default()),
            _ if text.split(',').any(|part| part.trim() == "off") => Err(format!(
                "`{text}` has off among thresholds, and off is for none: write off alone, or the thresholds without it"
            )),
            _ if text.split(',').any(|part| part.trim().is_empty()) => Err(format!(
                "`{text}` lacks a threshold: write a share such as 90%, a size such as 20GiB, several joined by commas, or off"
            )),
            _ => text.split(',').map(|part| parse_threshold(part.trim())).collect::<Result<_, _>>().map(Alerts),
        }
    }
}

/// As the flag and the configuration file spell it.
impl fmt::Display for Alerts {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return formatter.write_str("off");
        }
        for (position, threshold) in self.0.iter().enumerate() {
            let comma = if position == 0 { "" } else { "," };
            match *threshold {
                Threshold::Share(share) => write!(formatter, "{comma}{}%", f64::from(share) / 10.0)?,
                Threshold::Bytes(bytes) => write!(formatter, "{comma}{bytes}")?,
            }
        }
        Ok(())
    }
}

/// Reads a share of a device's memory, with at most one decimal, or a size.
fn parse_threshold(value: &str) -> Result<Threshold, String> {
    let Some(share) = value.strip_suffix('%') else {
        let neither = || format!("`{value}` is neither a share such as 90% nor a size such as 20GiB");
        let bytes = parse_size(value).map_err(|_| neither())?;
        let bare = value.chars().all(|char| char.is_ascii_digit() || char == '.');
        // Nobody waits for the first few bytes of a device.
        return match bytes {
            0 => {
                Err(format!("`{value}` is passed by any use: write a share such as 90%, a size such as 20GiB, or off"))
            }
            _ if bare && bytes < 1 << 20 => {
                Err(format!("`{value}` would be {bytes} bytes: write {value}% for a share, or a size such as 20GiB"))
            }
            _ => Ok(Threshold::Bytes(bytes)),
        };
    };
    let thousandths = share.trim().parse::<f64>().map(|share| share * 10.0).ok();
    let whole = thousandths.filter(|share| (1.0..=1000.0).contains(share) && (share - share.round()).abs() < 1e-6);
    let whole = whole.ok_or_else(|| {
        format!("`{value}` is no share from 0.1% to 100% in steps of 0.1%: write 90% or 92.5%, or a size such as 20GiB")
    })?;
    Ok(Threshold::Share(whole.round() as u16))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thresholds_are_shares_or_sizes() {
        for (text, threshold) in [
            ("90%", Threshold::Share(900)),
            ("92.5 %", Threshold::Share(925)),
            ("100%", Threshold::Share(1000)),
            ("20GiB", Threshold::Bytes(20 << 30)),
        ] {
            assert_eq!(parse_threshold(text), Ok(threshold), "{text}");
        }
        for text in ["%", "0%", "101%", "90.25%", "full", "nan%", "90", "0", "0GiB", "off"] {
            assert!(parse_threshold(text).is_err(), "{text}");
            assert!(format!("90%,{text}").parse::<Alerts>().is_err(), "{text}");
        }
        for (text, words) in [
            ("off,90%", "off alone, or the thresholds without it"),
            ("90%, off", "off alone, or the thresholds without it"),
            ("90%,", "`90%,` lacks a threshold"),
            ("", "`` lacks a threshold"),
            ("full", "`full` is neither a share such as 90% nor a size such as 20GiB"),
            ("90%,OFF", "`OFF` is neither"),
            ("90", "write 90% for a share"),
            ("0GiB", "`0GiB` is passed by any use"),
            ("101%", "`101%` is no share from 0.1% to 100%"),
        ] {
            let said = text.parse::<Alerts>().expect_err(text);
            assert!(said.contains(words), "{text}: {said}");
        }
        assert_eq!("90%, 92.5%".parse(), Ok(Alerts(vec![Threshold::Share(900), Threshold::Share(925)])));
        let several = Alerts(vec![Threshold::Share(900), Threshold::Share(925), Threshold::Bytes(20 << 30)]);
        assert_eq!("90%,92.5%,20GiB".parse(), Ok(several.clone()));
        for alerts in [several, Alerts::default()] {
            assert_eq!(alerts.to_string().parse(), Ok(alerts.clone()), "{alerts}");
        }
        assert_eq!("off".parse(), Ok(Alerts::default()));
    }
}
