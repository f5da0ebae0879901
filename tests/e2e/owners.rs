//! Memory that libraries take for themselves: named by the library that called the driver, and of no category.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

use crate::memscope::{Place, number, stderr, stdout};

const MIB: u64 = 1 << 20;

/// A library of this name, made of tests/programs/owner_library.c.
fn library(place: &Place, path: &str) -> PathBuf {
    let path = place.path(path);
    std::fs::create_dir_all(path.parent().expect("a folder")).expect("made");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/programs/owner_library.c");
    let mut compiler = Command::new("cc");
    compiler
        .args(["-O1", "-shared", "-fPIC", "-Wall", "-Wextra", "-Wno-pedantic", "-o"])
        .arg(&path)
        .arg(source)
        .arg("-ldl");
    assert!(compiler.status().expect("cc starts").success(), "cc could not compile {source}");
    path
}

#[test]
fn memory_is_named_by_the_library_that_asked_for_it() {
    let place = Place::new();
    let program = place.compile_linked("owners");
    let files = [
        "jax_plugins/xla_cuda_plugin.so",
        "cupy_backends/cuda/api/runtime.so",
        "libnccl.so.2",
        "libordinary.so",
        "libcudnn.so.9",
    ];
    let libraries: Vec<String> = files.iter().map(|file| library(&place, file).display().to_string()).collect();
    let (output, report) = place.record(&format!("--device 4GiB -- {} {}", program.display(), libraries.join(" ")));
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));

    // 2, 4, 8, 16 and 32 MiB through the libraries, 6 of the program itself, and 2 that were created.
    assert_eq!(number(&report, "/peak/bytes"), (62 + 6 + 2) * MIB);
    assert_eq!(number(&report, "/peak/by_category/unknown"), (30 + 6 + 2) * MIB);
    let groups: BTreeMap<&str, (u64, u64)> = report["peak"]["top_groups"]
        .as_array()
        .unwrap_or_else(|| panic!("groups: {report:#}"))
        .iter()
        .map(|group| {
            (group["name"].as_str().expect("a name"), (number(group, "/bytes"), number(group, "/allocations")))
        })
        .collect();
    for (position, owner) in ["XLA", "CuPy", "NCCL"].iter().enumerate() {
        let name = format!("owner: {owner}");
        assert_eq!(groups.get(name.as_str()), Some(&(MIB << (position + 1), 1)), "{name}: {groups:?}");
    }
    assert_eq!(groups.get("tagged"), Some(&(32 * MIB, 1)), "the program's own word wins: {groups:?}");
    assert_eq!(groups.get("owner: cuDNN"), Some(&(2 * MIB, 1)), "what it created: {groups:?}");
    // What the program took, and what a library took that is not known, has no owner.
    let others = groups.iter().filter(|(name, _)| !name.starts_with("owner: ") && **name != "tagged");
    let others = others.fold((0, 0), |sum, (_, group)| (sum.0 + group.0, sum.1 + group.1));
    assert_eq!(others, ((16 + 6) * MIB, 7), "{groups:?}");

    let text = stdout(&place.run("report p.mscope"));
    assert!(text.contains("owner: NCCL"), "{text}");
    let again: Value =
        serde_json::from_slice(&place.run("report p.mscope --format json --at end").stdout).expect("JSON");
    assert!(again["at"].to_string().contains("owner: XLA"), "in the profile too: {again:#}");
}
