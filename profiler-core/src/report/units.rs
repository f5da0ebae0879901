//! Numbers for people: binary units, digits in groups, seconds, shares.
//!
//! Owns: rounding. Refuses: to be read back.

/// Bytes in the largest binary unit that leaves at least 1, three significant digits or so: `1.50 GiB`.
pub fn bytes(value: u64) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    if value < 1024 {
        return format!("{value} B");
    }
    let mut scaled = value as f64 / 1024.0;
    let mut unit = 0;
    // 1023.995 would be rounded to 1024.00.
    while scaled >= 1023.995 && unit + 1 < UNITS.len() {
        scaled /= 1024.0;
        unit += 1;
    }
    let decimals = if scaled < 100.0 { 2 } else { 1 };
    format!("{scaled:.decimals$} {}", UNITS[unit])
}

/// The same with a minus sign where it is negative.
pub fn signed_bytes(value: i64) -> String {
    format!("{}{}", if value < 0 { "-" } else { "" }, bytes(value.unsigned_abs()))
}

/// Digits in groups of three: `1,610,612,736`.
pub fn grouped(value: u64) -> String {
    let digits = value.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A step by its number, and which time that came, from the second on: `3 (2nd time)`.
pub fn step(number: u64, turn: u32) -> String {
    let ending = match (turn % 10, turn % 100) {
        (_, 11..=13) => "th",
        (1, _) => "st",
        (2, _) => "nd",
        (3, _) => "rd",
        _ => "th",
    };
    if turn < 2 { number.to_string() } else { format!("{number} ({turn}{ending} time)") }
}

/// A word of a command as a shell reads it.
pub fn shell_word(text: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "/._-+,:@%=".contains(c);
    if text.chars().all(plain) && !text.is_empty() {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

/// What was simulated, as a session names it (a device's name or its bytes, `*` and how many), for people: `2.00 GiB x 4`.
pub fn simulated(device: &str) -> String {
    let (one, count) = device.split_once('*').map_or((device, None), |(one, count)| (one, Some(count)));
    let one = one.parse().map_or_else(|_| one.to_owned(), bytes);
    count.map_or_else(|| one.clone(), |count| format!("{one} x {count}"))
}

/// `1 free`, `1,000 frees`.
pub fn count(number: u64, one: &str, many: &str) -> String {
    format!("{} {}", grouped(number), if number == 1 { one } else { many })
}

/// How many times as much something is: `1.25 times`, `2.0 times`, `128 times`. `was` is not 0.
pub fn times(now: u64, was: u64) -> String {
    let times = now as f64 / was as f64;
    match times {
        times if times >= 99.5 => format!("{} times", grouped(times.round() as u64)),
        times if times >= 1.95 => format!("{times:.1} times"),
        times => format!("{times:.2} times"),
    }
}

/// `1.50 GiB (1,610,612,736 B)`.
pub fn exact(value: u64) -> String {
    if value < 1024 { bytes(value) } else { format!("{} ({} B)", bytes(value), grouped(value)) }
}

/// Seconds with as many decimals as help.
pub fn time(seconds: f64) -> String {
    if seconds < 10.0 { format!("{seconds:.3} s") } else { format!("{seconds:.1} s") }
}

/// A share in percent; a whole of 0 has none.
pub fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 * 100.0 / whole as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_told_apart_by_the_time_that_their_number_came() {
        for (turn, name) in [(0, "7"), (1, "7"), (2, "7 (2nd time)"), (3, "7 (3rd time)"), (4, "7 (4th time)")] {
            assert_eq!(step(7, turn), name);
        }
        for (turn, name) in [(11, "0 (11th time)"), (21, "0 (21st time)"), (112, "0 (112th time)")] {
            assert_eq!(step(0, turn), name);
        }
    }

    #[test]
    fn one_thing_is_in_the_singular() {
        let frees = [0, 1, 2, 1000].map(|number| count(number, "free", "frees"));
        assert_eq!(frees, ["0 frees", "1 free", "2 frees", "1,000 frees"]);
    }

    #[test]
    fn a_simulated_size_is_read_at_a_glance() {
        for (device, text) in [
            ("h100-80gb", "h100-80gb"),
            ("h100-80gb*8", "h100-80gb x 8"),
            ("2147483648", "2.00 GiB"),
            ("3221225472*2", "3.00 GiB x 2"),
        ] {
            assert_eq!(simulated(device), text);
        }
    }

    #[test]
    fn bytes_are_read_at_a_glance() {
        for (value, text) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1.00 KiB"),
            (1_048_575, "1.00 MiB"),
            (497_759_232, "474.7 MiB"),
            (3 << 29, "1.50 GiB"),
            (u64::MAX, "16.00 EiB"),
        ] {
            assert_eq!(bytes(value), text);
        }
        assert_eq!(signed_bytes(-2048), "-2.00 KiB");
        assert_eq!(exact(1_610_612_736), "1.50 GiB (1,610,612,736 B)");
        assert_eq!(grouped(1_000), "1,000");
        assert_eq!(grouped(999), "999");
    }
}
