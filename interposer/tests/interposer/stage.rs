//! Builds what the tests and the bench run, once, and runs it.
//!
//! Owns: the interposer as it is shipped (a nested cargo build with the profile `preload`), the null driver and the programs
//! (the C compiler `cc`, or `$CC`). Refuses: to look for files that something else may have built.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, OnceLock};

use memscope_wire::env;

/// Folder for everything that is built here.
fn scratch() -> &'static Path {
    Path::new(env!("CARGO_TARGET_TMPDIR"))
}

/// The sources of the programs.
fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/programs")
}

fn succeed(command: &mut Command) {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?} cannot start: {error}"));
    assert!(output.status.success(), "{command:?} failed:\n{}", String::from_utf8_lossy(&output.stderr));
}

/// The interposer, built as it is shipped.
pub fn interposer() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let target = scratch().join("preload-build");
        succeed(
            Command::new(env!("CARGO"))
                .args(["build", "--quiet", "--profile", "preload", "--lib", "--manifest-path"])
                .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml"))
                .arg("--target-dir")
                .arg(&target)
                .env_remove("RUSTFLAGS")
                .env_remove("CARGO_ENCODED_RUSTFLAGS"),
        );
        target.join("preload/libmemscope_interposer.so")
    })
}

/// Rows that a log describes: the hooked functions of the driver, which the library exports, and three of frameworks.
pub fn rows() -> u64 {
    let exported = include_str!("exports.txt").lines().filter(|name| name.starts_with("cu")).count();
    exported as u64 + 3
}

/// Runs `build` for a path if nobody has yet in this run; builds of different things wait for each other too.
fn once(path: PathBuf, build: impl FnOnce(&Path)) -> PathBuf {
    static DONE: OnceLock<Mutex<HashMap<PathBuf, ()>>> = OnceLock::new();
    let mut done = DONE.get_or_init(Mutex::default).lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    if !done.contains_key(&path) {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        build(&path);
        done.insert(path.clone(), ());
    }
    path
}

fn compiler() -> Command {
    let mut command = Command::new(std::env::var_os("CC").unwrap_or_else(|| "cc".into()));
    command.args(["-O2", "-Wall", "-Wextra", "-Werror"]);
    command.arg("-I").arg(sources()).arg("-I").arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("include"));
    command
}

/// Folder with a null driver under both of its names. `variant` is "", "REUSE", "NESTED", "LEAVES", "OLD", "LIFE" or "OTHER_ENTRIES"; see null_driver.c.
pub fn driver(variant: &str) -> PathBuf {
    let folder = scratch().join(format!("driver-{}", variant.to_lowercase()));
    once(folder.join("libcuda.so.1"), |path| {
        let mut cc = compiler();
        cc.args(["-shared", "-fPIC", "-Wl,-soname,libcuda.so.1"]).arg("-o").arg(path);
        if !variant.is_empty() {
            cc.arg(format!("-D{variant}"));
        }
        // Otherwise the driver's own table of exports would hold the interposer's.
        if variant != "NESTED" {
            cc.arg("-Wl,-Bsymbolic");
        }
        succeed(cc.arg(sources().join("null_driver.c")));
        let _ = std::fs::remove_file(folder.join("libcuda.so"));
        std::os::unix::fs::symlink("libcuda.so.1", folder.join("libcuda.so")).unwrap();
    });
    folder
}

/// A program built from `<name>.c`; `arguments` go to the compiler behind the source.
pub fn program(name: &str, arguments: &[&str]) -> PathBuf {
    variant(name, "", arguments)
}

/// The same, one of several that are built from a source with different arguments.
pub fn variant(name: &str, label: &str, arguments: &[&str]) -> PathBuf {
    once(scratch().join("programs").join(format!("{name}{label}")), |path| {
        succeed(compiler().arg("-o").arg(path).arg(sources().join(format!("{name}.c"))).args(arguments).arg("-ldl"));
    })
}

/// A program that is linked with the driver.
pub fn linked_program(name: &str) -> PathBuf {
    let folder = driver("");
    program(name, &["-L", folder.to_str().unwrap(), "-lcuda", "-pthread"])
}

/// A library of `<name>.c`.
pub fn library(name: &str, arguments: &[&str]) -> PathBuf {
    library_of(name, "", arguments)
}

/// The same, one of several that are built from a source with different arguments.
pub fn library_of(name: &str, label: &str, arguments: &[&str]) -> PathBuf {
    once(scratch().join("programs").join(format!("lib{name}{label}.so")), |path| {
        let source = sources().join(format!("{name}.c"));
        succeed(compiler().args(["-shared", "-fPIC"]).arg("-o").arg(path).arg(source).args(arguments).arg("-ldl"));
    })
}

fn cxx() -> Command {
    let mut command = Command::new(std::env::var_os("CXX").unwrap_or_else(|| "c++".into()));
    command.args(["-O2", "-Wall", "-Wextra", "-Werror"]);
    command
}

