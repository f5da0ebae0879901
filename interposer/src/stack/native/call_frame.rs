//! The tables for exceptions that compilers write for all code (`.eh_frame`, DWARF's call frame information), read in place.
//!
//! Owns: the search for the entry of a place in code, and what its program says there about the three registers that a walk needs.
//! Refuses: everything that compilers do not write for x86-64 (then `None`, and the chain of frame registers is followed); other
//! registers; reads that could fault: each goes through the kernel, since a broken stack leads to addresses of any kind, and a
//! module may be unloaded at this moment. A place is looked up once, so that this may take some microseconds.
//!
//! The crates for this were looked at: framehop allocates, and gimli's part without an allocator can panic.

use super::memory;
use super::rule::{Base, Saved, Way};

/// Numbers of registers in DWARF.
const FRAME_REGISTER: u64 = 6;
const STACK_REGISTER: u64 = 7;
const RETURN_ADDRESS: u64 = 16;
/// How far the return address is below the canonical address, on this processor always.
const RETURN_BELOW: i64 = -8;
/// States that a program may remember at a time.
const REMEMBERED: usize = 8;
/// Longest entry that is read: those of real code have less than a few kilobytes.
const MOST_BYTES: usize = 1 << 20;
/// Most instructions of a program.
const MOST_INSTRUCTIONS: usize = 1 << 16;

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
    let mut program = Program { remembered: [State::START; REMEMBERED], depth: 0, common: &entry.common };
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

/// Bytes of the module, one after the other.
#[derive(Clone)]
struct Cursor {
    at: usize,
    end: usize,
    window: [u8; 64],
    window_at: usize,
    window_bytes: usize,
}

impl Cursor {
    fn new(at: usize, bytes: usize) -> Option<Cursor> {
        let end = at.checked_add(bytes)?;
        Some(Cursor { at, end, window: [0; 64], window_at: at, window_bytes: 0 })
    }

    fn is_empty(&self) -> bool {
        self.at >= self.end
    }

    fn byte(&mut self) -> Option<u8> {
        if self.is_empty() {
            return None;
        }
        if self.at.wrapping_sub(self.window_at) >= self.window_bytes {
            let bytes = self.end.wrapping_sub(self.at).min(self.window.len());
            self.window_at = self.at;
            self.window_bytes = 0;
            if !memory::copy(self.at, self.window.get_mut(..bytes)?) {
                return None;
            }
            self.window_bytes = bytes;
        }
        let byte = self.window.get(self.at.wrapping_sub(self.window_at))?;
        self.at = self.at.wrapping_add(1);
        Some(*byte)
    }

    fn fixed<const BYTES: usize>(&mut self) -> Option<[u8; BYTES]> {
        let mut bytes = [0; BYTES];
        for place in &mut bytes {
            *place = self.byte()?;
        }
        Some(bytes)
    }

    fn skip(&mut self, bytes: u64) -> Option<()> {
        self.at = self.at.checked_add(usize::try_from(bytes).ok()?).filter(|at| *at <= self.end)?;
        Some(())
    }

    /// An unsigned LEB128 number, of which all that matter have less than 64 bits; and the bits that its bytes had.
    fn leb(&mut self) -> Option<(u64, u32, u8)> {
        let (mut number, mut shift) = (0_u64, 0_u32);
        loop {
            let byte = self.byte()?;
            if shift < u64::BITS {
                number |= (byte as u64 & 0x7f).wrapping_shl(shift);
            }
            shift = shift.wrapping_add(7);
            if byte & 0x80 == 0 {
                return Some((number, shift, byte));
            }
            if shift > 2 * u64::BITS {
                return None;
            }
        }
    }

    fn unsigned(&mut self) -> Option<u64> {
        self.leb().map(|(number, ..)| number)
    }

    fn signed(&mut self) -> Option<i64> {
        let (number, bits, last) = self.leb()?;
        let negative = last & 0x40 != 0 && bits < u64::BITS;
        Some(if negative { number | u64::MAX.wrapping_shl(bits) } else { number } as i64)
    }

