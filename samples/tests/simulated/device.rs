//! How a test gets a simulated libcuda.
//!
//! The loader reads LD_LIBRARY_PATH when a process starts, so a test that needs the simulated device runs its body in a
//! process of its own: this same test binary, asked for this one test.

use memscope_wire::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

/// What a simulated device is like.
#[derive(Clone, Copy)]
pub struct Simulated {
    /// As `--device` takes it.
    pub device: &'static str,
    /// False for a run that skips kernels and copies.
    pub computes: bool,
}

/// A device with room for everything that computes.
pub const COMPUTING: Simulated = Simulated { device: "t4-16gb", computes: true };

/// Runs `body` on a simulated device whose fresh memory is NaN. `test` is the path of the calling test.
pub fn run(test: &str, simulated: Simulated, body: impl FnOnce()) {
    if std::env::var_os(env::SIMULATED).is_some() {
        return body();
    }
    let binary = std::env::current_exe().expect("a test knows its own path");
    let state =
        std::env::temp_dir().join(format!("memscope-samples-{}-{}", std::process::id(), test.replace(':', "-")));
    let Output { status, stdout, stderr } = Command::new(binary)
        .args([test, "--exact", "--nocapture"])
        .env("LD_LIBRARY_PATH", libraries())
        .env(env::SIMULATED, "1")
        .env(env::SIMULATOR_DEVICES, simulated.device)
        .env(env::SIMULATOR_STATE, &state)
        .env(env::SIMULATOR_COMPUTE, if simulated.computes { "1" } else { "0" })
        .env(env::SIMULATOR_POISON, "1")
        .output()
        .expect("the test binary starts again");
    // The state file is removed whatever came of the test; it may not exist.
    let _ = std::fs::remove_file(state);
    let (stdout, stderr) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    assert!(status.success(), "{test} on the simulated device: {status}\n{stdout}\n{stderr}");
    assert!(stdout.contains("1 passed"), "no test is called {test}:\n{stdout}");
    print!("{stdout}");
}

/// The folder that holds libcuda.so and libcuda.so.1.
fn libraries() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        // Cargo leaves the cdylib of a dev-dependency beside the test binary.
        let library =
            std::env::current_exe().expect("a test knows its own path").with_file_name("libmemscope_simulator.so");
        assert!(library.is_file(), "cargo built no {}", library.display());
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("simulated-libcuda");
        std::fs::create_dir_all(&folder).expect("cargo's folder for tests can be written");
        for name in ["libcuda.so", "libcuda.so.1"] {
            // By rename, since another test process may be loading it.
            let link = folder.join(format!("{name}.{}", std::process::id()));
            std::os::unix::fs::symlink(&library, &link).expect("a link can be made");
            std::fs::rename(&link, folder.join(name)).expect("a link can be renamed");
        }
        folder
    })
}
