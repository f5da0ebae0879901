//! The programs of entries: where, at a place in code, the caller's registers are.
//!
//! Owns: the instructions that compilers write. Refuses: others, and registers that a walk does not need.

use super::super::rule::{Base, Saved, Way};
use super::cursor::Cursor;
use super::entry::Common;

/// Numbers of registers in DWARF.
const FRAME_REGISTER: u64 = 6;
const STACK_REGISTER: u64 = 7;
pub const RETURN_ADDRESS: u64 = 16;
/// How far the return address is below the canonical address, on this processor always.
const RETURN_BELOW: i64 = -8;
/// States that a program may remember at a time.
const REMEMBERED: usize = 8;
/// Most instructions of a program.
const MOST_INSTRUCTIONS: usize = 1 << 16;

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
pub struct State {
    /// `None`: in a way that is not known here.
    base: Option<(Base, i64)>,
    frame: Register,
    returns: Register,
}

impl State {
    pub const START: State = State { base: None, frame: Register::Same, returns: Register::AtBase(RETURN_BELOW) };

    pub fn way(&self) -> Option<Way> {
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
pub struct Program<'a> {
    remembered: [State; REMEMBERED],
    depth: usize,
    common: &'a Common,
}

impl Program<'_> {
    pub fn new(common: &Common) -> Program<'_> {
        Program { remembered: [State::START; REMEMBERED], depth: 0, common }
    }

    /// Runs instructions, up to a place in code if there is one; `start` is what `restore` goes back to.
    pub fn run(
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
