//! The file of a program: where it is, which interpreters it names, and why it cannot be started.
//!
//! Owns: what execvp(3) does with a name, as far as files tell it. Refuses: to start anything, and to guess where files do not tell
//! (a security module, an interpreter's own arguments).

use std::ffi::{CString, OsStr, OsString};
use std::fs;
use std::io::{ErrorKind, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use memscope_core::report::units::shell_word;
use object::Endianness;
use object::elf::{FileHeader64, PT_INTERP};
use object::read::elf::{FileHeader, ProgramHeader};
use rustix::fs::StatVfsMountFlags;

use crate::output::{CANNOT_START, NOT_FOUND};

/// How many `#!` lines are followed.
const MAX_INTERPRETERS: usize = 4;

/// Where execvp(3) looks when PATH is not set.
const DEFAULT_PATH: &str = "/bin:/usr/bin";

/// Why a program cannot be started.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Trouble {
    /// With which status a shell ends then, and `memscope run`.
    pub status: i32,
    /// What is so, of "it".
    pub reason: String,
    /// What to do.
    pub advice: String,
}

impl Trouble {
    fn denied(reason: impl Into<String>, advice: impl Into<String>) -> Trouble {
        Trouble { status: CANNOT_START, reason: reason.into(), advice: advice.into() }
    }

    fn missing(reason: impl Into<String>, advice: impl Into<String>) -> Trouble {
        Trouble { status: NOT_FOUND, reason: reason.into(), advice: advice.into() }
    }
}

/// Where the program is: as given when it holds a slash, else along PATH, where what may not be executed is passed over.
pub fn find(program: &OsStr) -> Option<PathBuf> {
    if has_slash(program) {
        return Some(PathBuf::from(program)).filter(|given| given.is_file());
    }
    in_path(program).find(|candidate| candidate.is_file() && may(candidate, libc::X_OK))
}

/// The file that is loaded when `program` is started, behind its interpreters, and its beginning.
pub fn file(program: &OsStr) -> Option<(PathBuf, Vec<u8>)> {
    let mut path = find(program)?;
    for _ in 0..MAX_INTERPRETERS {
        let content = read(&path)?;
        let Some(next) = interpreter(&content) else { return Some((path, content)) };
        path = find(&next)?;
    }
    None
}

/// Why `program` cannot be started, or its interpreter, if that can be seen.
pub fn trouble(program: &OsStr) -> Option<Trouble> {
    trouble_within(program, MAX_INTERPRETERS)
}

fn trouble_within(program: &OsStr, interpreters: usize) -> Option<Trouble> {
    let Some(path) = find(program) else { return Some(of_missing(program)) };
    if let Some(denied) = of_file(&path) {
        return Some(denied);
    }
    let content = read(&path)?;
    if let Some(loader) = loader(&content).filter(|loader| !Path::new(loader).exists()) {
        return Some(Trouble::missing(
            format!("the loader that it names, {loader}, is not there"),
            "install the C library that it was built for, or build it here",
        ));
    }
    let interpreter = interpreter(&content)?;
    let trouble = trouble_within(&interpreter, interpreters.checked_sub(1)?)?;
    let (name, script) = (interpreter.to_string_lossy(), shell_word(&path.to_string_lossy()));
    Some(match name.strip_suffix('\r') {
        Some(name) => Trouble {
            reason: format!(
                "its first line ends with a carriage return (CRLF), so that the interpreter that it names is not {name}"
            ),
            advice: format!("take the carriage returns out: sed -i 's/\\r$//' {script}"),
            ..trouble
        },
        None if trouble.status == NOT_FOUND => Trouble::missing(
            format!("the interpreter that its first line names, {name}, is not there"),
            "install that one, or name another in the first line",
        ),
        None => Trouble { reason: format!("its interpreter {name} cannot be started: {}", trouble.reason), ..trouble },
    })
}

/// Nothing that could be started was found.
fn of_missing(program: &OsStr) -> Trouble {
    let given = Path::new(program);
    if program.is_empty() {
        return Trouble::missing("its name is empty", "name the program that you would start");
    }
    if !has_slash(program) {
        if let Some(denied) = in_path(program).filter(|candidate| candidate.exists()).find_map(|path| of_file(&path)) {
            return denied;
        }
        let advice = if given.is_file() {
            format!("name it by its path: ./{}", given.display())
        } else {
            "name it by its path, or put its folder into PATH".to_owned()
        };
        return Trouble::missing("no such program", advice);
    }
    match fs::metadata(given) {
        Ok(_) => of_file(given)
            .unwrap_or_else(|| Trouble::denied("it is no ordinary file", "name the file that you would start")),
        Err(error) if error.kind() == ErrorKind::NotFound => Trouble::missing("no such program", "look at its path"),
        Err(error) if error.kind() == ErrorKind::PermissionDenied => closed_folder(given).map_or_else(
            || Trouble::denied(error.to_string(), "look at its path"),
            |folder| {
                let folder = shell_word(&folder.to_string_lossy());
                Trouble::denied(
                    format!("you may not pass the folder {folder}"),
                    format!("have its owner let you pass: chmod a+x {folder}"),
                )
            },
        ),
        Err(error) => Trouble::denied(error.to_string(), "look at its path"),
    }
}

