//! An output that is fed from a transcript: of a session that runs, or of one that ended.
//!
//! Owns: the thread that reads the file. Refuses: to read the whole of a long transcript: older lines than the scroll-back keeps
//! would only be thrown away.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::thread::sleep;
use std::time::Duration;

use super::{Output, Shared};

/// Bytes at the end of a transcript that are shown: plenty for all lines that the scroll-back keeps.
const SHOWN: u64 = 16 << 20;
/// Time between two looks at a file that grows.
const PACE: Duration = Duration::from_millis(100);
/// The same once it does not grow any more: only another width makes work.
const IDLE_PACE: Duration = Duration::from_millis(250);

/// Starts the thread that feeds `output`.
pub(super) fn follow(path: &Path, output: &Output, grows: impl Fn() -> bool + Send + 'static) -> io::Result<()> {
    let file = File::open(path)?;
    let output = Arc::downgrade(&output.shared);
    std::thread::Builder::new().name("transcript".into()).spawn(move || feed(file, &output, grows)).map(|_| ())
}

/// Goes to the begin of what is shown. True when that is not the begin of the file, and the first line is a piece of one.
fn begin(file: &mut File) -> io::Result<bool> {
    let skipped = file.metadata()?.len().saturating_sub(SHOWN);
    file.seek(SeekFrom::Start(skipped))?;
    Ok(skipped > 0)
}

/// Feeds what is in the file and, while it grows, what comes; and all of it again, when the screen has another width. Ends when
/// nobody looks any more, or with the first error: what is shown by then stays.
fn feed(mut file: File, output: &Weak<Shared>, grows: impl Fn() -> bool) {
    let Ok(mut cut) = begin(&mut file) else { return };
    let mut buffer = vec![0; 64 << 10];
    let mut more = true;
    loop {
        // Asked before the read: what was written before the growth ended is then read for certain.
        more = more && grows();
        let count = match file.read(&mut buffer) {
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(_) => return,
        };
        let Some(shared) = output.upgrade() else { return };
        if shared.anew.as_ref().is_some_and(|anew| anew.swap(false, Ordering::Relaxed)) {
            let Ok(again) = begin(&mut file) else { return };
            // What was shown between the change and this moment must go too.
            Output { shared }.change(|emulator| {
                let (rows, columns) = emulator.size();
                emulator.begin_anew(rows, columns);
            });
            cut = again;
            more = true;
            continue;
        }
        if count == 0 {
            drop(shared);
            sleep(if more { PACE } else { IDLE_PACE });
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
    use std::sync::atomic::AtomicBool;
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

    #[test]
    fn lines_are_broken_for_the_width() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(b"0123456789\r\nend\r\n").unwrap();
        let output = Output::of_transcript(file.path(), 5, 6, || false).unwrap();
        wait_for(&output, "012345");
        wait_for(&output, "end");
        output.resize(5, 20);
        wait_for(&output, "0123456789");
        wait_for(&output, "end");
        output.resize(5, 4);
        wait_for(&output, "89");
    }
}
