//! The calling thread's Python frames, read without Python's lock.
//!
//! Owns: the chain of frames, and what tells one from another. Refuses: frames of the shim, which are not the program's; to keep
//! anything of a frame: its code may be gone when the thread goes on, and another be at its address. A frame is therefore told
//! from others by what its code says (file, function, table of lines), never by where it lies.

use super::layout::{Layout, OWNED_BY_C};
use super::lines;
use super::text::Text;

/// Frames that are passed over at most, of the shim and of C, before a walk ends.
const PASSED_OVER: usize = 128;
/// How the shim's file name begins.
const SHIM: &[u8] = b"<memscope>";

/// One frame: where its code is, and how many code units of two bytes it has come.
#[derive(Clone, Copy)]
pub struct Frame {
    code: *const u8,
    units: isize,
}

/// Calls `see` for the program's frames, the innermost first; true when there are more than `most`.
pub fn each(layout: &Layout, most: usize, mut see: impl FnMut(Frame)) -> bool {
    let (mut seen, mut passed) = (0, 0);
    for_all(layout, |frame| {
        if frame.is_of_shim(layout) {
            passed += 1;
        } else if seen < most {
            seen += 1;
            see(frame);
        } else {
            seen += 1;
        }
        seen <= most && passed < PASSED_OVER
    });
    seen > most
}

/// Calls `see` for every frame, the innermost first, until it says false.
pub fn for_all(layout: &Layout, mut see: impl FnMut(Frame) -> bool) {
    // SAFETY: the layout was proved, or is being proved of a Python of the version that it is for. A thread's state is its own
    // while it runs, also without the lock, and holds its frames, which hold their code.
    unsafe {
        let state = (layout.thread_state)();
        if state.is_null() {
            return;
        }
        let mut frame = pointer(state, layout.thread_frame);
        if let Some(within) = layout.holder_frame {
            if frame.is_null() {
                return;
            }
            frame = pointer(frame, within);
        }
        while !frame.is_null() {
            if frame.add(layout.frame_owner).read() != OWNED_BY_C {
                let code = pointer(frame, layout.frame_code);
                if code.is_null() || pointer(code, layout.object_type) != layout.code_type {
                    return;
                }
                let begin = code.add(layout.code_instructions) as isize;
                let units = (pointer(frame, layout.frame_instruction) as isize - begin) / 2;
                if !see(Frame { code, units }) {
                    return;
                }
            }
            frame = pointer(frame, layout.frame_previous);
        }
    }
}

/// The pointer at an offset.
///
/// # Safety
/// There is one.
#[inline(always)]
unsafe fn pointer(object: *const u8, offset: usize) -> *const u8 {
    // SAFETY: the caller's promise.
    unsafe { object.add(offset).cast::<*const u8>().read() }
}

impl Frame {
    /// Stands for no frame; nothing may be asked of it.
    pub const NONE: Frame = Frame { code: core::ptr::null(), units: 0 };

    /// The text at an offset of the code object.
    fn text(&self, layout: &Layout, offset: usize) -> Text<'_> {
        // SAFETY: the frame's code is alive as long as the frame, which the calling thread is in.
        unsafe { Text::of(layout, pointer(self.code, offset)) }
    }

    fn is_of_shim(&self, layout: &Layout) -> bool {
        self.text(layout, layout.code_file).bytes().starts_with(SHIM)
    }

    /// The code's table of lines.
    fn lines(&self, layout: &Layout) -> &[u8] {
        // SAFETY: as for texts; what is of the type of bytes has its length and content there.
        unsafe {
            let table = pointer(self.code, layout.code_lines);
            if table.is_null() || pointer(table, layout.object_type) != layout.bytes_type {
                return &[];
            }
            let length = table.add(layout.bytes_length).cast::<usize>().read();
            core::slice::from_raw_parts(table.add(layout.bytes_content), length)
        }
    }

    fn first_line(&self, layout: &Layout) -> i32 {
        // SAFETY: as for texts.
        unsafe { self.code.add(layout.code_first_line).cast::<i32>().read() }
    }

    /// The file, as UTF-8 in the buffer.
    pub fn file<'b>(&self, layout: &Layout, buffer: &'b mut [u8]) -> &'b [u8] {
        self.text(layout, layout.code_file).utf8(buffer)
    }

    /// The function's qualified name, as UTF-8 in the buffer.
    pub fn function<'b>(&self, layout: &Layout, buffer: &'b mut [u8]) -> &'b [u8] {
        self.text(layout, layout.code_function).utf8(buffer)
    }

    /// The line, 0 where there is none.
    pub fn line(&self, layout: &Layout) -> u32 {
        lines::line(self.lines(layout), self.first_line(layout), self.units)
    }

    /// Adds what tells this place from all others.
    #[inline(always)]
    pub fn add_to(&self, layout: &Layout, hash: &mut Hash) {
        hash.add_bytes(self.text(layout, layout.code_file).bytes());
        hash.add_bytes(self.text(layout, layout.code_function).bytes());
        hash.add_bytes(self.lines(layout));
        hash.add(self.first_line(layout) as u64 ^ (self.units as u64) << 32);
    }
}

/// A 64-bit hash: products of 128 bits, folded.
pub struct Hash(u64);

impl Hash {
    const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
    const OTHER: u64 = 0xd6e8_feb8_6659_fd93;

    /// Of nothing yet.
    pub const fn new() -> Hash {
        Hash(Hash::OTHER)
    }

    #[inline(always)]
    fn fold(one: u64, other: u64) -> u64 {
        let product = one as u128 * other as u128;
        product as u64 ^ (product >> 64) as u64
    }

    /// Adds a word.
    #[inline(always)]
    pub fn add(&mut self, word: u64) {
        self.0 = Hash::fold(self.0 ^ word, Hash::ODD) ^ word.rotate_left(32);
    }

    /// Adds bytes, and how many they are.
    #[inline(always)]
    pub fn add_bytes(&mut self, bytes: &[u8]) {
        self.add(bytes.len() as u64);
        let (pairs, rest) = bytes.as_chunks::<16>();
        for pair in pairs {
            let pair = u128::from_le_bytes(*pair);
            self.0 = Hash::fold(pair as u64 ^ self.0, (pair >> 64) as u64 ^ Hash::ODD) ^ self.0.rotate_left(23);
        }
        let mut last = [0; 16];
        for (place, byte) in last.iter_mut().zip(rest) {
            *place = *byte;
        }
        let last = u128::from_le_bytes(last);
        self.0 = Hash::fold(last as u64 ^ self.0, (last >> 64) as u64 ^ Hash::OTHER) ^ self.0.rotate_left(23);
    }

    /// The hash.
    pub fn get(&self) -> u64 {
        Hash::fold(self.0, Hash::OTHER)
    }
}