/// Why a file that is there may not be executed.
fn of_file(path: &Path) -> Option<Trouble> {
    let data = fs::metadata(path).ok()?;
    let word = shell_word(&path.to_string_lossy());
    if data.is_dir() {
        return Some(Trouble::denied("it is a folder", "name the program in it"));
    }
    if !data.is_file() || may(path, libc::X_OK) {
        return None;
    }
    Some(if data.permissions().mode() & 0o111 == 0 {
        Trouble::denied("it is not executable", format!("make it so: chmod +x {word}"))
    } else if is_noexec(path) {
        Trouble::denied(
            "its file system is mounted noexec",
            "start a copy of it that lies on another file system, or mount this one with exec",
        )
    } else {
        Trouble::denied(
            "its permissions do not let you execute it",
            format!("have its owner let you: chmod a+x {word}"),
        )
    })
}

/// The first folder on the way to `path` that this user may not pass.
fn closed_folder(path: &Path) -> Option<&Path> {
    let mut folders: Vec<&Path> = path.ancestors().skip(1).filter(|folder| !folder.as_os_str().is_empty()).collect();
    folders.reverse();
    folders.into_iter().find(|folder| !may(folder, libc::X_OK))
}

/// True when this user may do that (R_OK, W_OK, X_OK) with what is at `path`.
pub fn may(path: &Path, what: libc::c_int) -> bool {
    let Ok(path) = CString::new(path.as_os_str().as_bytes()) else { return false };
    // SAFETY: a terminated path.
    unsafe { libc::access(path.as_ptr(), what) == 0 }
}

/// True where no code may be loaded from the file system that holds `path`.
pub fn is_noexec(path: &Path) -> bool {
    rustix::fs::statvfs(path).is_ok_and(|system| system.f_flag.contains(StatVfsMountFlags::NOEXEC))
}

fn has_slash(program: &OsStr) -> bool {
    program.as_bytes().contains(&b'/')
}

fn in_path(program: &OsStr) -> impl Iterator<Item = PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_else(|| DEFAULT_PATH.into());
    let folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    folders.into_iter().map(move |folder| folder.join(program))
}

/// The beginning of the file: enough for the program headers of any linker's output.
pub(super) fn read(path: &Path) -> Option<Vec<u8>> {
    let mut content = Vec::new();
    fs::File::open(path).ok()?.take(1 << 20).read_to_end(&mut content).ok()?;
    Some(content)
}

/// The loader that an ELF file of this machine's kind names; `None` for any other file.
pub(super) fn loader(content: &[u8]) -> Option<String> {
    let header = FileHeader64::<Endianness>::parse(content).ok()?;
    let endian = header.endian().ok()?;
    let segments = header.program_headers(endian, content).ok()?;
    let loader = segments.iter().find(|segment| segment.p_type(endian) == PT_INTERP)?;
    Some(String::from_utf8_lossy(loader.data(endian, content).ok()?).trim_end_matches('\0').to_owned())
}

/// The interpreter named in a `#!` line; behind env(1), the program that env looks for. To the kernel a carriage return is a letter.
fn interpreter(content: &[u8]) -> Option<OsString> {
    let line = content.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    let mut words = line.split(|byte| matches!(byte, b' ' | b'\t')).filter(|word| !word.is_empty());
    let first = words.next()?;
    if first.ends_with(b"/env") && Path::new(OsStr::from_bytes(first)).exists() {
        let named = words.find(|word| !word.starts_with(b"-") && !word.contains(&b'='))?;
        return Some(OsStr::from_bytes(named).to_owned());
    }
    Some(OsStr::from_bytes(first).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_name_their_interpreter() {
        for (line, interpreter_name) in [
            (&b"#!/bin/sh\n"[..], Some("/bin/sh")),
            (b"#! /usr/bin/python3 -u\nimport os", Some("/usr/bin/python3")),
            (b"#!/usr/bin/env python3\n", Some("python3")),
            (b"#!/usr/bin/env -S A=1 node --x\n", Some("node")),
            (b"#!/bin/sh\r\n", Some("/bin/sh\r")),
            (b"#!/usr/bin/env sh\r\n", Some("sh\r")),
            (b"#!/no/such/env sh\n", Some("/no/such/env")),
            (b"\x7fELF", None),
            (b"#!", None),
        ] {
            assert_eq!(interpreter(line), interpreter_name.map(OsString::from), "{line:?}");
        }
    }

    #[test]
    fn an_empty_name_is_no_folder() {
        assert_eq!(trouble(OsStr::new("")).map(|trouble| trouble.status), Some(NOT_FOUND));
    }

    #[test]
    fn what_can_be_started_has_no_trouble() {
        for program in ["sh", "/bin/sh", "env"] {
            assert_eq!(trouble(OsStr::new(program)), None, "{program}");
        }
    }

    #[test]
    fn the_first_closed_folder_is_named() {
        assert_eq!(closed_folder(Path::new("/usr/bin/x")), None);
        assert_eq!(closed_folder(Path::new("/usr/no-such-folder/bin/x")), Some(Path::new("/usr/no-such-folder")));
    }
}
