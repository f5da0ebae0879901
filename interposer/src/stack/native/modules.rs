//! The files of machine code that are mapped in the process.
//!
//! Owns: a ring of those that were met, in the log by name, and what they say of themselves: where they lie, what identifies them,
//! where their call frame information is. Refuses: locks, and to believe in a module that may have been unloaded: each entry has
//! the generation in which it was read (see `native::generation`).

use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicU64, fence};
use memscope_wire::TextId;
use memscope_wire::module::{BUILD_ID, MTIME, SIZE};
use memscope_wire::text::MAX_TEXT_BYTES;

use super::maps::{self, Mapping};
use super::memory;
use crate::{names, system};

/// Modules that are remembered at a time.
const PLACES: usize = 256;
/// Program headers of a file that are looked at.
const MOST_HEADERS: usize = 64;
/// Bytes of a file's notes that are looked through.
const NOTE_BYTES: usize = 512;
/// Longest build id.
const MOST_ID_BYTES: usize = 32;

/// A module, as far as stacks need it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Module {
    /// Where this part of its code is mapped.
    pub begin: usize,
    pub end: usize,
    /// What is added to the addresses in the file.
    pub bias: usize,
    /// Address of its table of call frame information (`.eh_frame_hdr`), 0 where it has none.
    pub table: usize,
    /// Its name in the log.
    pub name: TextId,
}

/// An entry: a count that is odd while it is written, and the words of a module.
struct Place {
    count: AtomicU64,
    words: [AtomicU64; 6],
}

/// The ring. All zero is empty.
#[repr(C)]
pub struct Modules {
    next: AtomicU64,
    places: [Place; PLACES],
}

impl Place {
    fn get(&self, generation: u64) -> Option<Module> {
        let before = self.count.load(Acquire);
        let [begin, end, bias, table, name, of] = self.words.each_ref().map(|word| word.load(Relaxed));
        fence(Acquire);
        (before & 1 == 0 && self.count.load(Relaxed) == before && of == generation && end != 0).then_some(Module {
            begin: begin as usize,
            end: end as usize,
            bias: bias as usize,
            table: table as usize,
            name: TextId(name),
        })
    }

    /// Writes an entry, unless another thread is at it.
    fn set(&self, module: &Module, generation: u64) {
        let before = self.count.load(Relaxed);
        if before & 1 != 0 || self.count.compare_exchange(before, before + 1, AcqRel, Relaxed).is_err() {
            return;
        }
        fence(Release);
        let Module { begin, end, bias, table, name } = *module;
        let words = [begin as u64, end as u64, bias as u64, table as u64, name.0, generation];
        for (place, word) in self.words.iter().zip(words) {
            place.store(word, Relaxed);
        }
        self.count.store(before.wrapping_add(2), Release);
    }
}

impl Modules {
    /// The module whose code is at an address; `None` for code that belongs to no file.
    #[cold]
    #[inline(never)]
    pub fn find(&self, address: usize, generation: u64) -> Option<Module> {
        let known = self.places.iter().filter_map(|place| place.get(generation));
        if let Some(module) = known.into_iter().find(|module| (module.begin..module.end).contains(&address)) {
            return Some(module);
        }
        let mapping = maps::find(address).filter(|mapping| mapping.executable)?;
        let module = read(&mapping)?;
        let place = self.next.fetch_add(1, Relaxed) as usize % PLACES;
        if let Some(place) = self.places.get(place) {
            place.set(&module, generation);
        }
        Some(module)
    }
}

/// True when an address is in memory from which code may run.
pub fn is_code(address: usize) -> bool {
    maps::find(address).is_some_and(|mapping| mapping.executable)
}

/// Reads what a file says of itself, and tells the log its name.
fn read(mapping: &Mapping) -> Option<Module> {
    let file = mapping.file_begin;
    if file == 0 || memory::number::<4>(file)? != *b"\x7fELF" {
        return None;
    }
    let headers = file.wrapping_add(u64::from_le_bytes(memory::number(file.wrapping_add(32))?) as usize);
    let [low, high] = memory::number(file.wrapping_add(56))?;
    let count = u16::from_le_bytes([low, high]) as usize;
    let header = |index: usize| Header::read(headers.wrapping_add(index.wrapping_mul(Header::BYTES)));
    let all = || (0..count.min(MOST_HEADERS)).filter_map(header);
    let first = all().find(|header| header.kind == Header::LOAD && header.offset == 0)?;
    let bias = file.wrapping_sub(first.address);
    let table = all().find(|header| header.kind == Header::CALL_FRAMES);
    let mut id = [0; MOST_ID_BYTES];
    let id_bytes = all()
        .filter(|header| header.kind == Header::NOTE)
        .find_map(|header| build_id(bias.wrapping_add(header.address), header.bytes, &mut id));
    Some(Module {
        begin: mapping.addresses.start,
        end: mapping.addresses.end,
        bias,
        table: table.map_or(0, |header| bias.wrapping_add(header.address)),
        name: tell(mapping.path(), id_bytes.and_then(|bytes| id.get(..bytes))),
    })
}

/// A program header, as far as it is of interest.
struct Header {
    kind: u32,
    offset: usize,
    address: usize,
    bytes: usize,
}

impl Header {
    const BYTES: usize = 56;
    const LOAD: u32 = 1;
    const NOTE: u32 = 4;
    const CALL_FRAMES: u32 = 0x6474_e550;

    fn read(address: usize) -> Option<Header> {
        let bytes: [u8; Header::BYTES] = memory::number(address)?;
        let [kind, offset, virtual_address, _, file_bytes, ..] = words(&bytes);
        Some(Header {
            kind: kind as u32,
            offset: offset as usize,
            address: virtual_address as usize,
            bytes: file_bytes as usize,
        })
    }
}

