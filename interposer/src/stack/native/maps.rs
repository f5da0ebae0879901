//! What is mapped where in this process, as the kernel tells.
//!
//! Owns: reading `/proc/self/maps` by system calls, piece by piece, in a fixed amount of memory. Refuses: the dynamic linker's own
//! lists, which can only be read under its lock.

use core::ops::Range;

use crate::system;

/// Room for the path of a mapping: longer ones are cut.
pub const PATH_BYTES: usize = 512;
/// Longest line that is taken in whole: what the kernel writes before the path, and the path.
const LINE_BYTES: usize = 128 + PATH_BYTES;

/// A mapping.
#[derive(Clone)]
pub struct Mapping {
    pub addresses: Range<usize>,
    pub executable: bool,
    /// Where the file that is mapped here begins in memory; 0 when it has no beginning there, or nothing is mapped from a file.
    pub file_begin: usize,
    path: [u8; PATH_BYTES],
    path_bytes: usize,
}

impl Mapping {
    /// The file's path, or the kernel's name in brackets; empty for neither.
    pub fn path(&self) -> &[u8] {
        self.path.get(..self.path_bytes).unwrap_or(&[])
    }
}

/// The mapping that holds an address; `None` too in a program that filters its system calls.
#[cold]
#[inline(never)]
pub fn find(address: usize) -> Option<Mapping> {
    let file = system::open(c"/proc/self/maps", libc::O_RDONLY | libc::O_CLOEXEC, 0).ok()?;
    let mut search = Search { address, ..Search::NOTHING };
    let mut line = [0; LINE_BYTES];
    let mut used = 0;
    let mut piece = [0; 2048];
    'all: while let Some(bytes) = system::read(file, &mut piece).and_then(|bytes| piece.get(..bytes))
        && !bytes.is_empty()
    {
        for byte in bytes {
            if *byte != b'\n' {
                // What does not fit is cut: the path is last.
                if let Some(place) = line.get_mut(used) {
                    *place = *byte;
                    used += 1;
                }
                continue;
            }
            let over = line.get(..used).is_none_or(|line| search.see(line));
            used = 0;
            if over {
                break 'all;
            }
        }
    }
    system::close(file);
    search.found
}

struct Search {
    address: usize,
    /// Device and inode of the last line with a file, where its beginning is mapped, and where the last line of it ends.
    file: (u64, u64),
    file_begin: usize,
    end: usize,
    found: Option<Mapping>,
}

impl Search {
    const NOTHING: Search = Search { address: 0, file: (0, 0), file_begin: 0, end: 0, found: None };

    /// Takes in a line; true when the search is over.
    fn see(&mut self, line: &[u8]) -> bool {
        let Some(line) = Line::read(line) else { return false };
        if line.inode != 0 {
            let same = self.file == (line.device, line.inode);
            // A small file's first page may belong to two of its segments, which follow each other.
            if line.offset == 0 && !(same && self.end == line.addresses.start) {
                self.file_begin = line.addresses.start;
            } else if !same {
                self.file_begin = 0;
            }
            self.file = (line.device, line.inode);
            self.end = line.addresses.end;
        }
        if self.address < line.addresses.end {
            if self.address >= line.addresses.start {
                let mut path = [0; PATH_BYTES];
                let mut path_bytes = 0;
                for (place, byte) in path.iter_mut().zip(line.path) {
                    *place = *byte;
                    path_bytes += 1;
                }
                self.found = Some(Mapping {
                    addresses: line.addresses,
                    executable: line.executable,
                    file_begin: if line.inode == 0 { 0 } else { self.file_begin },
                    path,
                    path_bytes,
                });
            }
            return true;
        }
        false
    }
}

/// A line, read.
struct Line<'a> {
    addresses: Range<usize>,
    executable: bool,
    offset: u64,
    device: u64,
    inode: u64,
    path: &'a [u8],
}

