//! Whose code asked for memory: a library that is known names it, and any other file, the program's too, is told. Of no category.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::memscope::{Place, number, stderr, stdout};

const MIB: u64 = 1 << 20;

/// Compiles tests/programs/SOURCE into a library of this name.
fn library(place: &Place, path: &str, source: &str, flags: &[&str]) -> PathBuf {
    let path = place.path(path);
    std::fs::create_dir_all(path.parent().expect("a folder")).expect("made");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(source);
    let mut compiler = Command::new("cc");
    compiler
        .args(["-O1", "-shared", "-fPIC", "-Wall", "-Wextra", "-Wno-pedantic", "-o"])
        .arg(&path)
        .arg(&source)
        .args(flags)
        .arg("-ldl");
    assert!(compiler.status().expect("cc starts").success(), "cc could not compile {}", source.display());
    path
}

/// Bytes and number of the live allocations at the peak, by the name of their group.
fn groups(report: &Value) -> BTreeMap<&str, (u64, u64)> {
    let groups = report["peak"]["top_groups"].as_array().unwrap_or_else(|| panic!("groups: {report:#}"));
    let held = |group: &'_ Value| (number(group, "/bytes"), number(group, "/allocations"));
    groups.iter().map(|group| (group["name"].as_str().expect("a name"), held(group))).collect()
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
    let made = |file: &&str| library(&place, file, "owner_library.c", &[]).display().to_string();
    let libraries: Vec<String> = files.iter().map(made).collect();
    let (output, report) = place.record(&format!("--device 4GiB -- {} {}", program.display(), libraries.join(" ")));
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));

    // 2, 4, 8, 16 and 32 MiB through the libraries, 6 of the program itself, and 2 that were created.
    assert_eq!(number(&report, "/peak/bytes"), (62 + 6 + 2) * MIB);
    assert_eq!(number(&report, "/peak/by_category/unknown"), (30 + 6 + 2) * MIB);
    let groups = groups(&report);
    let expected = BTreeMap::from([
        ("owner: XLA (xla_cuda_plugin.so)", (2 * MIB, 1)),
        ("owner: CuPy (runtime.so)", (4 * MIB, 1)),
        ("owner: NCCL (libnccl.so.2)", (8 * MIB, 1)),
        // A library that is not known, and the program itself, are told by their files.
        ("cuMemAlloc_v2 from libordinary.so", (16 * MIB, 1)),
        ("cuMemAlloc_v2 from owners, 1.00 MiB each", (6 * MIB, 6)),
        ("tagged", (32 * MIB, 1)),
        ("owner: cuDNN (libcudnn.so.9)", (2 * MIB, 1)),
    ]);
    assert_eq!(groups, expected);

    let text = stdout(&place.run("report p.mscope"));
    assert!(
        text.contains("owner: NCCL (libnccl.so.2)") && text.contains("cuMemAlloc_v2 from libordinary.so"),
        "{text}"
    );
    let again: Value =
        serde_json::from_slice(&place.run("report p.mscope --format json --at end").stdout).expect("JSON");
    assert!(again["at"].to_string().contains("owner: XLA (xla_cuda_plugin.so)"), "in the profile too: {again:#}");
}

#[test]
fn behind_the_cuda_runtime_is_who_asked_it() {
    // A runtime of ours under a name that is not simulated, and the simulated one.
    for (soname, is_simulated) in [("libcudart.so.11.0", false), ("libcudart.so.12", true)] {
        let place = Place::new();
        let program = place.compile_linked("owners");
        let runtime = library(&place, soname, "owner_runtime.c", &[&format!("-Wl,-soname,{soname}")]);
        let runtime = runtime.display().to_string();
        let folder = format!("-Wl,-rpath,{}", place.path("").display());
        let made = |file: &&str| {
            library(&place, file, "owner_library.c", &["-DRUNTIME", &runtime, &folder]).display().to_string()
        };
        let libraries: Vec<String> = ["libggml-cuda.so", "libmine.so", "libcudnn.so.9"].iter().map(made).collect();
        if is_simulated {
            std::fs::remove_file(&runtime)
                .expect("the runtime that was linked with goes, and the simulated one is found");
        }
        let (output, report) = place.record(&format!("--device 4GiB -- {} {}", program.display(), libraries.join(" ")));
        assert_eq!(output.status.code(), Some(0), "{soname}: {}", stderr(&output));
        let expected = BTreeMap::from([
            ("owner: llama.cpp (ggml) (libggml-cuda.so)", (2 * MIB, 1)),
            ("cuMemAlloc_v2 from libmine.so", (4 * MIB, 1)),
            ("cuMemAlloc_v2 from owners, 1.00 MiB each", (4 * MIB, 4)),
            ("tagged", (8 * MIB, 1)),
            ("owner: cuDNN (libcudnn.so.9)", (2 * MIB, 1)),
        ]);
        assert_eq!(groups(&report), expected, "{soname}");
    }
}

#[test]
fn behind_ctypes_is_the_interpreter() {
    let place = Place::new();
    let program = "import ctypes as c, os, sys\n\
        d = c.CDLL('libcuda.so.1'); p = c.c_uint64(); x = c.c_void_p()\n\
        calls = [d.cuInit(0), d.cuDevicePrimaryCtxRetain(c.byref(x), 0), d.cuCtxSetCurrent(x)]\n\
        calls.append(d.cuMemAlloc_v2(c.byref(p), c.c_size_t(4 << 20)))\n\
        open('executable', 'w').write(os.path.basename(os.path.realpath(sys.executable)))\n\
        sys.exit(any(calls))";
    std::fs::write(place.path("program.py"), program).expect("written");
    if !Command::new("python3").args(["-c", "import ctypes"]).status().is_ok_and(|status| status.success()) {
        eprintln!("SKIPPED behind_ctypes_is_the_interpreter: there is no python3 with ctypes");
        return;
    }
    let (output, report) = place.record("--device 4GiB -- python3 program.py");
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let executable = std::fs::read_to_string(place.path("executable")).expect("the program ran");
    let groups = groups(&report);
    let ([(name, held)], true) = (&groups.iter().collect::<Vec<_>>()[..], groups.len() == 1) else {
        panic!("one group: {groups:?}")
    };
    assert_eq!(**held, (4 * MIB, 1));
    // A Python whose interpreter is a library of its own is that library.
    let of_python = name
        .strip_prefix("cuMemAlloc_v2 from ")
        .is_some_and(|file| file == executable || file.starts_with("libpython"));
    assert!(of_python, "{name}, not {executable}");
}
