//! NVRTC: programs that are taken and not compiled. What they yield is PTX that declares their kernels, with empty bodies.
//!
//! Refuses: to say whether a real compiler would take the source.

use crate::api::{Out, store};
use crate::status::NvrtcResult;
use crate::version;
use std::collections::BTreeMap;
use std::ffi::{CStr, CString, c_char, c_int};

#[derive(Default)]
struct Program {
    /// Name expressions and the names that they were given.
    names: BTreeMap<CString, CString>,
    ptx: String,
}

/// # Safety
/// The pointer must be null or a program of ours, used by one thread at a time.
unsafe fn program<'a>(pointer: *mut Program) -> Result<&'a mut Program, NvrtcResult> {
    // SAFETY: as the caller says.
    unsafe { pointer.as_mut() }.ok_or(NvrtcResult::INVALID_PROGRAM)
}

/// Writes a text with its terminator.
///
/// # Safety
/// `place` must have room for it.
unsafe fn put(place: *mut c_char, text: &str) {
    if !place.is_null() {
        // SAFETY: as the caller says.
        unsafe {
            place.cast::<u8>().copy_from_nonoverlapping(text.as_ptr(), text.len());
            place.add(text.len()).write(0);
        }
    }
}

/// The kernel names in a source without name expressions: what follows `__global__ void`.
fn kernels(source: &str) -> Vec<String> {
    let words: Vec<&str> = source.split(|letter: char| !letter.is_alphanumeric() && letter != '_').collect();
    let words: Vec<&str> = words.into_iter().filter(|word| !word.is_empty()).collect();
    let mut found = Vec::new();
    for (index, _) in words.iter().enumerate().filter(|(_, word)| **word == "__global__") {
        let void = words[index..].iter().position(|word| *word == "void");
        if let Some(name) = void.and_then(|void| words.get(index + void + 1)) {
            found.push((*name).to_owned());
        }
    }
    found
}

fn ptx(entries: impl Iterator<Item = String>) -> String {
    let mut text = String::from(".version 8.0\n.target sm_50\n.address_size 64\n");
    for entry in entries {
        text.push_str(&format!(".visible .entry {entry}()\n{{\n\tret;\n}}\n"));
    }
    text
}

api! {
    simulated fn nvrtcVersion(major: Out<'_, c_int>, minor: Out<'_, c_int>) -> NvrtcResult {
        store(major, version::runtime() / 1000);
        store(minor, version::runtime() % 1000 / 10);
        Ok(())
    }
    simulated fn nvrtcCreateProgram(
        place: Out<'_, *mut Program>, source: *const c_char, _name: *const c_char, _count: c_int,
        _headers: *const *const c_char, _names: *const *const c_char,
    ) -> NvrtcResult {
        if source.is_null() {
            return Err(NvrtcResult(3));
        }
        // SAFETY: the program gives a terminated source.
        let source = unsafe { CStr::from_ptr(source) }.to_string_lossy();
        let made = Program { names: BTreeMap::new(), ptx: ptx(kernels(&source).into_iter()) };
        store(place, Box::into_raw(Box::new(made)));
        Ok(())
    }
    simulated fn nvrtcDestroyProgram(place: *mut *mut Program) -> NvrtcResult {
        // SAFETY: the program gives its program back, once.
        unsafe {
            let pointer = place.as_mut().ok_or(NvrtcResult::INVALID_PROGRAM)?;
            program(*pointer)?;
            drop(Box::from_raw(*pointer));
            *pointer = std::ptr::null_mut();
        }
        Ok(())
    }
    simulated fn nvrtcAddNameExpression(pointer: *mut Program, expression: *const c_char) -> NvrtcResult {
        if expression.is_null() {
            return Err(NvrtcResult::NAME_EXPRESSION_NOT_VALID);
        }
        // SAFETY: the program gives its program and a terminated expression.
        let (of, expression) = unsafe { (program(pointer)?, CStr::from_ptr(expression).to_owned()) };
        let name = CString::new(format!("memscope_{}", of.names.len())).map_err(|_| NvrtcResult(11))?;
        of.names.insert(expression, name);
        Ok(())
    }
    no_op fn nvrtcCompileProgram(pointer: *mut Program) -> NvrtcResult {
        // SAFETY: the program gives its program.
        let of = unsafe { program(pointer)? };
        if !of.names.is_empty() {
            of.ptx = ptx(of.names.values().map(|name| name.to_string_lossy().into_owned()));
        }
        Ok(())
    }
    simulated fn nvrtcGetLoweredName(
        pointer: *mut Program, expression: *const c_char, name: Out<'_, *const c_char>,
    ) -> NvrtcResult {
        // SAFETY: the program gives its program and a terminated expression; the name lives as long as its program.
        let found = unsafe { program(pointer)?.names.get(CStr::from_ptr(expression)) };
        store(name, found.ok_or(NvrtcResult::NAME_EXPRESSION_NOT_VALID)?.as_ptr());
        Ok(())
    }
    size fn nvrtcGetPTXSize(pointer: *mut Program, bytes: Out<'_, usize>) -> NvrtcResult {
        // SAFETY: the program gives its program.
        store(bytes, unsafe { program(pointer)? }.ptx.len() + 1);
        Ok(())
    }
    simulated fn nvrtcGetPTX(pointer: *mut Program, place: *mut c_char) -> NvrtcResult {
        // SAFETY: the program gives its program and as much room as the size function said.
        unsafe { put(place, &program(pointer)?.ptx) };
        Ok(())
    }
    size fn nvrtcGetCUBINSize(pointer: *mut Program, bytes: Out<'_, usize>) -> NvrtcResult {
        // There is no machine code: what is given is the PTX, which the driver takes in its place.
        // SAFETY: the program gives its program.
        store(bytes, unsafe { program(pointer)? }.ptx.len() + 1);
        Ok(())
    }
    simulated fn nvrtcGetCUBIN(pointer: *mut Program, place: *mut c_char) -> NvrtcResult {
        // SAFETY: the program gives its program and as much room as the size function said.
        unsafe { put(place, &program(pointer)?.ptx) };
        Ok(())
    }
    size fn nvrtcGetProgramLogSize(_pointer: *mut Program, bytes: Out<'_, usize>) -> NvrtcResult {
        store(bytes, 1);
        Ok(())
    }
    simulated fn nvrtcGetProgramLog(_pointer: *mut Program, place: *mut c_char) -> NvrtcResult {
        // SAFETY: the program gives as much room as the size function said.
        unsafe { put(place, "") };
        Ok(())
    }
}

plain! {
    simulated fn nvrtcGetErrorString(result: c_int) -> *const c_char {
        match result {
            0 => c"NVRTC_SUCCESS",
            4 => c"NVRTC_ERROR_INVALID_PROGRAM",
            10 => c"NVRTC_ERROR_NAME_EXPRESSION_NOT_VALID",
            _ => c"NVRTC_ERROR_INTERNAL_ERROR",
        }.as_ptr()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_are_found_by_their_attribute() {
        let source =
            "extern \"C\" __launch_bounds__(512) __global__\nvoid first(float* x) {}\n__global__ void second() {}";
        assert_eq!(kernels(source), ["first", "second"]);
        assert!(ptx(kernels(source).into_iter()).contains(".entry second()"));
    }
}