/// Numbers of 8 bytes.
fn words(bytes: &[u8; Header::BYTES]) -> [u64; 7] {
    let mut words = [0; 7];
    for (word, bytes) in words.iter_mut().zip(bytes.as_chunks::<8>().0) {
        *word = u64::from_le_bytes(*bytes);
    }
    words
}

/// Looks for the GNU build id among notes in memory: how many bytes it has.
fn build_id(notes: usize, bytes: usize, id: &mut [u8; MOST_ID_BYTES]) -> Option<usize> {
    const GNU_BUILD_ID: u32 = 3;
    let end = notes.checked_add(bytes.min(NOTE_BYTES))?;
    let round = |bytes: u32| (bytes as usize).wrapping_add(3) & !3;
    let mut at = notes;
    while at.checked_add(16)? <= end {
        let field = |index: usize| Some(u32::from_le_bytes(memory::number(at.wrapping_add(index * 4))?));
        let (name_bytes, content_bytes, kind) = (field(0)?, field(1)?, field(2)?);
        let content = at.checked_add(12)?.checked_add(round(name_bytes))?;
        if kind == GNU_BUILD_ID && name_bytes == 4 && field(3)? == u32::from_le_bytes(*b"GNU\0") {
            let place = id.get_mut(..content_bytes as usize).filter(|place| !place.is_empty())?;
            return memory::copy(content, place).then_some(content_bytes as usize);
        }
        at = content.checked_add(round(content_bytes))?;
    }
    None
}

/// Tells the log a module's name.
fn tell(path: &[u8], id: Option<&[u8]>) -> TextId {
    let mut name = Name { bytes: [0; MAX_TEXT_BYTES], used: 0 };
    name.push(path);
    match id {
        Some(id) => {
            name.push(BUILD_ID.as_bytes());
            for byte in id {
                for digit in [byte >> 4, byte & 15] {
                    name.push(&[if digit < 10 { b'0' + digit } else { b'a' + digit - 10 }]);
                }
            }
        }
        None => {
            // Behind the path lie zeroes, the first of which ends it.
            let status = core::ffi::CStr::from_bytes_until_nul(&name.bytes).ok().and_then(system::file_status);
            if let Some((bytes, seconds, nanoseconds)) = status {
                name.push(SIZE.as_bytes());
                name.push_number(bytes, 1);
                name.push(MTIME.as_bytes());
                name.push_number(seconds as u64, 1);
                name.push(b".");
                name.push_number(nanoseconds as u64, 9);
            }
        }
    }
    names::identify_text(name.bytes.get(..name.used).unwrap_or(&[]))
}

struct Name {
    bytes: [u8; MAX_TEXT_BYTES],
    used: usize,
}

impl Name {
    fn push(&mut self, bytes: &[u8]) {
        for byte in bytes {
            if let Some(place) = self.bytes.get_mut(self.used) {
                *place = *byte;
                self.used += 1;
            }
        }
    }

    /// A number in decimal, with at least so many digits.
    fn push_number(&mut self, mut number: u64, least: usize) {
        let mut digits = [b'0'; 20];
        let mut used = 0;
        for digit in digits.iter_mut().rev() {
            if number == 0 && used >= least {
                break;
            }
            *digit = b'0' + (number % 10) as u8;
            number /= 10;
            used += 1;
        }
        self.push(digits.get(20_usize.saturating_sub(used)..).unwrap_or(&[]));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_gives_only_what_was_written_whole_and_is_of_now() {
        let place = Place { count: AtomicU64::new(0), words: Default::default() };
        assert_eq!(place.get(0), None);
        let module = Module { begin: 1, end: 9, bias: 3, table: 4, name: TextId(5) };
        place.set(&module, 7);
        assert_eq!((place.get(7), place.get(8)), (Some(module), None));
        // Another thread is writing.
        place.count.store(3, Relaxed);
        place.set(&Module { begin: 2, ..module }, 7);
        assert_eq!(place.get(7), None);
        place.count.store(4, Relaxed);
        assert_eq!(place.get(7), Some(module));
    }

    #[test]
    fn numbers_are_written_in_decimal() {
        let text = |number, least| {
            let mut name = Name { bytes: [0; MAX_TEXT_BYTES], used: 0 };
            name.push_number(number, least);
            String::from_utf8(name.bytes[..name.used].to_vec()).unwrap()
        };
        assert_eq!([text(0, 1), text(120, 1), text(5, 9)], ["0", "120", "000000005"]);
        assert_eq!(text(u64::MAX, 1), u64::MAX.to_string());
    }

    #[test]
    fn this_program_says_what_its_file_says() {
        let here = maps::find(numbers_are_written_in_decimal as *const () as usize).unwrap();
        let module = read(&here).unwrap();
        assert!(module.table > here.file_begin && module.bias <= here.file_begin);
        let notes = std::process::Command::new("readelf").arg("-n").arg(std::env::current_exe().unwrap()).output();
        let notes = String::from_utf8(notes.expect("readelf of binutils").stdout).unwrap();
        let expected = notes.lines().find_map(|line| line.trim().strip_prefix("Build ID: "));
        let mut id = [0; MOST_ID_BYTES];
        let headers = here.file_begin + 64;
        let found = (0..20).filter_map(|index| Header::read(headers + index * 56)).find_map(|header| {
            (header.kind == Header::NOTE).then(|| build_id(module.bias + header.address, header.bytes, &mut id))?
        });
        let found = found.map(|bytes| id[..bytes].iter().map(|byte| format!("{byte:02x}")).collect::<String>());
        assert_eq!(found.as_deref(), expected);
    }
}
