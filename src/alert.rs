//! Says at once, while the program still runs, that it has run out of memory, or that a device is fuller than the user wanted
//! to be told of: what asked, what was free, what holds most.
//!
//! Owns: a thread that reads the session's journal when there is something to say, and not before; and how often the same is
//! said. Refuses: figures and words, which are those of the report; and to hold up the recording.

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use memscope_core::explorer::{Alertness, Explorer, Limits};
use memscope_core::findings::{Detail, Finding};
use memscope_core::journal::entry::{Entry, Threshold};
use memscope_core::recover::{self, Entries};
use memscope_core::report;
use memscope_core::session::SessionFolder;

use crate::output::{say, style, write_own};

/// How long more may come after a refusal: the program's line, and the word of a framework that decides about it.
const LINE: Duration = Duration::from_millis(120);
/// How often a process's errors are told in full. Of more, only how many there were.
const IN_FULL: u64 = 3;
/// How long memscope goes on looking for what happened when the program has ended: its report comes then.
const LATE: Duration = Duration::from_secs(1);
/// Entries that are taken in between two looks.
const SOME: usize = 256;

/// What is kept of the session: an error is told soon after it happened.
const LIMITS: Limits =
    Limits { dead_allocations: 1 << 18, steps: 1 << 10, markers: 1 << 14, samples: 1 << 10, pace: 0 };

/// The thread that tells.
pub struct Alert {
    thread: Option<JoinHandle<()>>,
    ended: Arc<AtomicBool>,
}

/// The ear of an [`Alert`], for the recorder's thread.
pub struct Alarm {
    alertness: Alertness,
    bell: Option<Sender<()>>,
}

impl Alert {
    /// Waits for something to tell about a session; when the user wants quiet, for thresholds alone, which were asked for by name.
    pub fn start(folder: &SessionFolder, quiet: bool, thresholds: &[Threshold]) -> (Alert, Alarm) {
        let (bell, alarms) = channel();
        let ended = Arc::new(AtomicBool::new(false));
        let told = BTreeMap::new();
        let teller = Teller { folder: folder.clone(), ended: Arc::clone(&ended), reading: None, told, quiet };
        let work = move || teller.run(&alarms);
        let needed = !quiet || !thresholds.is_empty();
        let thread = needed.then(|| std::thread::Builder::new().name("alert".into()).spawn(work).ok()).flatten();
        let bell = thread.is_some().then_some(bell);
        (Alert { thread, ended }, Alarm { alertness: Alertness::of(thresholds.to_vec()), bell })
    }

    /// The program has ended, and the recording too: what was not told yet is told now. The [`Alarm`] must be gone.
    pub fn finish(mut self) {
        self.ended.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join(); // a panic has said what it was
        }
    }
}

impl Alarm {
    /// Hears what was recorded.
    pub fn hear(&mut self, entry: &Entry) {
        if let Some(bell) = &self.bell
            && self.alertness.is_alarmed(entry)
        {
            let _ = bell.send(()); // a thread that is gone tells nothing more
        }
    }
}

/// The thread's own state.
struct Teller {
    folder: SessionFolder,
    ended: Arc<AtomicBool>,
    reading: Option<(Entries, Explorer)>,
    /// By process and device: how many errors there were.
    told: BTreeMap<(u32, String), u64>,
    quiet: bool,
}

impl Teller {
    fn run(mut self, alarms: &Receiver<()>) {
        while alarms.recv().is_ok() {
            while alarms.try_recv().is_ok() {}
            // One of which no more comes is told as it is.
            self.look(true);
            let until = Instant::now() + LINE;
            while alarms.recv_timeout(until.saturating_duration_since(Instant::now())).is_ok() {
                self.look(true);
            }
            self.look(false);
        }
    }

    /// Reads what there is, and tells what is new.
    fn look(&mut self, patient: bool) {
        if self.reading.is_none() {
            // What is wrong with the journal is said when the profile is made of it.
            self.reading = recover::entries(&self.folder).ok().map(|entries| (entries, Explorer::new(LIMITS)));
        }
        let Some((mut entries, mut explorer)) = self.reading.take() else { return };
        let mut ended = None;
        loop {
            let more = take_in(&mut entries, &mut explorer);
            if !self.quiet {
                explorer.out_of_memory(patient).iter().for_each(|finding| self.tell(finding));
            }
            explorer.thresholds_passed().iter().for_each(tell_passed);
            if self.ended.load(Ordering::Relaxed) && ended.get_or_insert_with(Instant::now).elapsed() > LATE {
                break;
            }
            if !more {
                break;
            }
        }
        self.reading = Some((entries, explorer));
    }

    fn tell(&mut self, finding: &Finding) {
        let Detail::Oom(oom) = &finding.detail else { return };
        let times = self.told.entry((oom.pid, oom.device.clone())).or_default();
        *times += 1;
        match *times {
            times if times <= IN_FULL => {
                let style = style(std::io::stderr().is_terminal());
                let which = if times == 1 { String::new() } else { format!(", for the {}", ordinal(times)) };
                let title = format!("memscope: process {} is out of memory{which}:\n", oom.pid);
                write_own(&format!("{title}{}", report::finding(finding, style)));
            }
            times if is_power_of_ten(times) => {
                say(&format!("process {} has been out of memory {times} times", oom.pid));
            }
            _ => {}
        }
    }
}

/// Says that a threshold was passed: which time it was, the finding says.
fn tell_passed(finding: &Finding) {
    let Detail::ThresholdPassed(passed) = &finding.detail else { return };
    match passed.times {
        times if times <= IN_FULL => {
            let style = style(std::io::stderr().is_terminal());
            let which = if times == 1 { String::new() } else { format!(" for the {}", ordinal(times)) };
            let title = format!("memscope: {} is filled to more than {}{which}:\n", passed.device, passed.threshold);
            write_own(&format!("{title}{}", report::finding(finding, style)));
        }
        times if is_power_of_ten(times) => {
            say(&format!("{} was filled to more than {} {times} times", passed.device, passed.threshold));
        }
        _ => {}
    }
}

/// Takes in some entries; true when there are more. The end of the session is left to the report.
fn take_in(entries: &mut Entries, explorer: &mut Explorer) -> bool {
    for _ in 0..SOME {
        match entries.next() {
            None | Some(Ok(Entry::End(_)) | Err(memscope_core::Error::Io { .. })) => return false,
            Some(Ok(entry)) => explorer.apply(&entry),
            Some(Err(_)) => {}
        }
    }
    true
}

fn ordinal(times: u64) -> String {
    match times {
        2 => "second time".to_owned(),
        3 => "third time".to_owned(),
        times => format!("{times}th time"),
    }
}

fn is_power_of_ten(number: u64) -> bool {
    number >= 10 && 10u64.pow(number.ilog10()) == number
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_many_errors_few_are_told() {
        let told: Vec<u64> = (1..=10_001).filter(|times| *times <= IN_FULL || is_power_of_ten(*times)).collect();
        assert_eq!(told, [1, 2, 3, 10, 100, 1_000, 10_000]);
    }
}
