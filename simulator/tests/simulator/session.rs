//! A session: a folder with the libraries under their names, a state, and children that run on it.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

/// Set in a child: run the body instead of starting a child.
const INSIDE: &str = "MEMSCOPE_TEST_INSIDE";

/// A fresh session; its folder goes with it.
pub struct Session {
    folder: PathBuf,
    variables: Vec<(&'static str, String)>,
}

impl Drop for Session {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

impl Session {
    /// A session with these devices (as in MEMSCOPE_SIMULATOR_DEVICES).
    pub fn new(devices: &str) -> Session {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("memscope-simulator-test-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        for name in ["libcuda.so.1", "libcuda.so", "libnvidia-ml.so.1"] {
            std::os::unix::fs::symlink(library(), folder.join(name)).unwrap();
        }
        Session { folder, variables: vec![("MEMSCOPE_SIMULATOR_DEVICES", devices.to_owned())] }
    }

    /// The same session with another variable for its children.
    pub fn with(mut self, name: &'static str, value: &str) -> Session {
        self.variables.push((name, value.to_owned()));
        self
    }

    /// The same session with copies of the library in place of links to it, as an installation by copying has them.
    pub fn with_copies(self) -> Session {
        for entry in std::fs::read_dir(&self.folder).unwrap() {
            let path = entry.unwrap().path();
            std::fs::remove_file(&path).unwrap();
            std::fs::copy(library(), path).unwrap();
        }
        self
    }

    /// The folder with the libraries.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// `program` with the environment of the session.
    pub fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("MEMSCOPE_") || name.starts_with("CUDA_"))
        {
            command.env_remove(name);
        }
        command
            .env("LD_LIBRARY_PATH", &self.folder)
            .env("MEMSCOPE_SIMULATOR_STATE", self.folder.join("state"))
            .envs(self.variables.iter().map(|(name, value)| (name, value)));
        command
    }

    /// A child that runs one test of this binary, inside the session.
    pub fn child(&self, test: &str) -> Command {
        let mut command = self.command(std::env::current_exe().unwrap());
        command.args([test, "--exact", "--nocapture", "--include-ignored", "--test-threads=1"]).env(INSIDE, "1");
        command
    }

    /// Runs one test of this binary in a child.
    pub fn run(&self, test: &str) {
        let done = self.child(test).output().unwrap();
        let text = String::from_utf8_lossy(&done.stdout) + String::from_utf8_lossy(&done.stderr);
        assert!(done.status.success(), "{test} in a child: {}\n{text}", done.status);
        assert!(text.contains("1 passed"), "{test} did not run in the child:\n{text}");
    }
}

/// The simulator that cargo built for these tests: beside this binary.
fn library() -> PathBuf {
    let beside = std::env::current_exe().unwrap().with_file_name("libmemscope_simulator.so");
    assert!(beside.exists(), "cargo builds {beside:?} before these tests");
    beside
}

/// True in a child.
pub fn inside() -> bool {
    std::env::var_os(INSIDE).is_some()
}

/// Name of a test as the test harness knows it.
pub fn test_name(module: &str, function: &str) -> String {
    format!("{}::{function}", module.split_once("::").unwrap().1)
}

/// Tests whose body runs in a child on a fresh session with the given devices and variables.
macro_rules! on_simulator {
    ($($(#[$attribute:meta])* fn $name:ident on $devices:literal $(with $variable:literal = $value:literal)* $body:block)*) => {$(
        $(#[$attribute])*
        #[test]
        fn $name() {
            if $crate::session::inside() {
                $body
            } else {
                let session = $crate::session::Session::new($devices)$(.with($variable, $value))*;
                session.run(&$crate::session::test_name(module_path!(), stringify!($name)));
            }
        }
    )*};
}
pub(crate) use on_simulator;
