//! The simulated CUDA libraries themselves.

use std::collections::BTreeSet;
use std::path::Path;

use object::{Object, ObjectSymbol};

use crate::memscope::Place;

/// Every name that the tested PyTorches import is in the library that memscope installs, and nothing of Rust is.
#[test]
fn every_imported_name_is_exported_and_no_other_kind() {
    let place = Place::new();
    let library = place.simulator().with_file_name("runtime").join("libmemscope_runtime.so");
    let bytes = std::fs::read(&library).expect("memscope has written its libraries");
    let file = object::File::parse(&*bytes).expect("an ELF file");
    let exported: BTreeSet<&str> = file
        .dynamic_symbols()
        .filter(|symbol| symbol.is_definition())
        .map(|symbol| symbol.name().expect("a name"))
        .collect();
    let imports = Path::new(env!("CARGO_MANIFEST_DIR")).join("simulator/runtime/imports");
    let mut names = 0;
    for entry in std::fs::read_dir(imports).expect("the lists of imports") {
        let text = std::fs::read_to_string(entry.expect("an entry").path()).expect("a list");
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let name = line.split_whitespace().nth(1).expect("library and name");
            assert!(exported.contains(name), "{name} is imported and not there");
            names += 1;
        }
    }
    assert!(names > 700, "only {names} names are listed");
    const PUBLIC: [&str; 8] = ["cu", "__cuda", "nccl", "nvrtc", "nvshmem", "nvtx", "nvJitLink", "rust_eh_personality"];
    for name in exported {
        assert!(PUBLIC.iter().any(|beginning| name.starts_with(beginning)), "{name} is exported");
        assert!(!name.contains("ExportTable"), "{name} is of no documented interface");
    }
}
