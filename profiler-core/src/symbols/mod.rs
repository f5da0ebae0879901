//! From an address in a file of machine code to the functions and lines of its source.
//!
//! Owns: the files that were opened, what of them was found, and the bounds of both. Refuses: files whose content is not the one
//! that was recorded, and to take longer than [`Symbols::MOST_TIME`] in all: what is not found is told as the file and the address.

mod file;
mod name;

use std::collections::HashMap;
use std::time::{Duration, Instant};

use memscope_wire::module;

use file::File;

/// One place in the source, or as near to it as can be said.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Place {
    /// Path of the source; where that is not known, of the file of machine code.
    pub file: String,
    /// Line in the source, 0 where it is not known.
    pub line: u32,
    /// Name of the function as people write it; `+0x12ab`, an address in the file, where it is not known.
    pub function: String,
}

/// Finds places. Files stay open, and mapped, as long as it lives.
#[derive(Default)]
pub struct Symbols {
    /// By the name of the module in logs; `None` for what cannot be read.
    files: HashMap<String, Option<File>>,
    spent: Duration,
}

impl std::fmt::Debug for Symbols {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Symbols").field("files", &self.files.len()).field("spent", &self.spent).finish()
    }
}

impl Symbols {
    /// Most files that are opened.
    const MOST_FILES: usize = 1024;
    /// Most time for all that is looked up.
    pub const MOST_TIME: Duration = Duration::from_secs(60);

    /// The places of an address of a module, the outermost first: more than one where functions were built into others. Never empty.
    pub fn places(&mut self, module: &str, address: u64) -> Vec<Place> {
        let begin = Instant::now();
        let found = if self.spent < Self::MOST_TIME { self.find(module, address) } else { Vec::new() };
        self.spent += begin.elapsed();
        if found.is_empty() { vec![unknown(module, address)] } else { found }
    }

    fn find(&mut self, module: &str, address: u64) -> Vec<Place> {
        if !self.files.contains_key(module) {
            if self.files.len() >= Self::MOST_FILES {
                return Vec::new();
            }
            self.files.insert(module.to_owned(), File::open(module));
        }
        let file = self.files.get(module).and_then(Option::as_ref);
        file.map(|file| file.places(module::path(module), address)).unwrap_or_default()
    }
}

/// The place of an address of which no more is known.
pub(crate) fn unknown(module: &str, address: u64) -> Place {
    Place { file: module::path(module).to_owned(), line: 0, function: format!("+{address:#x}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_there_is_told_as_file_and_address() {
        let mut symbols = Symbols::default();
        for module in ["/nowhere/libx.so build-id=00", "/nowhere/libx.so", "/proc/self/mem size=1 mtime=2.000000003"] {
            let places = symbols.places(module, 0x12ab);
            let file = module::path(module).to_owned();
            assert_eq!(places, [Place { file, line: 0, function: "+0x12ab".into() }]);
        }
    }

    #[test]
    fn a_function_of_this_program_is_found_by_its_address() {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let exe = std::env::current_exe().unwrap();
        let base = maps.lines().find(|line| line.ends_with(exe.to_str().unwrap())).unwrap();
        let base = u64::from_str_radix(base.split('-').next().unwrap(), 16).unwrap();
        let address = a_function_of_this_program_is_found_by_its_address as *const () as u64 - base;
        let metadata = std::fs::metadata(&exe).unwrap();
        use std::os::unix::fs::MetadataExt;
        let (size, seconds, nanoseconds) = (metadata.size(), metadata.mtime(), metadata.mtime_nsec());
        let named = |size: u64| format!("{} size={size} mtime={seconds}.{nanoseconds:09}", exe.display());
        let places = Symbols::default().places(&named(size), address);
        let innermost = places.last().unwrap();
        assert!(innermost.function.ends_with("a_function_of_this_program_is_found_by_its_address"), "{places:?}");
        // Another file at that path.
        let other = Symbols::default().places(&named(size + 1), address);
        assert_eq!(other, [unknown(&named(size + 1), address)]);
    }
}