    /// A pointer in one of the encodings that are written for code.
    fn pointer(&mut self, encoding: u8) -> Option<usize> {
        let here = self.at;
        let number = match encoding & 0x0f {
            0x00 | 0x04 | 0x0c => u64::from_le_bytes(self.fixed()?) as usize,
            0x03 => u32::from_le_bytes(self.fixed()?) as usize,
            0x0b => i32::from_le_bytes(self.fixed()?) as isize as usize,
            _ => return None,
        };
        match encoding & 0x70 {
            0x00 => Some(number),
            0x10 => Some(here.wrapping_add(number)),
            _ => None,
        }
    }
}

/// What entries have in common (a CIE).
struct Common {
    code_unit: u64,
    data_unit: i64,
    encoding: u8,
    augmented: bool,
    signal: bool,
    instructions: (usize, usize),
}

/// The entry of a piece of code (an FDE).
struct Entry {
    common: Common,
    begin: usize,
    bytes: usize,
    /// Where its program is, and how long.
    instructions: (usize, usize),
}

/// The content of an entry behind its length.
fn content(at: usize) -> Option<Cursor> {
    let bytes = u32::from_le_bytes(memory::number(at)?) as usize;
    // 0 ends the section, and all ones begin a length that no module needs.
    if bytes == 0 || bytes > MOST_BYTES { None } else { Cursor::new(at.checked_add(4)?, bytes) }
}

impl Entry {
    fn read(at: usize) -> Option<Entry> {
        let mut cursor = content(at)?;
        let here = cursor.at;
        let back = u32::from_le_bytes(cursor.fixed()?) as usize;
        let common = Common::read(here.checked_sub(back).filter(|_| back != 0)?)?;
        let begin = cursor.pointer(common.encoding)?;
        // A size is never relative.
        let bytes = cursor.pointer(common.encoding & 0x0f)?;
        if common.augmented {
            let bytes = cursor.unsigned()?;
            cursor.skip(bytes)?;
        }
        Some(Entry { instructions: (cursor.at, cursor.end.wrapping_sub(cursor.at)), common, begin, bytes })
    }
}

impl Common {
    fn read(at: usize) -> Option<Common> {
        let mut cursor = content(at)?;
        if cursor.fixed::<4>()? != [0; 4] {
            return None;
        }
        let version = cursor.byte()?;
        let mut augmentation = [0; 8];
        let mut letters = 0;
        loop {
            match cursor.byte()? {
                0 => break,
                letter => *augmentation.get_mut(letters)? = letter,
            }
            letters = letters.wrapping_add(1);
        }
        let code_unit = cursor.unsigned()?;
        let data_unit = cursor.signed()?;
        let returns = match version {
            1 => cursor.byte()? as u64,
            3 => cursor.unsigned()?,
            _ => return None,
        };
        if returns != RETURN_ADDRESS {
            return None;
        }
        let mut common =
            Common { code_unit, data_unit, encoding: 0, augmented: false, signal: false, instructions: (0, 0) };
        let mut end_of_augmentation = None;
        for letter in augmentation.iter().take(letters) {
            match letter {
                b'z' => {
                    let bytes = cursor.unsigned()?;
                    let mut behind = cursor.clone();
                    behind.skip(bytes)?;
                    end_of_augmentation = Some(behind.at);
                    common.augmented = true;
                }
                b'R' => common.encoding = cursor.byte()?,
                b'P' => {
                    let encoding = cursor.byte()?;
                    // Its value is of no interest: what it is relative to does not matter.
                    cursor.pointer(encoding & 0x0f)?;
                }
                b'L' => {
                    cursor.byte()?;
                }
                b'S' => common.signal = true,
                _ => return None,
            }
        }
        if let Some(end) = end_of_augmentation {
            cursor.at = end;
        }
        common.instructions = (cursor.at, cursor.end.wrapping_sub(cursor.at));
        Some(common)
    }
}

/// Where a register's value in the caller is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Register {
    Same,
    /// At the canonical address plus the offset.
    AtBase(i64),
    /// At the frame register plus the offset.
    AtFrame(i64),
    /// Nowhere.
    Undefined,
    /// Somewhere else.
    Other,
}

