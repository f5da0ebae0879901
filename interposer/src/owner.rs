//! Whose code calls the driver: told right before an allocation, as the file of that code.
//!
//! Owns: the way from the return address of a hook to a file, and past code that asks for others (the CUDA runtime, ctypes) to who
//! asked that. The kernel's list of mappings tells which file a page of code is of; it is read at the first call from a page, without
//! a lock (the dynamic linker's functions take one). Refuses: to say what a file is called in reports, and to climb the stack where
//! who called is who asked.

use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};
use memscope_wire::{Event, TextId, owner};

use crate::stack::native::{self, PATH_BYTES};
use crate::{log, names, thread};

/// Pages that are remembered: few places call the driver.
const PAGES: usize = 512;
const PAGE_BITS: u32 = 12;
/// Files that are told apart; what calls beyond them is nobody's.
const FILES: usize = 255;
/// Frames of code that asks for others that are passed by.
const DEEPEST: usize = 24;

/// By a page's number: see [`Page`]. 0 is empty.
static KNOWN: [AtomicU64; PAGES] = [const { AtomicU64::new(0) }; PAGES];
/// Hashes of the files' paths, by their number less 1.
static MET: [AtomicU64; FILES] = [const { AtomicU64::new(0) }; FILES];

/// What is known of a page of code, in one word, so that it is whole at any moment: from the highest bits on how many unloads there
/// had been (another module may lie there after one), the page's number, whether its code asks for others, that there is something,
/// and the number of its file; 0 is none.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Page(u64);

impl Page {
    const THERE: u64 = 1 << 8;
    const FOR_OTHERS: u64 = 1 << 9;
    /// Addresses of programs have 47 bits.
    const NUMBER_BITS: u32 = 47 - PAGE_BITS;

    /// The word without what is found out.
    #[inline(always)]
    fn key(address: usize) -> u64 {
        let number = address as u64 >> PAGE_BITS & ((1 << Page::NUMBER_BITS) - 1);
        native::generation() << (Page::NUMBER_BITS + 10) | number << 10 | Page::THERE
    }

    #[inline(always)]
    fn of(address: usize) -> Page {
        let key = Page::key(address);
        let known = KNOWN.get((address >> PAGE_BITS) % PAGES).map_or(0, |place| place.load(Relaxed));
        if known & !(Page::FOR_OTHERS | 0xff) == key { Page(known) } else { look(address, key) }
    }

    #[inline(always)]
    fn asks_for_others(self) -> bool {
        self.0 & Page::FOR_OTHERS != 0
    }

    #[inline(always)]
    fn file(self) -> u8 {
        self.0 as u8
    }
}

#[cold]
#[inline(never)]
fn look(address: usize, key: u64) -> Page {
    let mut path = [0; PATH_BYTES];
    let path = native::file_at(address, &mut path).filter(|path| path.first() == Some(&b'/')).unwrap_or(&[]);
    let for_others = if owner::asks_for_others(path) { Page::FOR_OTHERS } else { 0 };
    let page = Page(key | for_others | u64::from(number(TextId::of(path))));
    if let Some(place) = KNOWN.get((address >> PAGE_BITS) % PAGES) {
        place.store(page.0, Relaxed);
    }
    page
}

/// The number of the file whose path has this hash; 0 for none, and where there are too many.
fn number(path: TextId) -> u8 {
    if path.is_none() {
        return 0;
    }
    let mine = |place: &AtomicU64| match place.compare_exchange(0, path.0, AcqRel, Acquire) {
        Ok(_) => true,
        Err(known) => known == path.0,
    };
    MET.iter().position(mine).map_or(0, |position| position as u8 + 1)
}

/// Says whose code has called, if that is another's than at the thread's last allocation.
#[inline(always)]
pub fn settle() {
    let thread = thread::current();
    let caller = thread.caller.get();
    let page = Page::of(caller);
    if page.asks_for_others() {
        settle_beyond(caller, page);
    } else if page.file() != thread.recorded_owner.get() {
        tell(page.file(), caller);
    }
}

/// The same where the caller asks for others. Where nobody is found behind it, it stands for itself.
#[cold]
#[inline(never)]
fn settle_beyond(caller: usize, of_caller: Page) {
    let asked = native::innermost(DEEPEST, |place| !Page::of(place).asks_for_others());
    let (address, file) = match asked.map(|place| (place, Page::of(place).file())) {
        Some((place, file)) if file != 0 => (place, file),
        _ => (caller, of_caller.file()),
    };
    if file != thread::current().recorded_owner.get() {
        tell(file, address);
    }
}

#[cold]
#[inline(never)]
fn tell(file: u8, address: usize) {
    let known = (file as usize).checked_sub(1).and_then(|position| MET.get(position));
    let mut owner = TextId(known.map_or(0, |hash| hash.load(Relaxed)));
    if !owner.is_none() && !names::is_sent(owner) {
        let mut path = [0; PATH_BYTES];
        owner = native::file_at(address, &mut path).map_or(TextId::NONE, names::identify_text);
    }
    // The first event of a thread in a log forgets what was said in another one.
    if log::append(&Event::Owner { owner }).is_some() {
        thread::current().recorded_owner.set(file);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_of_an_address_is_found() {
        let mut path = [0; PATH_BYTES];
        let found = native::file_at(the_file_of_an_address_is_found as *const () as usize, &mut path);
        let executable = std::env::current_exe().unwrap();
        assert_eq!(found, Some(executable.to_str().unwrap().as_bytes()));
        assert_eq!(native::file_at(8, &mut path), None);
        let here = Page::of(the_file_of_an_address_is_found as *const () as usize);
        assert_eq!(MET[here.file() as usize - 1].load(Relaxed), TextId::of(executable.to_str().unwrap().as_bytes()).0);
        let heap = Box::new(0_u8);
        assert_eq!(Page::of(&raw const *heap as usize).file(), 0, "memory of no file");
    }

    #[test]
    fn a_page_is_looked_up_once_and_again_after_an_unload() {
        let here = a_page_is_looked_up_once_and_again_after_an_unload as *const () as usize;
        let page = Page::of(here);
        let place = &KNOWN[(here >> PAGE_BITS) % PAGES];
        assert_eq!(place.load(Relaxed), page.0);
        assert!(page.file() != 0 && !page.asks_for_others());
        // What another generation has left there is not believed.
        let stale = Page(page.0 ^ 1 << 63 ^ 0xff);
        place.store(stale.0, Relaxed);
        assert_eq!(Page::of(here), page);
    }

    #[test]
    fn files_keep_their_numbers() {
        let [one, other] = [b"/a/one.so", b"/a/two.so"].map(|path| number(TextId::of(path)));
        assert!(one != 0 && other != 0 && one != other);
        assert_eq!(number(TextId::of(b"/a/one.so")), one);
        assert_eq!(number(TextId::NONE), 0);
    }
}
