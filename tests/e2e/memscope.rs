//! Runs the binary in a folder of its own and reads what it left.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

/// Name of the folder that stands for `$XDG_RUNTIME_DIR`.
const RUNTIME: &str = "runtime";

/// A temporary folder with a cache folder shared by the whole test run.
pub struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    pub fn new() -> Place {
        let folder = tempfile::Builder::new().prefix("memscope-e2e-").tempdir().expect("a temporary folder");
        std::fs::create_dir(folder.path().join(RUNTIME)).expect("a runtime folder");
        Place { folder }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// `memscope` with this place as its current folder.
    pub fn memscope(&self) -> Command {
        self.command(env!("CARGO_BIN_EXE_memscope"))
    }

    /// Any program with this place as its current folder.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command.current_dir(self.folder.path());
        command.env("XDG_CACHE_HOME", concat!(env!("CARGO_TARGET_TMPDIR"), "/cache"));
        command.env("XDG_RUNTIME_DIR", self.path(RUNTIME));
        command.env("XDG_CONFIG_HOME", self.path("config"));
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("MEMSCOPE_") {
                command.env_remove(name);
            }
        }
        command
    }

    /// Runs `memscope` with arguments separated by blanks.
    pub fn run(&self, arguments: &str) -> Output {
        self.memscope().args(arguments.split_whitespace()).output().expect("memscope starts")
    }

    /// Runs `memscope run -q -o p.mscope --json r.json ARGUMENTS` and returns output and report.
    pub fn record(&self, arguments: &str) -> (Output, Value) {
        let output = self.run(&format!("run -q -f -o p.mscope --json r.json {arguments}"));
        let report = std::fs::read(self.path("r.json"))
            .unwrap_or_else(|error| panic!("no report ({error}); memscope said: {}", stderr(&output)));
        (output, serde_json::from_slice(&report).expect("the report is JSON"))
    }

    /// Compiles `tests/programs/NAME.c` into this place and returns the program's path.
    pub fn compile(&self, name: &str, flags: &[&str]) -> PathBuf {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(format!("{name}.c"));
        let program = self.path(name);
        let status = Command::new("cc")
            .args(["-O1", "-Wall", "-Wextra", "-pthread", "-o"])
            .arg(&program)
            .arg(&source)
            .arg("-I")
            .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("interposer/include"))
            .args(flags)
            .args(["-ldl"])
            .status()
            .expect("cc starts");
        assert!(status.success(), "cc could not compile {}", source.display());
        program
    }

    /// Like [`Place::compile`], for a program that is linked with -lcuda.
    pub fn compile_linked(&self, name: &str) -> PathBuf {
        let search = format!("-L{}", self.link_folder().display());
        self.compile(name, &[&search, "-lcuda"])
    }

    /// Folder with a libcuda that programs can be linked with.
    pub fn link_folder(&self) -> PathBuf {
        let folder = self.path("link");
        std::fs::create_dir_all(&folder).expect("a folder for the link stub");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/link_stub.c");
        let status = Command::new("cc")
            .args(["-shared", "-fPIC", "-Wl,-soname,libcuda.so.1", "-o"])
            .arg(folder.join("libcuda.so"))
            .arg(source)
            .status()
            .expect("cc starts");
        assert!(status.success(), "cc could not make the link stub");
        folder
    }

    /// Folder with the simulated driver, as `memscope` has written it to its cache.
    pub fn simulator(&self) -> PathBuf {
        let output = self.run("doctor");
        let text = stdout(&output);
        let line =
            text.lines().find(|line| line.contains("libmemscope_interposer.so")).expect("doctor names the cache");
        let interposer = Path::new(line.split_whitespace().last().expect("a path"));
        interposer.with_file_name("simulator")
    }

    /// Names of the files in this place, without the runtime folder.
    pub fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.folder.path()).expect("the folder is readable");
        let mut names: Vec<_> =
            entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect();
        names.retain(|name| name != RUNTIME);
        names.sort();
        names
    }
}

/// Runs `memscope run` of a program that waits for a line once memory is out: what was said by then and what was said in all, as
/// [`flat`], and the rest of its output. If nothing is said before the program ends, this fails, and if nothing is said while it
/// waits, this never ends.
pub fn told_while_it_waits(command: &mut Command) -> (String, String, Output) {
    let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = piped.spawn().expect("memscope starts");
    let mut stderr = BufReader::new(child.stderr.take().expect("piped"));
    let mut said = String::new();
    while !said.contains("To do:") {
        assert_ne!(stderr.read_line(&mut said).expect("text"), 0, "ended without a word: {said}");
    }
    let first = flat(&said);
    child.stdin.take().expect("piped").write_all(b"\n").expect("the program still reads");
    stderr.read_to_string(&mut said).expect("text");
    (first, flat(&said), child.wait_with_output().expect("memscope ends"))
}

/// Words without the breaks between lines.
pub fn flat(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

pub fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

pub fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The number at a JSON pointer.
#[track_caller]
pub fn number(report: &Value, pointer: &str) -> u64 {
    let value = report.pointer(pointer).unwrap_or_else(|| panic!("the report has no {pointer}: {report:#}"));
    value.as_u64().unwrap_or_else(|| panic!("{pointer} is {value}, not a number"))
}