impl<'a> Line<'a> {
    /// `start-end rwxp offset major:minor inode   path`.
    fn read(line: &'a [u8]) -> Option<Line<'a>> {
        let mut rest = line;
        let start = number(&mut rest, 16, b'-')? as usize;
        let end = number(&mut rest, 16, b' ')? as usize;
        let executable = *rest.get(2)? == b'x';
        rest = rest.get(5..)?;
        let offset = number(&mut rest, 16, b' ')?;
        let device = number(&mut rest, 16, b':')? << 32 | number(&mut rest, 16, b' ')?;
        let inode = number(&mut rest, 10, b' ').unwrap_or(0);
        while let Some((b' ', after)) = rest.split_first() {
            rest = after;
        }
        Some(Line { addresses: start..end, executable, offset, device, inode, path: rest })
    }
}

/// Reads digits as far as `end`, and passes it.
fn number(rest: &mut &[u8], base: u32, end: u8) -> Option<u64> {
    let mut number: u64 = 0;
    loop {
        let (byte, after) = rest.split_first()?;
        *rest = after;
        if *byte == end {
            return Some(number);
        }
        number = number.checked_mul(base as u64)?.checked_add(char::from(*byte).to_digit(base)? as u64)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_read() {
        let line = b"7f1c2a000000-7f1c2a021000 r-xp 0001f000 fd:01 1234567                    /usr/lib/a b.so";
        let line = Line::read(line).unwrap();
        assert_eq!(line.addresses, 0x7f1c_2a00_0000..0x7f1c_2a02_1000);
        assert!(line.executable);
        assert_eq!((line.offset, line.device, line.inode), (0x1f000, 0xfd_0000_0001, 1_234_567));
        assert_eq!(line.path, b"/usr/lib/a b.so");
        let line = Line::read(b"7ffd1000-7ffd2000 rw-p 00000000 00:00 0 ").unwrap();
        assert!(!line.executable && line.inode == 0 && line.path.is_empty());
        assert!(Line::read(b"7ffd1000-7ffd2000 rw").is_none());
        assert!(Line::read(b"").is_none());
    }

    #[test]
    fn this_program_finds_itself() {
        let here = find(this_program_finds_itself as *const () as usize).unwrap();
        let path = std::env::current_exe().unwrap();
        assert_eq!(here.path(), path.to_str().unwrap().as_bytes());
        assert!(here.executable && here.file_begin != 0 && here.file_begin < here.addresses.end);
        let local = 0_u8;
        let stack = find(&raw const local as usize).unwrap();
        assert!(!stack.executable && stack.file_begin == 0);
        assert!(find(8).is_none());
    }

    #[test]
    fn a_file_without_its_beginning_has_none() {
        let mut search = Search { address: 0x5000, ..Search::NOTHING };
        assert!(!search.see(b"1000-2000 r--p 00000000 00:01 7 /a"));
        assert!(!search.see(b"2000-3000 r-xp 00001000 00:01 7 /a"));
        assert!(search.see(b"5000-6000 r-xp 00001000 00:01 8 /b"));
        assert_eq!(search.found.unwrap().file_begin, 0);
    }

    #[test]
    fn a_page_that_belongs_to_two_segments_is_one_beginning() {
        let lines: [&[u8]; 4] = [
            b"1000-2000 r--p 00000000 00:01 7 /a",
            b"2000-3000 r-xp 00000000 00:01 7 /a",
            b"3000-4000 rw-p 00000000 00:00 0 ",
            b"5000-6000 r-xp 00000000 00:01 7 /a",
        ];
        let begin = |address| {
            let mut search = Search { address, ..Search::NOTHING };
            lines.iter().any(|line| search.see(line));
            search.found.unwrap().file_begin
        };
        assert_eq!([begin(0x1000), begin(0x2fff), begin(0x5000)], [0x1000, 0x1000, 0x5000]);
    }
}
