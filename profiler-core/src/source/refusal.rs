//! Processes that were asked for a log and have none: what they leave in its place.
//!
//! Owns: finding it, and the sentence for each reason. Refuses: to guess about processes that could leave nothing.

use std::path::Path;

use memscope_wire::log::Refusal;

/// From what explains most to what explains least.
const BY_WEIGHT: [Refusal; 8] = [
    Refusal::DeepBind,
    Refusal::Room,
    Refusal::FileSize,
    Refusal::AddressSpace,
    Refusal::Denied,
    Refusal::Unread,
    Refusal::NotCalled,
    Refusal::Filter,
];

/// The refusals in a folder of logs, and how many processes each.
pub(super) fn in_folder(folder: &Path) -> Vec<(Refusal, u32)> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let left: Vec<Refusal> = entries.filter_map(|entry| Refusal::of_file(entry.file_name().to_str()?)).collect();
    let count = |refusal: Refusal| left.iter().filter(|one| **one == refusal).count() as u32;
    BY_WEIGHT.into_iter().map(|refusal| (refusal, count(refusal))).filter(|(_, count)| *count > 0).collect()
}

/// The refusal that explains most among these names.
pub(crate) fn gravest<'a>(names: impl Iterator<Item = &'a str> + Clone) -> Option<Refusal> {
    BY_WEIGHT.into_iter().find(|refusal| names.clone().any(|name| name == refusal.name()))
}

/// How many processes are missing in what others have recorded, and why; `None` where nothing is missing.
pub(super) fn missing((refusal, count): &(Refusal, u32)) -> Option<String> {
    let misses = !matches!(refusal, Refusal::Filter | Refusal::NotCalled);
    misses.then(|| format!("processes that could not be recorded: {count}; {}", sentence(*refusal)))
}

/// As the session's end tells them.
pub(crate) fn named(refusals: &[(Refusal, u32)]) -> Vec<(String, u32)> {
    refusals.iter().map(|(refusal, count)| (refusal.name().to_owned(), *count)).collect()
}

/// Why, and what to do.
pub(crate) fn sentence(refusal: Refusal) -> &'static str {
    match refusal {
        Refusal::Room => "there was no room for a log in shared memory; free some of /dev/shm",
        Refusal::FileSize => "the program's limit of the size of files leaves no room for a log; raise it (ulimit -f)",
        Refusal::AddressSpace => "the program's limit of address space leaves no room for a log; raise it (ulimit -v)",
        Refusal::Denied => {
            "the system denies the program a call that its log needs; allow mmap and fallocate in the filter of system calls \
             (seccomp) under which it is started, and have shared memory on a file system that has fallocate"
        }
        Refusal::Filter => {
            "the program filters its system calls (seccomp) and had no CUDA driver loaded before, so that nothing more could be \
             done in it"
        }
        Refusal::Unread => "memscope was gone when the process began",
        Refusal::NotCalled => "the program loaded the CUDA driver and called no function that memscope records",
        Refusal::DeepBind => {
            "a library that was opened with RTLD_DEEPBIND reaches the CUDA driver past memscope; set MEMSCOPE_DEEPBIND=0"
        }
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
        assert_eq!(gravest(["filter", "later", "notcalled"].into_iter()), Some(Refusal::NotCalled));
        assert_eq!(gravest(["later"].into_iter()), None);
    }

    #[test]
    fn every_refusal_has_its_weight_and_its_sentence() {
        for refusal in Refusal::ALL {
            assert!(BY_WEIGHT.contains(&refusal) && !sentence(refusal).is_empty(), "{refusal:?}");
        }
    }
}