/// What a program has said so far.
#[derive(Clone, Copy)]
struct State {
    /// `None`: in a way that is not known here.
    base: Option<(Base, i64)>,
    frame: Register,
    returns: Register,
}

impl State {
    const START: State = State { base: None, frame: Register::Same, returns: Register::AtBase(RETURN_BELOW) };

    fn way(&self) -> Option<Way> {
        match self.returns {
            Register::Undefined => return Some(Way::Outermost),
            Register::AtBase(RETURN_BELOW) => {}
            _ => return None,
        }
        let (base, offset) = self.base?;
        let saved = match self.frame {
            // A caller's frame register that is nowhere is not asked for either.
            Register::Same | Register::Undefined => Saved::Same,
            Register::AtBase(at) => Saved::AtBase(i32::try_from(at).ok()?),
            Register::AtFrame(at) => Saved::AtFrame(i32::try_from(at).ok()?),
            Register::Other => return None,
        };
        Some(Way::Frame { base, offset: i32::try_from(offset).ok()?, saved })
    }

    fn register(&mut self, number: u64) -> Option<&mut Register> {
        match number {
            FRAME_REGISTER => Some(&mut self.frame),
            RETURN_ADDRESS => Some(&mut self.returns),
            _ => None,
        }
    }

    fn set(&mut self, number: u64, is: Register) {
        if let Some(register) = self.register(number) {
            *register = is;
        }
    }

    fn set_base(&mut self, register: u64, offset: i64) {
        self.base = match register {
            STACK_REGISTER => Some((Base::Stack, offset)),
            FRAME_REGISTER => Some((Base::Frame, offset)),
            _ => None,
        };
    }
}

/// A program's run.
struct Program<'a> {
    remembered: [State; REMEMBERED],
    depth: usize,
    common: &'a Common,
}

impl Program<'_> {
    /// Runs instructions, up to a place in code if there is one; `start` is what `restore` goes back to.
    fn run(
        &mut self,
        (at, bytes): (usize, usize),
        state: &mut State,
        start: State,
        limit: Option<(usize, usize)>,
    ) -> Option<()> {
        let mut cursor = Cursor::new(at, bytes)?;
        let (mut now, place) = limit.unwrap_or((0, usize::MAX));
        let (code, data) = (self.common.code_unit, self.common.data_unit);
        let scaled = |number: u64| (number as i64).wrapping_mul(data);
        for _ in 0..MOST_INSTRUCTIONS {
            if cursor.is_empty() {
                return Some(());
            }
            let instruction = cursor.byte()?;
            let low = instruction as u64 & 0x3f;
            let mut steps = None;
            match instruction >> 6 {
                1 => steps = Some(low),
                2 => {
                    let offset = scaled(cursor.unsigned()?);
                    state.set(low, Register::AtBase(offset));
                }
                3 => restore(state, start, low),
                _ => match instruction {
                    0x00 => {}
                    0x01 => {
                        now = cursor.pointer(self.common.encoding)?;
                        if now > place {
                            return Some(());
                        }
                    }
                    0x02 => steps = Some(cursor.byte()? as u64),
                    0x03 => steps = Some(u16::from_le_bytes(cursor.fixed()?) as u64),
                    0x04 => steps = Some(u32::from_le_bytes(cursor.fixed()?) as u64),
                    0x05 => {
                        let (register, offset) = (cursor.unsigned()?, cursor.unsigned()?);
                        state.set(register, Register::AtBase(scaled(offset)));
                    }
                    0x06 => restore(state, start, cursor.unsigned()?),
                    0x07 => state.set(cursor.unsigned()?, Register::Undefined),
                    0x08 => state.set(cursor.unsigned()?, Register::Same),
                    0x09 => {
                        let (register, _) = (cursor.unsigned()?, cursor.unsigned()?);
                        state.set(register, Register::Other);
                    }
                    0x0a => {
                        *self.remembered.get_mut(self.depth)? = *state;
                        self.depth = self.depth.wrapping_add(1);
                    }
                    0x0b => {
                        self.depth = self.depth.checked_sub(1)?;
                        *state = *self.remembered.get(self.depth)?;
                    }
                    0x0c => {
                        let (register, offset) = (cursor.unsigned()?, cursor.unsigned()?);
                        state.set_base(register, offset as i64);
                    }
                    0x0d => {
                        let register = cursor.unsigned()?;
                        let offset = state.base.map_or(0, |(_, offset)| offset);
                        state.set_base(register, offset);
                    }
                    0x0e => {
                        let offset = cursor.unsigned()? as i64;
                        state.base = state.base.map(|(base, _)| (base, offset));
                    }
                    0x0f => state.base = expression(&mut cursor)?.and_then(Expression::base),
                    0x10 => {
                        let register = cursor.unsigned()?;
                        let at = expression(&mut cursor)?.and_then(Expression::at_frame);
                        state.set(register, at.map_or(Register::Other, Register::AtFrame));
                    }
                    0x11 => {
                        let (register, offset) = (cursor.unsigned()?, cursor.signed()?);
                        state.set(register, Register::AtBase(offset.wrapping_mul(data)));
                    }
                    0x12 => {
                        let (register, offset) = (cursor.unsigned()?, cursor.signed()?);
                        state.set_base(register, offset.wrapping_mul(data));
                    }
                    0x13 => {
                        let offset = cursor.signed()?.wrapping_mul(data);
                        state.base = state.base.map(|(base, _)| (base, offset));
                    }
                    0x14 | 0x15 => {
                        let (register, _) = (cursor.unsigned()?, cursor.unsigned()?);
                        state.set(register, Register::Other);
                    }
                    0x16 => {
                        let register = cursor.unsigned()?;
                        expression(&mut cursor)?;
                        state.set(register, Register::Other);
                    }
                    // GNU: bytes of arguments that are on the stack.
                    0x2e => {
                        cursor.unsigned()?;
                    }
                    _ => return None,
                },
            }
            if let Some(steps) = steps {
                now = now.wrapping_add(steps.wrapping_mul(code) as usize);
                if now > place {
                    return Some(());
                }
            }
        }
        None
    }
}

