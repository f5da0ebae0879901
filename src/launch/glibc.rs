//! Which glibc the interposer needs, and which one a program would get.
//!
//! Owns: the newest symbol version that the interposer asks for, and the newest that the C library beside a loader has. Refuses: to
//! run a loader for that; the versions stand in the files.

use std::ffi::CStr;
use std::fs;
use std::path::Path;

use object::elf::FileHeader64;
use object::read::elf::FileHeader;
use object::{Endianness, LittleEndian};

use super::preflight::Obstacle;

/// A version as glibc numbers them.
pub type Version = (u32, u32);

/// That the glibc of `loader` is too old for the interposer, if it is.
pub fn obstacle(loader: &Path) -> Option<Obstacle> {
    let floor = floor()?;
    let (present, whose) = match beside(loader) {
        Some(version) => (version, format!("the program's loader is {}, whose glibc is", loader.display())),
        None => (present()?, "this system has glibc".to_string()),
    };
    (present < floor).then(|| {
        Obstacle::new(
            format!(
                "{whose} {}.{}, and the interposer of this build needs {}.{}",
                present.0, present.1, floor.0, floor.1
            ),
            "run the program with a newer glibc, or build memscope where this one is",
        )
    })
}

/// The glibc of this system.
pub fn present() -> Option<Version> {
    // SAFETY: returns a static, terminated string.
    let version = unsafe { CStr::from_ptr(libc::gnu_get_libc_version()) };
    parse(version.to_str().ok()?)
}

/// The newest glibc symbol version that the embedded interposer asks for.
pub fn floor() -> Option<Version> {
    let content = crate::embedded::interposer();
    let header = FileHeader64::<LittleEndian>::parse(content).ok()?;
    let sections = header.sections(LittleEndian, content).ok()?;
    let (mut needs, strings) = sections.gnu_verneed(LittleEndian, content).ok().flatten()?;
    let strings = sections.strings(LittleEndian, content, strings).ok()?;
    let mut newest = None;
    while let Some((_, mut versions)) = needs.next().ok().flatten() {
        while let Some(version) = versions.next().ok().flatten() {
            newest = newest.max(version.name(LittleEndian, strings).ok().and_then(number));
        }
    }
    newest
}

/// The newest symbol version of the C library that lies beside `loader`, where glibc has both.
fn beside(loader: &Path) -> Option<Version> {
    let content = fs::read(fs::canonicalize(loader).ok()?.with_file_name("libc.so.6")).ok()?;
    let content = content.as_slice();
    let header = FileHeader64::<Endianness>::parse(content).ok()?;
    let endian = header.endian().ok()?;
    let sections = header.sections(endian, content).ok()?;
    let (mut definitions, strings) = sections.gnu_verdef(endian, content).ok().flatten()?;
    let strings = sections.strings(endian, content, strings).ok()?;
    let mut newest = None;
    while let Some((_, mut names)) = definitions.next().ok().flatten() {
        let own = names.next().ok().flatten(); // what follows are the versions that it is built on
        newest = newest.max(own.and_then(|name| number(name.name(endian, strings).ok()?)));
    }
    newest
}

/// The number in the name of a symbol version.
fn number(name: &[u8]) -> Option<Version> {
    parse(std::str::from_utf8(name).ok()?.strip_prefix("GLIBC_")?)
}

fn parse(text: &str) -> Option<Version> {
    let mut parts = text.split('.');
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interposer_names_its_glibc() {
        let floor = floor().expect("the interposer links glibc");
        assert!(floor >= (2, 2), "{floor:?}");
    }

    #[test]
    fn the_systems_glibc_is_the_one_beside_its_loader() {
        // Every release has had symbols of its own, or the one before.
        let beside = beside(Path::new("/lib64/ld-linux-x86-64.so.2")).expect("this test is linked with glibc");
        let present = present().expect("glibc says its version");
        assert!(beside <= present && beside.1 + 4 > present.1, "{beside:?} {present:?}");
    }
}
