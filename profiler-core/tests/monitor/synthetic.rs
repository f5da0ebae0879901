//! The NVML without a driver of tests/programs/nvml/, built into a folder of its own, from which files steer it.

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use memscope_core::monitor::{Monitor, Options};

const SOURCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/programs/nvml/synthetic.c");

pub const GIB: u64 = 1 << 30;
pub const MIB: u64 = 1 << 20;

/// The library and its folder.
pub struct Synthetic {
    folder: tempfile::TempDir,
}

impl Synthetic {
    pub fn new() -> Synthetic {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let built = Command::new("cc")
            .args(["-O1", "-Wall", "-Wextra", "-shared", "-fPIC", "-o"])
            .arg(folder.path().join("libnvidia-ml.so.1"))
            .arg(SOURCE)
            .status()
            .expect("a C compiler, which Rust needs for linking");
        assert!(built.success(), "cc could not compile {SOURCE}");
        let synthetic = Synthetic { folder };
        synthetic.put("live", "");
        synthetic
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes a file that steers the library, at once as a whole.
    pub fn put(&self, name: &str, text: &str) {
        fs::write(self.path("draft"), text).expect("a draft");
        fs::rename(self.path("draft"), self.path(name)).expect("the file");
    }

    pub fn remove(&self, name: &str) {
        fs::remove_file(self.path(name)).expect("the file was there");
    }

    /// The handles that were fetched, one a line, sorted.
    pub fn handles(&self) -> Vec<String> {
        let text = fs::read_to_string(self.path("handles")).unwrap_or_default();
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    }

    pub fn watch(&self, interval: Duration) -> Monitor {
        Monitor::start(Options { library: Some(self.path("libnvidia-ml.so.1")), interval, notify: None })
    }
}

/// A process that waits until the test ends.
pub struct Sleeper(Child);

impl Sleeper {
    pub fn new() -> Sleeper {
        Sleeper(Command::new("sleep").arg("3600").stdin(Stdio::null()).spawn().expect("sleep starts"))
    }

    pub fn pid(&self) -> u32 {
        self.0.id()
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
