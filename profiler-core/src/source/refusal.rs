//! Processes that were asked for a log and have none: what they leave in its place.
//!
//! Owns: finding it, and why and what to do of each. Refuses: to guess about processes that could leave nothing.

use std::path::Path;

use memscope_wire::log::{Mark, Refusal};

use crate::journal::entry::WithoutLogs;

/// From what explains most to what explains least.
const BY_WEIGHT: [Refusal; 6] =
    [Refusal::Room, Refusal::FileSize, Refusal::AddressSpace, Refusal::Denied, Refusal::Unread, Refusal::Filter];

/// The refusals in a folder of logs, and how many processes each.
pub(super) fn in_folder(folder: &Path) -> Vec<(Refusal, u32)> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let left: Vec<Refusal> = entries.filter_map(|entry| Refusal::of_file(entry.file_name().to_str()?)).collect();
    let count = |refusal: Refusal| left.iter().filter(|one| **one == refusal).count() as u32;
    BY_WEIGHT.into_iter().map(|refusal| (refusal, count(refusal))).filter(|(_, count)| *count > 0).collect()
}

/// What a folder without logs tells.
pub(super) fn marks_in(folder: &Path) -> WithoutLogs {
    let is_left = |mark: Mark| folder.join(mark.file()).exists();
    let links = Mark::STARTED_WITHOUT.iter().filter_map(|link| std::fs::read_link(folder.join(link)).ok());
    WithoutLogs {
        loaded: is_left(Mark::Loaded),
        deeply: is_left(Mark::BoundDeeply),
        started_without: links.map(|program| program.display().to_string()).collect(),
        ..WithoutLogs::default()
    }
}

/// The refusal that explains most among these names.
pub(crate) fn gravest<'a>(names: impl Iterator<Item = &'a str> + Clone) -> Option<Refusal> {
    BY_WEIGHT.into_iter().find(|refusal| names.clone().any(|name| name == refusal.name()))
}

/// How many processes are missing in what others have recorded, and why; `None` where nothing is missing.
pub(super) fn missing((refusal, count): &(Refusal, u32)) -> Option<String> {
    let (why, advice) = explained(*refusal);
    (*refusal != Refusal::Filter).then(|| format!("processes that could not be recorded: {count}; {why}; {advice}"))
}

/// As the session's end tells them.
pub(crate) fn named(refusals: &[(Refusal, u32)]) -> Vec<(String, u32)> {
    refusals.iter().map(|(refusal, count)| (refusal.name().to_owned(), *count)).collect()
}

/// Why, and what to do.
pub(crate) fn explained(refusal: Refusal) -> (&'static str, &'static str) {
    match refusal {
        Refusal::Room => ("there was no room for a log in shared memory", "free some of /dev/shm"),
        Refusal::FileSize => {
            ("the program's limit of the size of files leaves no room for a log", "raise it (ulimit -f)")
        }
        Refusal::AddressSpace => {
            ("the program's limit of address space leaves no room for a log", "raise it (ulimit -v)")
        }
        Refusal::Denied => (
            "the system denies the program a call that its log needs",
            "allow mmap and fallocate in the filter of system calls (seccomp) under which it is started, and have shared memory on a \
             file system that has fallocate",
        ),
        Refusal::Filter => (
            "the program filters its system calls (seccomp) and had no CUDA driver loaded before, so that nothing more could be \
             done in it",
            "have it load the driver (cuInit) before it begins to filter",
        ),
        Refusal::Unread => (
            "memscope was gone when the process began",
            "see why it ended, such as in the system's log (dmesg) for want of memory, and record again",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_are_counted_and_logs_are_not() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["1-2-filter.refused", "1-2-0.log", "3-4-room.refused", "5-6-room.refused", "simulator.state"] {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        assert_eq!(in_folder(folder.path()), [(Refusal::Room, 2), (Refusal::Filter, 1)]);
        assert_eq!(gravest(["filter", "later", "room"].into_iter()), Some(Refusal::Room));
        assert_eq!(gravest(["later"].into_iter()), None);
    }

    #[test]
    fn marks_are_read_by_their_names() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(marks_in(folder.path()), WithoutLogs::default());
        std::fs::write(folder.path().join("library.loaded"), "").unwrap();
        assert_eq!(marks_in(folder.path()), WithoutLogs { loaded: true, ..WithoutLogs::default() });
        std::fs::write(folder.path().join("bound.deeply"), "").unwrap();
        assert_eq!(marks_in(folder.path()), WithoutLogs { loaded: true, deeply: true, ..WithoutLogs::default() });
    }

    #[test]
    fn every_refusal_has_its_weight_and_its_sentence() {
        for refusal in Refusal::ALL {
            let (why, advice) = explained(refusal);
            assert!(BY_WEIGHT.contains(&refusal) && !why.is_empty() && !advice.is_empty(), "{refusal:?}");
        }
    }
}
