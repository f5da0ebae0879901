//! Builds what the `memscope` binary carries: the interposer, the simulator and the simulated CUDA libraries, as bytes for `include_bytes!`.
//!
//! A nested cargo with a target folder of its own under OUT_DIR, so that it never waits for the outer one's lock. Owns: which
//! libraries are embedded and under which profile. Refuses: to know what is in them.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Package, profile, file that cargo leaves, name of the environment variable that `src/embedded.rs` reads.
const LIBRARIES: [(&str, &str, &str, &str); 3] = [
    ("memscope-interposer", "preload", "libmemscope_interposer.so", "MEMSCOPE_EMBED_INTERPOSER"),
    ("memscope-simulator", "release", "libmemscope_simulator.so", "MEMSCOPE_EMBED_SIMULATOR"),
    ("memscope-runtime", "release", "libmemscope_runtime.so", "MEMSCOPE_EMBED_RUNTIME"),
];

/// Rooms whose change makes the embedded libraries stale.
const SOURCES: [&str; 5] = ["wire", "interposer", "simulator", "kernels", "Cargo.lock"];

fn main() {
    let root = PathBuf::from(variable("CARGO_MANIFEST_DIR"));
    let target = PathBuf::from(variable("OUT_DIR")).join("embedded");
    for source in SOURCES {
        println!("cargo:rerun-if-changed={}", root.join(source).display());
    }
    for (package, profile, file, variable) in LIBRARIES {
        let library = build(&root, &target, package, profile).join(file);
        assert!(library.is_file(), "cargo built {package} and left no {}", library.display());
        println!("cargo:rustc-env={variable}={}", library.display());
    }
}

/// Builds `package` and returns the folder that holds its library.
fn build(root: &Path, target: &Path, package: &str, profile: &str) -> PathBuf {
    let mut cargo = Command::new(variable("CARGO"));
    cargo.args(["build", "--quiet", "--package", package, "--profile", profile]);
    cargo.arg("--manifest-path").arg(root.join("Cargo.toml")).arg("--target-dir").arg(target);
    let mut folder = target.to_path_buf();
    if variable("TARGET") != variable("HOST") {
        cargo.args(["--target", &variable("TARGET")]);
        folder.push(variable("TARGET"));
    }
    // What the outer cargo set for this script (wrappers, flags of a coverage or lint run) is not for the nested build.
    for name in ["CARGO_ENCODED_RUSTFLAGS", "RUSTC_WORKSPACE_WRAPPER", "RUSTC", "RUSTDOC"] {
        cargo.env_remove(name);
    }
    let status = cargo.status().unwrap_or_else(|error| panic!("cannot start cargo to build {package}: {error}"));
    assert!(status.success(), "cargo could not build {package} ({status}); its messages are above");
    folder.join(profile)
}

fn variable(name: &str) -> String {
    env::var(name).unwrap_or_else(|error| panic!("cargo did not set {name}: {error}"))
}
