//! The CUDA sources on every case, compiled for the CPU (emulator.cpp): what can be proved of them without a GPU.
//!
//! Needs a C++ compiler; without one the test says so and passes.

use crate::case::{Case, Random, Value};
use crate::cases;
use std::ffi::{CString, c_char, c_int};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

/// The emulator's one function: name, grid, block, argument cells.
type Emulate = unsafe extern "C" fn(*const c_char, *const u32, *const u32, *const u64) -> c_int;

/// Compiles the emulator and loads it, or gives the reason why it cannot be. Each call gives one with its own state.
fn library() -> Result<libloading::Library, String> {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let name = format!("libemulator-{}-{}.so", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    // Without contraction, so that an operation rounds as it does in the f64 bound: once.
    let output = Command::new("c++")
        .args(["-std=c++17", "-O1", "-ffp-contract=off", "-fPIC", "-shared", "-o"])
        .arg(&path)
        .arg("-I")
        .arg(folder.join("cu"))
        .arg(folder.join("tests/numbers/emulator.cpp"))
        .output()
        .map_err(|error| format!("no C++ compiler: {error}"))?;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    // SAFETY: our own library, which has no initialisers but those of its containers.
    let library = unsafe { libloading::Library::new(&path) }.expect("what was just compiled can be loaded");
    std::fs::remove_file(&path).expect("what was just compiled can be removed");
    Ok(library)
}

fn run(case: &Case, emulate: Emulate) -> Vec<Vec<f32>> {
    let (outputs, cells) = case.on_host();
    let name = CString::new(case.kernel.name).expect("a name has no NUL inside");
    // SAFETY: arguments of the kernel's types, over memory as long as its sizes say.
    let status =
        unsafe { emulate(name.as_ptr(), case.launch.grid.as_ptr(), case.launch.block.as_ptr(), cells.as_ptr()) };
    assert_eq!(status, 0, "{}: 1 is an unknown kernel, 2 a barrier that not every thread reaches", case.kernel.name);
    outputs
}

#[test]
fn every_cuda_source_agrees_with_f64() {
    let library = match library() {
        Ok(library) => library,
        Err(reason) => return super::skip("kernels as emulated", &reason),
    };
    // SAFETY: the function's type is as in emulator.cpp.
    let emulate = unsafe { library.get::<Emulate>(b"emulate\0") }.expect("the emulator has its function");
    for case in &cases::all(&mut Random::from_environment()) {
        case.check("emulated", &run(case, *emulate));
    }
}

/// The emulator itself: a kernel that it does not know, and one that is launched with too few blocks.
#[test]
fn a_wrong_launch_is_found() {
    let Ok(library) = library() else { return super::skip("a wrong launch", "no C++ compiler") };
    // SAFETY: as above.
    let emulate = unsafe { library.get::<Emulate>(b"emulate\0") }.expect("the emulator has its function");
    // SAFETY: an unknown kernel reads no cell.
    assert_eq!(unsafe { emulate(c"unknown".as_ptr(), [1; 3].as_ptr(), [1; 3].as_ptr(), std::ptr::null()) }, 1);

    let cases = cases::all(&mut Random::from_environment());
    let mut case = cases.into_iter().find(|case| case.launch.grid[1] > 1).expect("a product of two tiles a row");
    case.launch.grid[1] -= 1;
    let Some(Value::Output { before, .. }) = case.arguments.first_mut() else { panic!("a product has an output") };
    before.fill(f32::NAN);
    let outputs = run(&case, *emulate);
    let complete = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| case.check("emulated", &outputs)));
    assert!(complete.is_err(), "an output that was not written passed the check");
}