fn restore(state: &mut State, start: State, number: u64) {
    let mut start = start;
    if let Some(is) = start.register(number).copied() {
        state.set(number, is);
    }
}

/// An expression of the form that compilers write where a function aligns its stack: a register plus an offset, and perhaps what
/// lies there.
struct Expression {
    register: u64,
    offset: i64,
    read: bool,
}

impl Expression {
    fn base(self) -> Option<(Base, i64)> {
        Some(match (self.register, self.read) {
            (STACK_REGISTER, false) => (Base::Stack, self.offset),
            (FRAME_REGISTER, false) => (Base::Frame, self.offset),
            (STACK_REGISTER, true) => (Base::AtStack, self.offset),
            (FRAME_REGISTER, true) => (Base::AtFrame, self.offset),
            _ => return None,
        })
    }

    fn at_frame(self) -> Option<i64> {
        (self.register == FRAME_REGISTER && !self.read).then_some(self.offset)
    }
}

/// Reads an expression and passes it; `Some(None)` for one of another form.
fn expression(cursor: &mut Cursor) -> Option<Option<Expression>> {
    const REGISTER_0: u8 = 0x70;
    const REGISTER_31: u8 = 0x8f;
    const READ: u8 = 0x06;
    let bytes = cursor.unsigned()?;
    let mut inside = cursor.clone();
    cursor.skip(bytes)?;
    inside.end = cursor.at;
    let mut read_it = || {
        let operation = inside.byte()?;
        if !(REGISTER_0..=REGISTER_31).contains(&operation) {
            return None;
        }
        let offset = inside.signed()?;
        let read = !inside.is_empty();
        if read && (inside.byte()? != READ || !inside.is_empty()) {
            return None;
        }
        Some(Expression { register: operation.wrapping_sub(REGISTER_0) as u64, offset, read })
    };
    Some(read_it())
}

#[cfg(test)]
mod tests {
    use gimli::{BaseAddresses, CfaRule, EhFrame, LittleEndian, RegisterRule, UnwindContext, UnwindSection, X86_64};
    use gimli::{CieOrFde, EndianSlice, Operation, UnwindExpression};
    use object::{Object, ObjectSection};

    use super::super::maps;
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
