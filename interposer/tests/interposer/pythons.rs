//! The lines of a Python program: each version of Python that is found on this machine is read as it says itself, or is refused.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::stage;

/// Evaluates the shim's file, as the interposer does, and proves what it finds in a few more places than that file does.
const PROGRAM: &str = r#"
import ctypes, sys, threading

library, notices = ctypes.PyDLL(None), []

def native(name, arguments, result=None):
    function = getattr(library, name)
    function.argtypes, function.restype = arguments, result
    return function

send_notice = notices.append
exec(compile(open(sys.argv[1]).read(), "<memscope>", "exec"))
follow_stacks()
print(*sys.version_info[:2], notices[0].decode() if notices else "proved")
if not notices:
    proved = []
    thread = threading.Thread(target=lambda: proved.append(is_proved()))
    thread.start()
    thread.join()
    def deep(depth):
        return deep(depth - 1) if depth else is_proved()
    proved.append(deep(400))
    sys.setprofile(lambda *event: None)
    proved.append(is_proved())
    sys.setprofile(None)
    sys.settrace(lambda *event: None)
    proved.append(is_proved())
    sys.settrace(None)
    proved += [is_proved() for _ in range(100)]
    print(all(proved))
"#;

/// Interpreters on the path and of pyenv, each once.
fn pythons() -> BTreeSet<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let home = std::env::var_os("HOME").map(|home| Path::new(&home).join(".pyenv/versions"));
    let versions = home.and_then(|folder| folder.read_dir().ok()).into_iter().flatten().flatten();
    let folders = std::env::split_paths(&path).chain(versions.map(|version| version.path().join("bin")));
    let names = (9..=13).map(|minor| format!("python3.{minor}"));
    let names: Vec<String> = names.collect();
    let all = folders.flat_map(|folder| names.iter().map(move |name| folder.join(name)).collect::<Vec<_>>());
    // Not the scripts of pyenv, which stand for interpreters.
    let is_program = |file: &PathBuf| std::fs::read(file).is_ok_and(|bytes| bytes.starts_with(b"\x7fELF"));
    all.filter(is_program).filter_map(|file| file.canonicalize().ok()).collect()
}

#[test]
fn each_python_is_read_as_it_says_itself_or_refused() {
    let text = Path::new(env!("CARGO_MANIFEST_DIR")).join("python/stacks.py");
    let mut tried = 0;
    for python in pythons() {
        let logs = stage::folder();
        let mut command = Command::new(&python);
        command.args(["-c", PROGRAM]).arg(&text).env("LD_PRELOAD", stage::interposer());
        command.env("MEMSCOPE_LOG_DIR", &logs).env("MEMSCOPE_STACKS", "python");
        let output = stage::output(&mut command);
        assert!(output.status.success(), "{}: {output:?}", python.display());
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        println!("{}: {said}", python.display());
        let minor: u32 = said.split(' ').nth(1).and_then(|minor| minor.parse().ok()).expect("a version");
        if (11..=13).contains(&minor) {
            assert_eq!(said, format!("3 {minor} proved\nTrue\n"), "{}", python.display());
        } else {
            assert!(said.contains("this version is not known here"), "{}: {said}", python.display());
        }
        tried += 1;
    }
    if tried == 0 {
        println!("SKIPPED each_python_is_read_as_it_says_itself_or_refused: there is no Python here");
    }
}
