//! The check before the launch: can the interposer be loaded into this program?
//!
//! Owns: the reasons why a preload does not load, or why its logs are out of reach, each with what to do. Refuses: to stop the launch;
//! the program runs in any case, and the reason goes into the report when nothing was captured.

use std::ffi::{CString, OsStr, OsString};
use std::fmt;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use object::Endianness;
use object::elf::FileHeader64;
use object::read::elf::FileHeader;

use memscope_core::report::units::shell_word;

use super::launchers::{self, Launch};
use super::{glibc, program};
use crate::embedded::preload;

/// The user who reaches every folder.
const ROOT: u32 = 0;

/// A reason, and what to do about it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Obstacle {
    /// What is so.
    pub reason: String,
    /// What to do.
    pub advice: String,
}

impl Obstacle {
    /// From its words.
    pub fn new(reason: impl Into<String>, advice: impl Into<String>) -> Obstacle {
        Obstacle { reason: reason.into(), advice: advice.into() }
    }
}

/// Both in one sentence.
impl fmt::Display for Obstacle {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}; {}", self.reason, self.advice)
    }
}

/// Why the interposer will not load into what `command` starts, if there is a reason that can be seen.
pub fn obstacle(command: &[OsString]) -> Option<Obstacle> {
    launchers::chain(command).iter().find_map(|command| {
        let launch = launchers::launch(command);
        let of_program = program::file(command.first()?).and_then(|(path, content)| {
            let raised = raised(&path, &path).map(|raised| match &launch {
                Some(launch) => Obstacle { advice: behind(launch), ..raised },
                None => raised,
            });
            raised.or_else(|| format_of(&path, &content))
        });
        of_program.or_else(|| {
            let launch = launch.filter(|launch| launch.empties)?;
            let (by, started) = (&launch.by, started(&launch));
            Some(Obstacle::new(
                format!(
                    "`{by}` takes LD_PRELOAD out of the environment, so that memscope's library is not loaded into {started}"
                ),
                format!("leave LD_PRELOAD and MEMSCOPE_* in the environment, or {}", behind(&launch)),
            ))
        })
    })
}

/// Why what `command` starts cannot reach the folder of the logs, where it starts that in another place.
pub fn elsewhere(command: &[OsString]) -> Option<Obstacle> {
    let launch = launchers::launch(command)?;
    let (by, started) = (&launch.by, started(&launch));
    if launch.other_root {
        return Some(Obstacle::new(
            format!(
                "`{by}` starts {started} in another root folder, from which the folder of the logs cannot be reached"
            ),
            format!("start memscope inside: {by} memscope run -- {started}"),
        ));
    }
    let user = launch.user.as_deref().filter(|user| is_stranger(user))?;
    let advice = match launch.command.is_empty() {
        true => format!("start memscope as that user: memscope run -- {started}"),
        false => format!("start memscope as that user: {by} memscope run -- {started}"),
    };
    Some(Obstacle::new(
        format!("`{by}` starts {started} as another user ({user}), who cannot reach the folder of the logs"),
        advice,
    ))
}

/// The program that a launcher starts, as a shell reads it.
fn started(launch: &Launch) -> String {
    launch.command.first().map_or_else(|| "THE PROGRAM".to_owned(), |program| shell_word(&program.to_string_lossy()))
}

fn behind(launch: &Launch) -> String {
    match launch.command.is_empty() {
        true => "start memscope behind it: memscope run -- THE PROGRAM".to_owned(),
        false => format!("start memscope behind it: {} memscope run -- {}", launch.by, started(launch)),
    }
}

/// True for a user, by name or number, who is neither this one nor root. One of whom the system does not know is not told of.
fn is_stranger(user: &str) -> bool {
    let number = user.parse().ok().or_else(|| {
        let name = CString::new(user).ok()?;
        // SAFETY: a terminated name; the answer is read before anybody asks again.
        unsafe { libc::getpwnam(name.as_ptr()).as_ref() }.map(|entry| entry.pw_uid)
    });
    // SAFETY: has no preconditions.
    let own = unsafe { libc::geteuid() };
    number.is_some_and(|number: u32| ![ROOT, own].contains(&number))
}

/// Why no library is preloaded into the program in the file `executable`, which is called `shown`, whoever runs it.
pub fn format(executable: &Path, shown: &Path) -> Option<String> {
    format_of(shown, &program::read(executable)?).map(|obstacle| obstacle.to_string())
}

