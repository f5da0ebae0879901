//! The tables for exceptions that compilers write for all code (`.eh_frame`, DWARF's call frame information), read in place.
//!
//! Owns: the search for the entry of a place in code, and what its program says there about the three registers that a walk needs.
//! Refuses: everything that compilers do not write for x86-64 (then `None`, and the chain of frame registers is followed); other
//! registers; reads that could fault: each goes through the kernel, since a broken stack leads to addresses of any kind, and a
//! module may be unloaded at this moment. A place is looked up once, so that this may take some microseconds.
//!
//! The crates for this were looked at: framehop allocates, and gimli's part without an allocator can panic.

mod cursor;
mod entry;
mod program;

use super::memory;
use super::rule::Way;
use entry::Entry;
use program::{Program, State};

/// What holds at a place in code; `None` when the tables of its module do not say, or not in a way that is known here.
#[cold]
#[inline(never)]
pub fn way(table: usize, place: usize) -> Option<Way> {
    let (entry, place) = covering(table, place).or_else(|| {
        // A return address that no call has left, as that of a coroutine's first function, is the beginning of a function.
        let behind = place.wrapping_add(1);
        covering(table, behind).filter(|(entry, _)| entry.begin == behind)
    })?;
    if entry.common.signal {
        return Some(Way::Signal);
    }
    let mut state = State::START;
    let mut program = Program::new(&entry.common);
    program.run(entry.common.instructions, &mut state, State::START, None)?;
    let start = state;
    program.run(entry.instructions, &mut state, start, Some((entry.begin, place)))?;
    state.way()
}

/// The entry of the code at a place.
fn covering(table: usize, place: usize) -> Option<(Entry, usize)> {
    let entry = Entry::read(search(table, place)?)?;
    (place.wrapping_sub(entry.begin) < entry.bytes).then_some((entry, place))
}

/// Address of the entry that may hold a place, by the table for binary search.
fn search(table: usize, place: usize) -> Option<usize> {
    if table == 0 {
        return None;
    }
    // Version 1; a pointer relative to itself, a count, and pairs of numbers relative to the table: all linkers write it so.
    const FORM: [u8; 4] = [1, 0x1b, 0x03, 0x3b];
    if memory::number::<4>(table)? != FORM {
        return None;
    }
    let count = u32::from_le_bytes(memory::number(table.wrapping_add(8))?) as usize;
    let pair = |index: usize| -> Option<(usize, usize)> {
        let bytes: [u8; 8] = memory::number(table.wrapping_add(12).wrapping_add(index.wrapping_mul(8)))?;
        let [a, b, c, d, e, f, g, h] = bytes;
        let relative = |bytes| table.wrapping_add(i32::from_le_bytes(bytes) as isize as usize);
        Some((relative([a, b, c, d]), relative([e, f, g, h])))
    };
    let (mut low, mut high) = (0, count);
    while low < high {
        let middle = low.wrapping_add(high.wrapping_sub(low) >> 1);
        if pair(middle)?.0 <= place { low = middle.wrapping_add(1) } else { high = middle }
    }
    Some(pair(low.checked_sub(1)?)?.1)
}

#[cfg(test)]
mod tests {
    use gimli::{BaseAddresses, CfaRule, EhFrame, LittleEndian, RegisterRule, UnwindContext, UnwindSection, X86_64};
    use gimli::{CieOrFde, EndianSlice, Operation, UnwindExpression};
    use object::{Object, ObjectSection};

    use super::super::maps;
    use super::super::rule::{Base, Saved};
    use super::*;

    type Slice<'a> = EndianSlice<'a, LittleEndian>;

    /// A register plus an offset, and whether what lies there is meant.
    fn operations(
        expression: &UnwindExpression<usize>,
        frames: &EhFrame<Slice>,
        encoding: gimli::Encoding,
    ) -> Option<(u16, i64, bool)> {
        let mut operations = expression.get(frames).unwrap().operations(encoding);
        let Some(Operation::RegisterOffset { register, offset, .. }) = operations.next().ok()? else { return None };
        match operations.next().ok()? {
            None => Some((register.0, offset, false)),
            Some(Operation::Deref { .. }) => operations.next().ok()?.is_none().then_some((register.0, offset, true)),
            Some(_) => None,
        }
    }

