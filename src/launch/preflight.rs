//! The check before the launch: can the interposer be loaded into this program?
//!
//! Owns: the reasons why a preload does not load, each as a sentence. Refuses: to stop the launch; the program runs in any
//! case, and the reason goes into the report when nothing was captured.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::Read;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use object::Endianness;
use object::elf::{FileHeader64, PT_INTERP};
use object::read::elf::{FileHeader, ProgramHeader};

use memscope_core::report::units::shell_word;

use super::{glibc, launchers};
use crate::embedded::preload;

/// How many `#!` lines are followed.
const MAX_INTERPRETERS: usize = 4;

/// A sentence that says why the interposer will not load into what `command` starts, if there is a reason that can be seen.
pub fn obstacle(command: &[OsString]) -> Option<String> {
    launchers::chain(command).iter().find_map(|command| {
        let of_program = file(command.first()?)
            .and_then(|(path, content)| privileges(&path, &path).or_else(|| format_of(&path, &content)));
        of_program.or_else(|| {
            let executed = launchers::executed(command)?;
            let by = executed.emptied_by?;
            let program = shell_word(&executed.command[0].to_string_lossy());
            Some(format!(
                "`{by}` takes LD_PRELOAD out of the environment, so that memscope's library is not loaded into {program}; start memscope \
                 behind it: {by} memscope run -- {program}"
            ))
        })
    })
}

/// Why no library is preloaded into the program in the file `executable`, which is called `shown`, whoever runs it.
pub fn format(executable: &Path, shown: &Path) -> Option<String> {
    format_of(shown, &read(executable)?)
}

/// True for a program whose loader would end it because what is at `preload` does not fit: one of an old glibc, and musl's where the
/// path does not keep it away.
pub fn dies_of(preload: &OsStr, program: &OsStr) -> bool {
    let Some(loader) = file(program).and_then(|(_, content)| loader(&content)) else { return false };
    if loader.contains("musl") {
        return !preload::is_for_fitting_loaders(preload.as_encoded_bytes());
    }
    glibc::obstacle(Path::new(&loader)).is_some()
}

/// The file that is loaded when `program` is started, behind its interpreters, and its beginning.
fn file(program: &OsStr) -> Option<(PathBuf, Vec<u8>)> {
    let mut path = find(program)?;
    for _ in 0..MAX_INTERPRETERS {
        let content = read(&path)?;
        let Some(next) = interpreter(&content) else { return Some((path, content)) };
        path = find(&next)?;
    }
    None
}

/// The loader that an ELF file of this machine's kind names; `None` for any other file.
fn loader(content: &[u8]) -> Option<String> {
    let header = FileHeader64::<Endianness>::parse(content).ok()?;
    let endian = header.endian().ok()?;
    let segments = header.program_headers(endian, content).ok()?;
    let loader = segments.iter().find(|segment| segment.p_type(endian) == PT_INTERP)?;
    Some(String::from_utf8_lossy(loader.data(endian, content).ok()?).trim_end_matches('\0').to_owned())
}

/// Where the program is: as given when it holds a slash, else along PATH.
pub fn find(program: &OsStr) -> Option<PathBuf> {
    let given = Path::new(program);
    if given.components().count() > 1 || program.as_encoded_bytes().contains(&b'/') {
        return given.is_file().then(|| given.to_path_buf());
    }
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(given)).find(|candidate| {
        candidate.metadata().is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
    })
}

/// The beginning of the file: enough for the program headers of any linker's output.
fn read(path: &Path) -> Option<Vec<u8>> {
    let mut content = Vec::new();
    fs::File::open(path).ok()?.take(1 << 20).read_to_end(&mut content).ok()?;
    Some(content)
}

/// The interpreter named in a `#!` line; behind env(1), the program that env looks for.
fn interpreter(content: &[u8]) -> Option<OsString> {
    use std::os::unix::ffi::OsStrExt;
    let line = content.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    let mut words = line.split(|byte| matches!(byte, b' ' | b'\t' | b'\r')).filter(|word| !word.is_empty());
    let first = words.next()?;
    if first.ends_with(b"/env") {
        let named = words.find(|word| !word.starts_with(b"-") && !word.contains(&b'='))?;
        return Some(OsStr::from_bytes(named).to_owned());
    }
    Some(OsStr::from_bytes(first).to_owned())
}

/// A sentence that says that the program at `path`, which is called `shown`, runs with the rights of another user, if it does.
pub fn privileges(path: &Path, shown: &Path) -> Option<String> {
    let data = fs::metadata(path).ok()?;
    // SAFETY: these have no preconditions.
    let (user, group) = unsafe { (libc::getuid(), libc::getgid()) };
    let raises = (data.mode() & libc::S_ISUID != 0 && data.uid() != user)
        || (data.mode() & libc::S_ISGID != 0 && data.gid() != group);
    raises.then(|| {
        format!(
            "{} is set-user-ID or set-group-ID, and the loader ignores preloads for such programs; run it as its owner",
            shown.display()
        )
    })
}

fn format_of(path: &Path, content: &[u8]) -> Option<String> {
    let shown = path.display();
    if content.get(..4) != Some(b"\x7fELF") {
        return None; // exec(2) will say what is wrong with it
    }
    if path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"ld-")) {
        return None; // a loader that is given the program as an argument: it preloads, and needs no loader itself
    }
    if content.get(4) != Some(&2) {
        return Some(format!("{shown} is a 32-bit program; memscope follows 64-bit ones"));
    }
    let header = FileHeader64::<Endianness>::parse(content).ok()?;
    if header.e_machine.get(header.endian().ok()?) != host_machine() {
        return Some(format!("{shown} is for another processor"));
    }
    let Some(loader) = loader(content) else {
        return Some(format!(
            "{shown} is statically linked, so nothing can be preloaded into it; link it dynamically (programs that it \
             starts are followed)"
        ));
    };
    if loader.contains("musl") {
        return Some(format!(
            "{shown} uses musl, and the interposer needs glibc; build it for glibc (programs of glibc that it starts are followed)"
        ));
    }
    glibc::obstacle(Path::new(&loader))
}

/// The ELF machine number of this build.
fn host_machine() -> object::elf::Machine {
    if cfg!(target_arch = "aarch64") { object::elf::EM_AARCH64 } else { object::elf::EM_X86_64 }
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
            (b"\x7fELF", None),
            (b"#!", None),
        ] {
            assert_eq!(interpreter(line), interpreter_name.map(OsString::from), "{line:?}");
        }
    }

    #[test]
    fn an_ordinary_program_has_no_obstacle() {
        for words in [&["sh"][..], &["env", "A=1", "nice", "sh", "-c", "exec sh"], &["sh", "-c", "ls; ls"]] {
            let command: Vec<OsString> = words.iter().map(OsString::from).collect();
            assert_eq!(obstacle(&command), None, "{words:?}");
        }
    }

    #[test]
    fn an_emptied_environment_is_an_obstacle_wherever_it_is_emptied() {
        let command = ["nice", "sh", "-c", "exec env -i sh"].map(OsString::from);
        let said = obstacle(&command).expect("LD_PRELOAD is taken away");
        assert!(said.contains("`env -i` takes") && said.ends_with("env -i memscope run -- sh"), "{said}");
    }
}
