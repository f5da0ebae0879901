//! PyTorch's allocators, by a libc10 of the same names (c10.cc): what is recorded, and that nothing stands in the way.

use crate::log_reader::only_log;
use crate::stage::{self, driver, run_both};

/// What tensors.cc does.
const STORY: [&str; 9] = [
    "thread",
    "c10::alloc_cpu 5000: 4000 of 4000 bytes, stream 0, device -1, pageable",
    "c10::free_cpu 5000, stream 0",
    "block 9000: 4096 of 4096 bytes, stream 42, hooked",
    "block 9000 free, hooked",
    // The real function threw, and it had been told before.
    "block a000: 13 of 13 bytes, stream 40, hooked",
    "device 0: 68719476736 bytes, null driver 000\\x00",
    "c10::reportOutOfMemoryToProfiler failed: 1073741824 bytes, 1073741824 of 68719476736 free, device 0, device, result 2",
    "",
];

fn expect_story(plugin: bool) {
    let program = stage::tensors(plugin);
    let mut story = only_log(&run_both(&program, &driver(""), &[])).story();
    // Without a driver (the program does not load it) device and free memory are not known.
    story.retain(|line| !line.starts_with("device"));
    let expected = STORY.iter().filter(|line| !line.is_empty() && !line.starts_with("device"));
    let expected: Vec<String> =
        expected.map(|line| line.replace("1073741824 of 68719476736 free", "0 of 0 free")).collect();
    assert_eq!(story, expected);
}

#[test]
fn a_linked_libc10_is_hooked() {
    expect_story(false);
}

#[test]
fn a_libc10_out_of_the_global_scope_is_hooked() {
    expect_story(true);
}
