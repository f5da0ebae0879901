//! Names of what is preloaded, by which only those loaders find it that can load it.
//!
//! Every program of a run inherits LD_PRELOAD, and not every loader can do something with it. musl's ends the program: the
//! interposer needs glibc. glibc's own for 32 bits complains on stderr. So the path has a word in it that glibc's loaders replace
//! and musl's do not: musl's finds no such file, and passes it over without a word, as it does with all that it does not find;
//! the one for 32 bits replaces it by another word than the one for 64, and finds an empty library there.
//!
//! The folder is called libasan.so. The address sanitizer ends a program in which its library is not the first one, and knows it
//! by this part of the path. It misses nothing by being the second: what it stands before and the interposer does too (dlopen,
//! prctl) is passed on to it. All names lead to a file elsewhere, because a sanitizer that is linked statically ends a program
//! which has mapped a file of that name.
//!
//! Owns: the words, what they become, the links. Refuses: to trust a word that this process's own loader does not replace by a
//! known one; then the path has none, and a program of musl must be started without it.

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use anyhow::Result;

use super::{INTERPOSER_FILE, RUNTIME_FILE, RUNTIME_NAMES, folder, install_file, install_link};

const FOLDER: &str = "libasan.so";

/// Words that glibc's loaders replace. The first depends on the kernel and the processor, the second on who has built glibc.
const WORDS: [&str; 2] = ["$PLATFORM", "$LIB"];

/// What the words become in programs of 64 bits; the first is the folder, the others lead to it. `lib` is left out, which is
/// what some systems call the folder for 32 bits.
const FITTING: [&str; 5] = ["x86_64", "haswell", "xeon_phi", "lib64", "lib/x86_64-linux-gnu"];

/// The same in programs of 32 bits.
const OTHERS: [&str; 6] = ["i686", "i586", "i486", "i386", "lib32", "lib/i386-linux-gnu"];

/// Makes the folders in `folder`, which has the files. Where loaders find what is preloaded, as a path for them.
pub fn install(folder: &Path) -> Result<PathBuf> {
    let names = folder.join(FOLDER);
    let [fitting, others] = [FITTING[0], OTHERS[0]].map(|name| names.join(name));
    for part in [&names, &fitting, &others, &names.join("lib")] {
        folder::make(part)?;
    }
    install_link(&fitting.join(INTERPOSER_FILE), &format!("../../{INTERPOSER_FILE}"))?;
    install_file(&others.join(INTERPOSER_FILE), &empty_library())?;
    for name in RUNTIME_NAMES {
        install_link(&fitting.join(name), &format!("../../runtime/{RUNTIME_FILE}"))?;
        install_link(&others.join(name), INTERPOSER_FILE)?;
    }
    for (first, others) in [FITTING.split_first(), OTHERS.split_first()].into_iter().flatten() {
        for name in others {
            let up = if name.contains('/') { "../" } else { "" };
            install_link(&names.join(name), &format!("{up}{first}"))?;
        }
    }
    // A shell that reads the path once more as part of a line replaces the word by nothing.
    install_link(&names.join(INTERPOSER_FILE), &format!("{}/{INTERPOSER_FILE}", FITTING[0]))?;
    let word = WORDS.into_iter().find(|word| is_found(&names.join(word).join(INTERPOSER_FILE)));
    Ok(names.join(word.unwrap_or(FITTING[0])))
}

/// True when no other loader than a fitting one finds what is at `path`.
pub fn is_for_fitting_loaders(path: &[u8]) -> bool {
    path.contains(&b'$')
}

/// The file that fitting loaders find by a path of [`install`]'s.
pub fn found(path: &str) -> PathBuf {
    WORDS.into_iter().fold(path.to_owned(), |path, word| path.replace(word, FITTING[0])).into()
}

/// True when this process's loader finds a file by that path. It loads nothing.
fn is_found(path: &Path) -> bool {
    let Ok(path) = CString::new(path.as_os_str().as_bytes()) else { return false };
    // SAFETY: a terminated path; dlerror's text is not read. A file that is found and was not loaded before is no error.
    unsafe {
        libc::dlerror();
        !libc::dlopen(path.as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD).is_null() || libc::dlerror().is_null()
    }
}

/// A shared library for i386 without anything in it: a segment that is mapped, what the loader wants to know of a library, no
/// symbols.
fn empty_library() -> Vec<u8> {
    const HEADER: u32 = 52;
    const SEGMENT: u32 = 32;
    const SEGMENTS: u32 = 3;
    const DYNAMIC: u32 = HEADER + SEGMENTS * SEGMENT;
    const DYNAMIC_BYTES: u32 = 6 * 8;
    const HASH: u32 = DYNAMIC + DYNAMIC_BYTES;
    const SYMBOL_TABLE: u32 = HASH + 4 * 4;
    const SYMBOL: u32 = 16;
    const STRINGS: u32 = SYMBOL_TABLE + SYMBOL;
    const END: u32 = STRINGS + 1;
    const SHARED_LIBRARY: u32 = 3;
    const I386: u32 = 3;
    let words = [
        // Kind and machine, version, no entry, where the segments are, no sections, no flags, sizes and counts in halves.
        &[SHARED_LIBRARY | I386 << 16, 1, 0, HEADER, 0, 0, HEADER | SEGMENT << 16, SEGMENTS | 40 << 16, 0][..],
        // Segments: kind, offset, two addresses, two sizes, flags, alignment. The loader writes into the dynamic part. The last
        // one says that nothing here wants an executable stack.
        &[1, 0, 0, 0, END, END, 6, 0x1000],
        &[2, DYNAMIC, DYNAMIC, DYNAMIC, DYNAMIC_BYTES, DYNAMIC_BYTES, 6, 4],
        &[0x6474_e551, 0, 0, 0, 0, 0, 6, 16],
        // Tags: hash table, strings, symbols, the sizes of these, the end.
        &[4, HASH, 5, STRINGS, 6, SYMBOL_TABLE, 10, 1, 11, SYMBOL, 0, 0],
        // One bucket, which is empty; one symbol, which is none.
        &[1, 1, 0, 0],
        &[0; (SYMBOL / 4) as usize],
    ];
    let mut library = b"\x7fELF\x01\x01\x01\0\0\0\0\0\0\0\0\0".to_vec();
    library.extend(words.into_iter().flatten().flat_map(|word| word.to_le_bytes()));
    library.push(0); // the empty string
    library
}
