//! The rooms: which crate may depend on which of ours (the table in docs/ARCHITECTURE.md says the same); tests that docs/hazards.md names.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use serde_json::Value;

/// Room, and the rooms that it may depend on.
const ALLOWED: [(&str, &[&str]); 11] = [
    ("memscope-wire", &[]),
    ("memscope-client", &[]),
    ("memscope-interposer", &["memscope-wire"]),
    ("memscope-core", &["memscope-wire"]),
    ("memscope-tui", &["memscope-core"]),
    // Alone: what nothing else depends on, a server does not install.
    ("memscope-gui", &["memscope-core"]),
    ("memscope-kernels", &[]),
    ("memscope-simulator", &["memscope-kernels", "memscope-wire"]),
    ("memscope-runtime", &[]),
    ("memscope-samples", &["memscope-kernels", "memscope-client", "memscope-wire"]),
    ("memscope", &["memscope-core", "memscope-tui", "memscope-samples", "memscope-wire"]),
];

#[test]
fn every_room_depends_only_on_what_it_may() {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--no-deps", "--offline"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo metadata starts");
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("cargo metadata is JSON");
    let allowed: BTreeMap<_, BTreeSet<_>> =
        ALLOWED.iter().map(|(room, rooms)| (*room, rooms.iter().copied().collect())).collect();
    let mut seen = BTreeSet::new();
    for package in metadata["packages"].as_array().expect("packages") {
        let name = package["name"].as_str().expect("a name");
        let may = allowed.get(name).unwrap_or_else(|| panic!("{name} is no room of the table: add it there and here"));
        seen.insert(name.to_string());
        for dependency in package["dependencies"].as_array().expect("dependencies") {
            let (on, kind) = (dependency["name"].as_str().expect("a name"), &dependency["kind"]);
            if on.starts_with("memscope") && kind.is_null() {
                assert!(may.contains(on), "{name} depends on {on}, and the table does not allow it");
            }
        }
    }
    assert_eq!(seen.len(), allowed.len(), "a room of the table is missing from the workspace");
}

#[test]
fn every_test_that_the_hazards_name_is_there() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(root.join("docs/hazards.md")).expect("docs/hazards.md");
    let mut named = 0;
    for test in text.split('`').skip(1).step_by(2).filter(|words| words.contains("::")) {
        let [room, file, name] = test.split("::").collect::<Vec<_>>()[..] else { panic!("{test} is room::file::test") };
        let folder = if room == "interposer" { "interposer/tests/interposer" } else { "tests/e2e" };
        let path = root.join(folder).join(format!("{file}.rs"));
        let source = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        assert!(source.contains(&format!("#[test]\nfn {name}()")), "docs/hazards.md names {test}, which is not there");
        named += 1;
    }
    assert!(named > 50, "{named} tests are named");
}
