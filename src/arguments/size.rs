//! Sizes, and simulated devices by their name or size, as the command line says them.
//!
//! Owns: reading them, and saying what is wrong with them. Refuses: to know the devices (`memscope_wire::device`).

use memscope_wire::device::{self, Device};

/// Reads the name of a simulated device, or the size of one.
pub fn parse_device(value: &str) -> Result<Device, String> {
    if let Some(device) = device::find(value) {
        return Ok(*device);
    }
    let looks_like_a_size = value.starts_with(|first: char| first.is_ascii_digit() || matches!(first, '-' | '+' | '.'));
    if !looks_like_a_size {
        let advice = "`memscope devices` lists them, and a size such as 24GiB works too";
        return Err(format!("no simulated device has this name: {advice}"));
    }
    let bytes = parse_size(value)?;
    let (least, most) = device::CAPACITY_LIMITS;
    device::of_capacity(bytes)
        .ok_or_else(|| format!("a simulated device has between {} MiB and {} TiB", least >> 20, most >> 40))
}

/// Reads a size: an integer or decimal number with an optional unit (B, KB, MB, GB, TB by 1000; KiB, MiB, GiB, TiB or K, M,
/// G, T by 1024), in any case.
pub fn parse_size(value: &str) -> Result<u64, String> {
    let explain = || format!("`{value}` is no size: write 24GiB, 16GB or a number of bytes");
    let split = value.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(value.len());
    let (number, unit) = value.split_at(split);
    let scale: u64 = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "kb" => 1_000,
        "mb" => 1_000_000,
        "gb" => 1_000_000_000,
        "tb" => 1_000_000_000_000,
        "k" | "kib" => 1 << 10,
        "m" | "mib" => 1 << 20,
        "g" | "gib" => 1 << 30,
        "t" | "tib" => 1 << 40,
        _ => return Err(explain()),
    };
    if let Ok(whole) = number.parse::<u64>() {
        return whole.checked_mul(scale).ok_or_else(|| format!("`{value}` is larger than any device"));
    }
    let fraction: f64 = number.parse().map_err(|_| explain())?;
    let bytes = fraction * scale as f64;
    if bytes < u64::MAX as f64 { Ok(bytes as u64) } else { Err(format!("`{value}` is larger than any device")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        for (text, bytes) in [
            ("24GiB", Ok(24 << 30)),
            ("24g", Ok(24 << 30)),
            ("16GB", Ok(16_000_000_000)),
            ("1.5GiB", Ok(3 << 29)),
            ("12345678", Ok(12_345_678)),
            ("12 MiB", Ok(12 << 20)),
        ] {
            assert_eq!(parse_size(text), bytes, "{text}");
        }
        for text in ["", "GiB", "1..5G", "12parsecs", "99999999999999999999", "20000000TiB", "1e9"] {
            assert!(parse_size(text).is_err(), "{text}");
        }
    }

    #[test]
    fn devices_by_name_and_by_size() {
        assert_eq!(parse_device("h100-80gb").unwrap().key, "h100-80gb");
        assert_eq!(parse_device("2GiB").unwrap().capacity, 2 << 30);
        for text in ["h100", "0", "-5GiB", "1KiB", "1000TiB", "nothing"] {
            assert!(parse_device(text).is_err(), "{text}");
        }
    }
}