    /// What gimli says of a row, in our words; `None` for what is not told here.
    fn truth(row: &gimli::UnwindTableRow<usize>, frames: &EhFrame<Slice>, encoding: gimli::Encoding) -> Option<Way> {
        match row.register(X86_64::RA) {
            Some(RegisterRule::Undefined) => return Some(Way::Outermost),
            Some(RegisterRule::Offset(-8)) => {}
            _ => return None,
        }
        let (base, offset) = match row.cfa() {
            CfaRule::RegisterAndOffset { register: X86_64::RSP, offset } => (Base::Stack, *offset),
            CfaRule::RegisterAndOffset { register: X86_64::RBP, offset } => (Base::Frame, *offset),
            CfaRule::Expression(expression) => match operations(expression, frames, encoding)? {
                (6, offset, false) => (Base::Frame, offset),
                (7, offset, false) => (Base::Stack, offset),
                (6, offset, true) => (Base::AtFrame, offset),
                (7, offset, true) => (Base::AtStack, offset),
                _ => return None,
            },
            _ => return None,
        };
        let saved = match row.register(X86_64::RBP) {
            None | Some(RegisterRule::Undefined | RegisterRule::SameValue) => Saved::Same,
            Some(RegisterRule::Offset(at)) => Saved::AtBase(at as i32),
            Some(RegisterRule::Expression(expression)) => match operations(&expression, frames, encoding)? {
                (6, at, false) => Saved::AtFrame(at as i32),
                _ => return None,
            },
            _ => return None,
        };
        Some(Way::Frame { base, offset: offset as i32, saved })
    }

    /// Compares every `stride`-th row of the module that holds an address; how many.
    fn compare(address: usize, stride: usize) -> usize {
        let mapping = maps::find(address).unwrap();
        let bytes = std::fs::read(std::str::from_utf8(mapping.path()).unwrap()).unwrap();
        let file = object::File::parse(&*bytes).unwrap();
        let bias = mapping.file_begin
            - file.segments().map(|segment| object::ObjectSegment::address(&segment)).min().unwrap() as usize;
        let section = |name: &str| file.section_by_name(name).unwrap();
        let table = bias + section(".eh_frame_hdr").address() as usize;
        let section = section(".eh_frame");
        let data = section.data().unwrap();
        let frames = EhFrame::new(data, LittleEndian);
        let bases = BaseAddresses::default().set_eh_frame(section.address());
        let mut context = UnwindContext::new();
        let (mut rows, mut compared) = (0, 0);
        let mut entries = frames.entries(&bases);
        while let Some(entry) = entries.next().unwrap() {
            let CieOrFde::Fde(partial) = entry else { continue };
            let fde = partial.parse(EhFrame::cie_from_offset).unwrap();
            let mut of_entry = fde.rows(&frames, &bases, &mut context).unwrap();
            while let Ok(Some(row)) = of_entry.next_row() {
                rows += 1;
                if rows % stride != 0 || row.start_address() == row.end_address() {
                    continue;
                }
                let expected = match fde.cie().is_signal_trampoline() {
                    true => Some(Way::Signal),
                    false => truth(row, &frames, fde.cie().encoding()),
                };
                for place in [row.start_address(), row.end_address() - 1] {
                    assert_eq!(way(table, bias + place as usize), expected, "{place:#x} of {row:?}");
                    compared += 1;
                }
            }
        }
        compared
    }

    #[test]
    fn every_place_has_the_way_that_gimli_finds() {
        let libc = libc::qsort as *const () as usize;
        assert!(compare(libc, 1) > 10_000);
        assert!(compare(compare as *const () as usize, 5) > 1000);
    }

    #[test]
    fn what_is_no_table_says_nothing() {
        let nothing = [0_u8; 64];
        assert_eq!(way(0, 1), None);
        assert_eq!(way(nothing.as_ptr() as usize, 1), None);
        assert_eq!(way(8, 1), None);
        // A table whose only entry leads nowhere.
        let mut table = [0_u8; 64];
        table[..4].copy_from_slice(&[1, 0x1b, 0x03, 0x3b]);
        table[8] = 1;
        let at = table.as_ptr() as usize;
        table[12..16].copy_from_slice(&0_i32.to_le_bytes());
        table[16..20].copy_from_slice(&i32::MIN.to_le_bytes());
        assert_eq!(way(at, at + 5), None);
    }
}