/// True for a program whose loader would end it because what is at `preload` does not fit: one of an old glibc, and musl's where the
/// path does not keep it away.
pub fn dies_of(preload: &OsStr, program: &OsStr) -> bool {
    let Some(loader) = program::file(program).and_then(|(_, content)| program::loader(&content)) else { return false };
    if loader.contains("musl") {
        return !preload::is_for_fitting_loaders(preload.as_encoded_bytes());
    }
    glibc::obstacle(Path::new(&loader)).is_some()
}

/// A sentence that says that the program at `path`, which is called `shown`, runs with the rights of another user, if it does.
pub fn privileges(path: &Path, shown: &Path) -> Option<String> {
    raised(path, shown).map(|obstacle| obstacle.to_string())
}

fn raised(path: &Path, shown: &Path) -> Option<Obstacle> {
    let data = fs::metadata(path).ok()?;
    // SAFETY: these have no preconditions.
    let (user, group) = unsafe { (libc::getuid(), libc::getgid()) };
    let raises = (data.mode() & libc::S_ISUID != 0 && data.uid() != user)
        || (data.mode() & libc::S_ISGID != 0 && data.gid() != group);
    raises.then(|| {
        Obstacle::new(
            format!(
                "{} is set-user-ID or set-group-ID, and the loader ignores preloads for such programs",
                shown.display()
            ),
            format!(
                "run memscope as its owner (user {}, group {}), or a copy of it without these bits",
                data.uid(),
                data.gid()
            ),
        )
    })
}

fn format_of(path: &Path, content: &[u8]) -> Option<Obstacle> {
    let shown = path.display();
    if content.get(..4) != Some(b"\x7fELF") {
        return None; // exec(2) will say what is wrong with it
    }
    if path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"ld-")) {
        return None; // a loader that is given the program as an argument: it preloads, and needs no loader itself
    }
    if content.get(4) != Some(&2) {
        return Some(Obstacle::new(
            format!("{shown} is a 32-bit program; memscope follows 64-bit ones"),
            "build it for 64 bits (programs of 64 bits that it starts are followed)",
        ));
    }
    let header = FileHeader64::<Endianness>::parse(content).ok()?;
    if header.e_machine.get(header.endian().ok()?) != host_machine() {
        return Some(Obstacle::new(format!("{shown} is for another processor"), "build it for this one"));
    }
    let Some(loader) = program::loader(content) else {
        return Some(Obstacle::new(
            format!("{shown} is statically linked, so nothing can be preloaded into it"),
            "link it dynamically, with glibc (programs that it starts are followed)",
        ));
    };
    if loader.contains("musl") {
        return Some(Obstacle::new(
            format!("{shown} uses musl, and the interposer needs glibc"),
            "build it for glibc, linked dynamically (programs of glibc that it starts are followed)",
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
    fn an_ordinary_program_has_no_obstacle() {
        for words in [&["sh"][..], &["env", "A=1", "nice", "sh", "-c", "exec sh"], &["sh", "-c", "ls; ls"]] {
            let command: Vec<OsString> = words.iter().map(OsString::from).collect();
            assert_eq!(obstacle(&command), None, "{words:?}");
        }
    }

    #[test]
    fn an_emptied_environment_is_an_obstacle_wherever_it_is_emptied() {
        let command = ["nice", "sh", "-c", "exec env -i sh"].map(OsString::from);
        let said = obstacle(&command).expect("LD_PRELOAD is taken away").to_string();
        assert!(said.contains("`env -i` takes") && said.ends_with("env -i memscope run -- sh"), "{said}");
    }

    #[test]
    fn another_place_is_told_with_the_command_that_starts_memscope_there() {
        let told = |line: &str| elsewhere(&line.split(' ').map(OsString::from).collect::<Vec<_>>());
        let root = told("chroot root /still -x").expect("another root folder");
        assert!(root.reason.contains("in another root folder"), "{root}");
        assert_eq!(root.advice, "start memscope inside: chroot root memscope run -- /still");
        let user = told("su 65534 -c ./x").expect("another user");
        assert!(user.reason.contains("starts THE PROGRAM as another user (65534)"), "{user}");
        for line in ["setpriv --reuid=0 ./x", "su no-such-user -c ./x", "env -i ./x"] {
            assert_eq!(told(line), None, "{line}");
        }
    }
}
