//! Who a process is: pid, start time and program image.
//!
//! Owns: reading them from the kernel, and the question whether a process still runs.

use std::fs;

/// A process, distinguishable from a later one with the same pid and from what it was before exec.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Identity {
    /// Process id.
    pub pid: u32,
    /// Start time in clock ticks since boot.
    pub start_time: u64,
    /// A number that exec changes.
    pub image: u64,
}

impl Identity {
    /// The calling process.
    pub fn of_this_process() -> Identity {
        let pid = std::process::id();
        Identity { pid, start_time: stat(pid).map_or(0, |stat| stat.start_time), image: image() }
    }
}

/// True while the process with this pid and start time runs. A zombie has given its memory back already, unless only
/// its first thread ended.
pub fn is_running(pid: u32, start_time: u64) -> bool {
    match stat(pid) {
        None => false,
        Some(stat) if stat.start_time != start_time => false,
        Some(stat) if matches!(stat.state, b'Z' | b'X' | b'x') => {
            fs::read_dir(format!("/proc/{pid}/task")).is_ok_and(|tasks| tasks.count() > 1)
        }
        Some(_) => true,
    }
}

struct Stat {
    state: u8,
    start_time: u64,
}

fn stat(pid: u32) -> Option<Stat> {
    let text = fs::read(format!("/proc/{pid}/stat")).ok()?;
    parse(&text)
}

/// Fields 3 and 22 of /proc/PID/stat. The name in field 2 may hold spaces and brackets: fields are counted after its end.
fn parse(text: &[u8]) -> Option<Stat> {
    let end = text.iter().rposition(|&byte| byte == b')')?;
    let rest = std::str::from_utf8(text.get(end + 1..)?).ok()?;
    let mut fields = rest.split_whitespace();
    let state = fields.next()?.bytes().next()?;
    Some(Stat { state, start_time: fields.nth(18)?.parse().ok()? })
}

/// A hash of the 16 random bytes that the kernel gives to each program image. Hashed, because the same bytes seed the
/// stack protector.
fn image() -> u64 {
    // SAFETY: getauxval has no preconditions.
    let address = unsafe { libc::getauxval(libc::AT_RANDOM) } as *const [u8; 16];
    if address.is_null() {
        return 0;
    }
    // SAFETY: AT_RANDOM is the address of 16 bytes that live as long as the process.
    let bytes = unsafe { *address };
    memscope_wire::TextId::of(&bytes).0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_brackets_does_not_shift_fields() {
        let text = b"42 (a) b (c) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 777 20 21";
        let stat = parse(text).unwrap();
        assert_eq!((stat.state, stat.start_time), (b'S', 777));
    }

    #[test]
    fn this_process_runs_and_its_reincarnation_does_not() {
        let us = Identity::of_this_process();
        assert!(us.start_time > 0);
        assert!(is_running(us.pid, us.start_time));
        assert!(!is_running(us.pid, us.start_time + 1));
        assert!(!is_running(crate::state::FOREIGN_PID, 0));
    }
}
