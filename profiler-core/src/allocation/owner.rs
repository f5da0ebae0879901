//! Whose code asked the driver: what that is called.
//!
//! Owns: the name of memory that a known library keeps for itself (`owner: XLA (xla_cuda_plugin.so)`), and the words for a function and
//! the file whose code has called it (`cuMemAlloc_v2 from train`). Refuses: categories.

use std::collections::HashMap;

use memscope_wire::owner;
use serde::{Deserialize, Serialize};

use super::names::Names;

/// Who asks the driver in a thread: numbers of names. Zeroes are nobody.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Owner {
    /// What memory is called that a known library keeps for itself; 0 is any other file's.
    pub name: u32,
    /// The file's own name.
    file: u32,
}

/// What was met of files and functions.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Owners {
    by_path: HashMap<u32, Owner>,
    #[serde(with = "super::written::pairs")]
    calls: HashMap<(u32, u32), u32>,
}

impl Owners {
    /// Who the file at the path with this number is.
    pub fn of(&mut self, path: u32, names: &mut Names) -> Owner {
        if let Some(known) = self.by_path.get(&path) {
            return *known;
        }
        let text = names.text(path);
        let text = text.strip_suffix(" (deleted)").unwrap_or(&text);
        let file = text.rsplit('/').next().unwrap_or_default();
        if file.is_empty() {
            return Owner::default();
        }
        let name = match owner::of_path(text.as_bytes()) {
            Some(owner) => names.number_of(&format!("owner: {} ({file})", owner.name)),
            None => 0,
        };
        let found = Owner { name, file: names.number_of(file) };
        if names.is_complete(path) {
            self.by_path.insert(path, found);
        }
        found
    }

    /// What a function is called when the owner's code has called it.
    pub fn call(&mut self, function: u32, owner: Owner, names: &mut Names) -> u32 {
        if function == 0 || owner.file == 0 {
            return function;
        }
        *self
            .calls
            .entry((function, owner.file))
            .or_insert_with(|| names.number_of(&format!("{} from {}", names.text(function), names.text(owner.file))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_known_library_names_its_memory_and_every_file_its_calls() {
        let (mut names, mut owners) = (Names::new(), Owners::default());
        let function = names.number_of("cuMemAlloc_v2");
        let mut said = |path: &str| {
            let path = names.number_of(path);
            let owner = owners.of(path, &mut names);
            let call = owners.call(function, owner, &mut names);
            [owner.name, call].map(|number| names.text(number))
        };
        for (path, name, call) in [
            ("/a/xla_cuda_plugin.so", "owner: XLA (xla_cuda_plugin.so)", "cuMemAlloc_v2 from xla_cuda_plugin.so"),
            (
                "/a/libggml-cuda.so (deleted)",
                "owner: llama.cpp (ggml) (libggml-cuda.so)",
                "cuMemAlloc_v2 from libggml-cuda.so",
            ),
            ("/home/me/train", "", "cuMemAlloc_v2 from train"),
            ("/home/me/train", "", "cuMemAlloc_v2 from train"),
            ("", "", "cuMemAlloc_v2"),
        ] {
            assert_eq!(said(path), [name, call], "{path}");
        }
        let nothing = owners.call(0, owners.by_path[&names.number_of("/home/me/train")], &mut names);
        assert_eq!(nothing, 0, "memory of no function");
    }
}
