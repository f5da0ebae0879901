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
            _ => text.split(',').map(parse_threshold).collect::<Result<_, _>>().map(Alerts),
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
        let bytes = parse_size(value)?;
        let bare = value.chars().all(|char| char.is_ascii_digit() || char == '.');
        // Nobody waits for the first few bytes of a device.
        if bytes == 0 || bare && bytes < 1 << 20 {
            return Err(format!(
                "`{value}` would be {bytes} bytes: write {value}% for a share, or a size such as 20GiB"
            ));
        }
        return Ok(Threshold::Bytes(bytes));
    };
    let thousandths = share.trim().parse::<f64>().map(|share| share * 10.0).ok();
    let whole = thousandths.filter(|share| (1.0..=1000.0).contains(share) && (share - share.round()).abs() < 1e-6);
    let whole = whole.ok_or_else(|| format!("`{value}` is no share: write 90% or 92.5%, or a size such as 20GiB"))?;
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
        let several = Alerts(vec![Threshold::Share(900), Threshold::Share(925), Threshold::Bytes(20 << 30)]);
        assert_eq!("90%,92.5%,20GiB".parse(), Ok(several.clone()));
        for alerts in [several, Alerts::default()] {
            assert_eq!(alerts.to_string().parse(), Ok(alerts.clone()), "{alerts}");
        }
        assert_eq!("off".parse(), Ok(Alerts::default()));
    }
}
