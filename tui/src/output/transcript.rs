//! An output that is fed from a transcript: of a session that runs, or of one that ended.
//!
//! Owns: the thread that reads the file. Refuses: to read the whole of a long transcript: older lines than the scroll-back keeps
//! would only be thrown away.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::{Arc, Weak};
use std::thread::sleep;
use std::time::Duration;

use super::{Output, Shared};

/// Bytes at the end of a transcript that are shown: plenty for all lines that the scroll-back keeps.
const SHOWN: u64 = 16 << 20;
/// Time between two looks at a file that grows.
const PACE: Duration = Duration::from_millis(100);

/// Starts the thread that feeds `output`.
pub(super) fn follow(path: &Path, output: &Output, grows: impl Fn() -> bool + Send + 'static) -> io::Result<()> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    let skipped = length.saturating_sub(SHOWN);
    file.seek(SeekFrom::Start(skipped))?;
    let output = Arc::downgrade(&output.shared);
    std::thread::Builder::new()
        .name("transcript".into())
        .spawn(move || feed(file, skipped > 0, &output, grows))
        .map(|_| ())
}

/// Feeds what is in the file and, while it grows, what comes. Ends when nobody looks any more.
fn feed(mut file: File, mut cut: bool, output: &Weak<Shared>, grows: impl Fn() -> bool) {
    let mut buffer = vec![0; 64 << 10];
    loop {
        // Asked before the read: what was written before the growth ended is then read for certain.
        let more = grows();
        let count = match file.read(&mut buffer) {
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(_) => return,
        };
        let Some(shared) = output.upgrade() else { return };
        if count == 0 {
            drop(shared);
            if !more {
                return;
            }
            sleep(PACE);
            continue;
        }
        let mut bytes = &buffer[..count];
        if cut {
            // Begin with a whole line; its colours may have been set before.
            let Some(end) = bytes.iter().position(|byte| *byte == b'\n') else { continue };
            bytes = &bytes[end + 1..];
            cut = false;
        }
        // Nobody can be answered.
        Output { shared }.feed(bytes);
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::Instant;

    use super::*;

    fn wait_for(output: &Output, text: &str) {
        let deadline = Instant::now() + Duration::from_secs(20);
        while !output.text().iter().any(|row| row == text) {
            assert!(Instant::now() < deadline, "{text} is not in {:?}", output.text());
            sleep(Duration::from_millis(5));
        }
    }

    #[test]
    fn a_transcript_that_grows_is_followed() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(b"one\r\n").unwrap();
        static GROWS: AtomicBool = AtomicBool::new(true);
        let output = Output::of_transcript(file.path(), 5, 20, || GROWS.load(Ordering::Relaxed)).unwrap();
        wait_for(&output, "one");
        file.write_all(b"two\r\n").unwrap();
        wait_for(&output, "two");
        file.write_all(b"three\r\n").unwrap();
        GROWS.store(false, Ordering::Relaxed);
        wait_for(&output, "three");
    }

    #[test]
    fn of_a_long_transcript_the_end_is_shown() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        let mut text = Vec::new();
        for number in 0..2_000_000 {
            write!(text, "line {number:>9}\r\n").unwrap();
        }
        assert!(text.len() as u64 > SHOWN);
        text.extend(b"the last\r\n");
        file.write_all(&text).unwrap();
        let output = Output::of_transcript(file.path(), 5, 40, || false).unwrap();
        wait_for(&output, "the last");
        output.to_begin();
        assert!(output.text().iter().all(|row| row.starts_with("line ") && row.len() == 14), "{:?}", output.text());
    }
}
