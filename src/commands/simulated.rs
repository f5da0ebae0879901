//! What the simulated CUDA libraries noted while the program ran: what they do not simulate, and what was read from the device.
//!
//! Owns: the notes that each process leaves in the session's `runtime` folder (simulator/runtime/src/calls.rs writes them).

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// Places of the program that are named; the others are counted.
const NAMED: usize = 5;

/// Reads of the device at one place of the program.
#[derive(Default)]
struct Reads {
    count: u64,
    /// Reads of bytes that the program itself had copied there.
    known: u64,
}

/// Sentences about a session's simulated CUDA libraries; none if the program used nothing of them that matters.
pub fn lines(session: &Path) -> Vec<String> {
    let (mut refused, mut reads) = (BTreeMap::<String, u64>::new(), BTreeMap::<String, Reads>::new());
    let entries = fs::read_dir(session.join("runtime")).into_iter().flatten().flatten();
    for text in entries.filter_map(|entry| fs::read_to_string(entry.path()).ok()) {
        for line in text.lines() {
            take(line, &mut refused, &mut reads);
        }
    }
    [told_of_refused(&refused), told_of_reads(reads)].concat()
}

/// `not-simulated NAME CALLS` or `read COUNT KNOWN BYTES WHERE`; anything else is passed over.
fn take(line: &str, refused: &mut BTreeMap<String, u64>, reads: &mut BTreeMap<String, Reads>) -> Option<()> {
    match line.split_once(' ')? {
        ("not-simulated", rest) => {
            let (name, calls) = rest.split_once(' ')?;
            *refused.entry(name.to_owned()).or_default() += calls.parse::<u64>().ok()?;
        }
        ("read", rest) => {
            let mut words = rest.splitn(4, ' ');
            let (count, known) = (words.next()?.parse::<u64>().ok()?, words.next()?.parse::<u64>().ok()?);
            let place = reads.entry(words.nth(1)?.to_owned()).or_default();
            place.count += count;
            place.known += known;
        }
        _ => {}
    }
    Some(())
}

fn told_of_refused(refused: &BTreeMap<String, u64>) -> Vec<String> {
    if refused.is_empty() {
        return Vec::new();
    }
    let names: Vec<String> = refused.iter().map(|(name, calls)| format!("{name} (called {calls} times)")).collect();
    vec![format!("not simulated, so that the program got errors: {}", names.join(", "))]
}

fn told_of_reads(reads: BTreeMap<String, Reads>) -> Vec<String> {
    let (count, known) = reads.values().fold((0, 0), |sum, place| (sum.0 + place.count, sum.1 + place.known));
    if count == known {
        return Vec::new();
    }
    let zeros = count - known;
    let mut told = vec![format!(
        "the program read the device {count} times, and {zeros} times got zeros for what a GPU would have computed:"
    )];
    let mut places: Vec<(String, Reads)> = reads.into_iter().filter(|(_, place)| place.count > place.known).collect();
    places.sort_by_key(|(_, place)| std::cmp::Reverse(place.count - place.known));
    for (place, reads) in places.iter().take(NAMED) {
        told.push(format!("  {place}: {} times", reads.count - reads.known));
    }
    if places.len() > NAMED {
        told.push(format!("  and {} other places", places.len() - NAMED));
    }
    told
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_of_several_processes_add_up() {
        let session = tempfile::tempdir().expect("a folder");
        fs::create_dir(session.path().join("runtime")).expect("a folder");
        let write =
            |name: &str, text: &str| fs::write(session.path().join("runtime").join(name), text).expect("written");
        write("10", "not-simulated cufftCreate 1\nread 4 1 32 /home/a b/train.py:31\n");
        write("11", "not-simulated cufftCreate 2\nread 2 2 8 /other.py:1\nread 1 0 8 /home/a b/train.py:31\nbroken\n");
        assert_eq!(
            lines(session.path()),
            [
                "not simulated, so that the program got errors: cufftCreate (called 3 times)",
                "the program read the device 7 times, and 4 times got zeros for what a GPU would have computed:",
                "  /home/a b/train.py:31: 4 times",
            ]
        );
    }

    #[test]
    fn a_session_without_notes_tells_nothing() {
        assert!(lines(Path::new("/nonexistent")).is_empty());
    }
}