/// Folder with a libc10.so and a libc10_cuda.so of PyTorch's names; see c10.cc.
pub fn c10() -> PathBuf {
    let folder = scratch().join("c10");
    for (name, part) in [("libc10.so", None), ("libc10_cuda.so", Some("-DCUDA"))] {
        once(folder.join(name), |path| {
            let mut cxx = cxx();
            cxx.args(["-shared", "-fPIC"]).arg(format!("-Wl,-soname,{name}")).args(part);
            succeed(cxx.arg("-o").arg(path).arg(sources().join("c10.cc")));
        });
    }
    folder
}

/// A program that uses libc10: linked with it, or loading a plugin that is.
pub fn tensors(plugin: bool) -> PathBuf {
    let libraries = c10();
    let build = |path: &Path, arguments: &[&str]| {
        let mut cxx = cxx();
        cxx.args(arguments).arg("-o").arg(path).arg(sources().join("tensors.cc")).arg("-L").arg(&libraries);
        cxx.arg(format!("-Wl,-rpath,{}", libraries.display())).args([
            "-Wl,--no-as-needed",
            "-lc10",
            "-lc10_cuda",
            "-ldl",
        ]);
        succeed(&mut cxx);
    };
    let programs = scratch().join("programs");
    if !plugin {
        return once(programs.join("tensors"), |path| build(path, &[]));
    }
    let library = once(programs.join("libtensors.so"), |path| build(path, &["-shared", "-fPIC", "-DPLUGIN"]));
    once(programs.join("tensors-plugin"), |path| {
        let define = format!("-DPLUGIN_PATH=\"{}\"", library.display());
        succeed(
            cxx()
                .arg(define)
                .arg("-o")
                .arg(path)
                .arg(sources().join("tensors.cc"))
                .args(["-Wl,--unresolved-symbols=ignore-all", "-ldl"]),
        );
    })
}

/// memscope.h's program, by the given compiler and its arguments.
pub fn annotations(label: &str, compiler: &str, arguments: &[&str]) -> PathBuf {
    once(scratch().join("programs").join(format!("annotations-{label}")), |path| {
        let mut command = Command::new(compiler);
        command.args(["-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Werror"]).args(arguments);
        command.arg("-I").arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("include"));
        succeed(command.arg("-o").arg(path).arg(sources().join("annotations.c")).args(["-x", "none", "-ldl"]));
    })
}

/// Removes what runs of the past have left.
fn tidy(runs: &Path) {
    for entry in std::fs::read_dir(runs).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let pid = name.to_str().and_then(|name| name.split('-').next()).unwrap_or_default();
        if !Path::new("/proc").join(pid).exists() {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

/// A new, empty folder.
pub fn folder() -> PathBuf {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let runs = scratch().join("runs");
    if number == 0 {
        tidy(&runs);
    }
    let folder = runs.join(format!("{}-{number}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// `program` with the driver in `driver` (a folder), not recorded.
pub fn plain(program: &Path, driver: &Path) -> Command {
    let mut command = Command::new(program);
    command.env("LD_LIBRARY_PATH", driver).env_remove("LD_PRELOAD").env_remove(env::LOG_DIR);
    for rank in ["RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID"] {
        command.env_remove(rank);
    }
    command
}

/// The same, recorded in `logs`.
pub fn recorded(program: &Path, driver: &Path, logs: &Path) -> Command {
    let mut command = plain(program, driver);
    command.env("LD_PRELOAD", interposer()).env(env::LOG_DIR, logs);
    command
}

/// Says that something was not tried here, past the test harness, which hides what passing tests print.
pub fn skip(what: &str) {
    use std::io::Write;
    let _ = writeln!(std::io::stderr(), "SKIPPED {what}");
}

/// Output of a command; panics when it cannot start.
pub fn output(command: &mut Command) -> Output {
    command.output().unwrap_or_else(|error| panic!("{command:?} cannot start: {error}"))
}

/// Runs `program` without the interposer and with it, and demands that nobody could tell the difference. The folder with
/// the logs of the recorded run.
pub fn run_both(program: &Path, driver: &Path, arguments: &[&str]) -> PathBuf {
    let (logs, output) = compare(program, driver, arguments, |_| {});
    assert!(output.status.success(), "{}: {output:?}", program.display());
    logs
}

/// The same, of a program that ends as it likes, after `prepare` has seen both commands. The logs, and what both runs gave.
pub fn compare(program: &Path, driver: &Path, arguments: &[&str], prepare: impl Fn(&mut Command)) -> (PathBuf, Output) {
    let logs = folder();
    let [plain, recorded] = [plain(program, driver), recorded(program, driver, &logs)].map(|mut command| {
        prepare(command.args(arguments));
        output(&mut command)
    });
    assert_eq!(plain, recorded, "the program's status or output differs when it is recorded");
    (logs, plain)
}
