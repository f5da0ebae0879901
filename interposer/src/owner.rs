//! Whose code calls the driver: told right before an allocation, where it is a library that is known to keep memory for itself.
//!
//! Owns: the way from the return address of a hook to a number of `memscope_wire::owner`. The kernel's list of mappings tells which file
//! a page of code is of; it is read at the first call from a page, without a lock (the dynamic linker's functions take one). Refuses:
//! to say anything of other code, and to look at more of the stack than who called: behind the CUDA runtime stands whoever it may be.
//!
//! A page stays what it was: code that is unloaded, and other code that is loaded at its address, are taken for the same.

use core::ffi::c_int;
use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::Relaxed;
use memscope_wire::{Event, owner};

use crate::{log, names, system, thread};

/// Pages that are remembered: few places call the driver.
const PAGES: usize = 512;
const PAGE_BITS: u32 = 12;
const PATH_BYTES: usize = 1024;

/// By a page's number: that and its owner's, so that a place is whole at any moment. 0 is empty.
static KNOWN: [AtomicU64; PAGES] = [const { AtomicU64::new(0) }; PAGES];

/// Says whose code has called, if that is another's than at the thread's last allocation.
#[inline(always)]
pub fn settle() {
    let thread = thread::current();
    let now = number(thread.caller.get());
    if now != thread.recorded_owner.get() {
        moved(now);
    }
}

#[cold]
#[inline(never)]
fn moved(now: u8) {
    let known = owner::by_number(now);
    let owner = known.map_or(memscope_wire::TextId::NONE, |owner| names::identify_text(owner.name.as_bytes()));
    // The first event of a thread in a log forgets what was said in another one.
    if log::append(&Event::Owner { owner }).is_some() {
        thread::current().recorded_owner.set(now);
    }
}

/// The owner's number of the code at `address`.
#[inline(always)]
fn number(address: usize) -> u8 {
    let page = address as u64 >> PAGE_BITS;
    let place = KNOWN.get(page as usize % PAGES).map_or(0, |place| place.load(Relaxed));
    // The number has eight bits, and one says that there is one.
    if place >> 9 == page && place & 0x100 != 0 { place as u8 } else { look(address, page) }
}

#[cold]
#[inline(never)]
fn look(address: usize, page: u64) -> u8 {
    let mut path = [0; PATH_BYTES];
    let length = path_of(address, &mut path);
    let number = path.get(..length).map_or(0, owner::of_path);
    if let Some(place) = KNOWN.get(page as usize % PAGES) {
        place.store(page << 9 | 0x100 | number as u64, Relaxed);
    }
    number
}

/// Fills `path` with that of the file which is mapped at `address`; 0 when there is none or it does not fit.
fn path_of(address: usize, path: &mut [u8; PATH_BYTES]) -> usize {
    let Ok(maps) = system::open(c"/proc/self/maps", libc::O_RDONLY | libc::O_CLOEXEC, 0) else { return 0 };
    let length = search(maps, address, path);
    system::close(maps);
    length
}

fn search(maps: c_int, address: usize, path: &mut [u8; PATH_BYTES]) -> usize {
    let mut line = Line::default();
    let mut buffer = [0; 1024];
    loop {
        let Some(filled) = system::read(maps, &mut buffer) else { return 0 };
        let Some(bytes) = buffer.get(..filled).filter(|bytes| !bytes.is_empty()) else { return 0 };
        for byte in bytes {
            if *byte != b'\n' {
                line.take(*byte, path);
                continue;
            }
            if line.begin <= address && address < line.end {
                return line.length.min(PATH_BYTES);
            }
            line = Line::default();
        }
    }
}

/// A line of the list, as far as it was read: `begin-end rights offset device inode     path`.
#[derive(Default)]
struct Line {
    begin: usize,
    end: usize,
    /// Columns that are behind: 0 is the begin, 1 the end.
    column: usize,
    length: usize,
}

impl Line {
    fn take(&mut self, byte: u8, path: &mut [u8; PATH_BYTES]) {
        match (self.column, byte) {
            (0, b'-') => self.column = 1,
            (0, digit) => self.begin = self.begin << 4 | hexadecimal(digit),
            (1, b' ') => self.column = 2,
            (1, digit) => self.end = self.end << 4 | hexadecimal(digit),
            (2, b'/') => {
                self.column = 3;
                self.push(byte, path);
            }
            (2, _) => {}
            _ => self.push(byte, path),
        }
    }

    fn push(&mut self, byte: u8, path: &mut [u8; PATH_BYTES]) {
        match path.get_mut(self.length) {
            Some(place) => {
                *place = byte;
                self.length += 1;
            }
            // The end of a path tells the file: one that does not fit tells nothing.
            None => self.column = 4,
        }
        if self.column == 4 {
            self.length = 0;
        }
    }
}

fn hexadecimal(digit: u8) -> usize {
    match digit {
        b'0'..=b'9' => (digit - b'0') as usize,
        b'a'..=b'f' => (digit - b'a') as usize + 10,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_of_an_address_is_found() {
        let mut path = [0; PATH_BYTES];
        let length = path_of(the_file_of_an_address_is_found as *const () as usize, &mut path);
        let executable = std::env::current_exe().unwrap();
        assert_eq!(std::str::from_utf8(&path[..length]).unwrap(), executable.to_str().unwrap());
        assert_eq!(path_of(8, &mut path), 0);
        let heap = Box::new(0_u8);
        assert_eq!(path_of(&raw const *heap as usize, &mut path), 0, "memory of no file");
    }

    #[test]
    fn a_page_is_looked_up_once() {
        let here = a_page_is_looked_up_once as *const () as usize;
        assert_eq!(number(here), 0);
        let place = KNOWN[(here >> PAGE_BITS) % PAGES].load(Relaxed);
        assert_eq!((place >> 9, place & 0x1ff), (here as u64 >> PAGE_BITS, 0x100));
    }

    #[test]
    fn a_path_that_does_not_fit_is_none() {
        let mut path = [0; PATH_BYTES];
        let mut line = Line::default();
        for byte in b"1000-2f00 r-xp 00000000 08:01 99    /".iter().chain(&[b'x'; PATH_BYTES]) {
            line.take(*byte, &mut path);
        }
        assert_eq!((line.begin, line.end, line.length), (0x1000, 0x2f00, 0));
    }
}
