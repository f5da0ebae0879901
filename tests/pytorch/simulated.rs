//! The CUDA build of PyTorch on the simulated device.
//!
//! Sizes of parameters and optimizer states are arithmetic. Peaks of the GPT are what PyTorch's own allocator counted in an
//! earlier, independent simulation of the same libraries; they change with PyTorch's version.

use memscope_core::allocation::flag;

use crate::memscope::{number, stderr};
use crate::torch::{Run, python, run};

const H100: &str = "--device h100-80gb";
const MIB: u64 = 1 << 20;

/// What PyTorch reserves equals what the report has, at the end and at the peak, in bytes and in segments.
#[track_caller]
fn agrees_with_pytorch(run: &Run) {
    let Run { said, report, .. } = run;
    assert_eq!(number(report, "/devices/0/ledger_at_end/reserved"), number(said, "/reserved"), "reserved at the end");
    assert_eq!(
        number(report, "/devices/0/peak/reserved/bytes"),
        number(said, "/peak_reserved"),
        "reserved at the peak"
    );
    let segments = || run.model.allocations().iter().filter(|one| one.on_device() && !one.is(flag::BLOCK));
    assert_eq!(segments().count() as u64, number(said, "/segments_made"), "segments made");
    let freed = segments().filter(|one| one.is(flag::DEAD) && !one.is(flag::AT_EXIT)).count() as u64;
    assert_eq!(freed, number(said, "/segments_freed"), "segments freed");
    assert_eq!(
        number(report, "/devices/0/peak/live/bytes"),
        number(said, "/peak_allocated"),
        "PyTorch's allocated bytes are the live bytes"
    );
}

#[test]
fn the_device_is_there_and_gives_memory() {
    let Some(python) = python("the_device_is_there_and_gives_memory") else { return };
    let run = run(&python, "--device h100-80gb --devices 2", "device");
    assert_eq!(run.said["available"], true);
    assert_eq!(run.said["count"], 2);
    assert_eq!(run.said["name"], "NVIDIA H100 80GB HBM3");
    assert_eq!(number(&run.said, "/allocated"), 512);
    assert_eq!(number(&run.said, "/reserved"), 2 * MIB);
    assert_eq!(run.said["written"], serde_json::json!([0.0, 1.0, 2.0, 3.0]), "what was copied there comes back");
    assert_eq!(run.said["computed"], serde_json::json!([0.0, 0.0, 0.0, 0.0]), "what a kernel would write reads zeros");
    agrees_with_pytorch(&run);
}

#[test]
fn a_layer_and_adam_take_what_arithmetic_says() {
    let Some(python) = python("a_layer_and_adam_take_what_arithmetic_says") else { return };
    let run = run(&python, H100, "linear_adam");
    let parameters = (1024 * 4096 + 4096) * 4;
    assert_eq!(number(&run.said, "/parameters"), parameters);
    assert_eq!(number(&run.said, "/states"), 2 * parameters);
    agrees_with_pytorch(&run);
}

#[test]
fn a_program_that_hides_the_devices_finds_none() {
    let Some(python) = python("a_program_that_hides_the_devices_finds_none") else { return };
    let run = run(&python, H100, "hidden");
    assert_eq!(run.said["available"], false);
    assert_eq!(run.said["count"], 0);
    assert!(!stderr(&run.output).contains("not simulated"), "{}", stderr(&run.output));
}
