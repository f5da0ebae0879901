//! The CUDA build of PyTorch on the simulated device.
//!
//! Sizes of parameters and optimizer states are arithmetic. Peaks of the GPT are what PyTorch's own allocator counted in an
//! earlier, independent simulation of the same libraries; they change with PyTorch's version.

use std::path::Path;

use memscope_core::allocation::flag;
use serde_json::json;

use crate::memscope::{Place, flat, number, stderr};
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

/// The peak of what PyTorch's allocator gave, within the MiB that depends on the order in which a program drops its tensors.
#[track_caller]
fn peaks_near(run: &Run, mib: u64) {
    let peak = number(&run.said, "/peak_allocated") / MIB;
    assert!(peak.abs_diff(mib) <= 1, "a peak of {peak} MiB, and {mib} are expected");
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
    assert_eq!(run.said["written"], json!([0.0, 1.0, 2.0, 3.0]), "what was copied there comes back");
    assert_eq!(run.said["computed"], json!([0.0, 0.0, 0.0, 0.0]), "what a kernel would write reads zeros");
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

/// The largest sum of what lived at once on the device, of PyTorch's blocks or else of the driver's allocations. What PyTorch counts
/// of the driver's pool is whole units of 512 bytes for each allocation.
fn largest(run: &Run, blocks: bool) -> u64 {
    // What a pool keeps beyond its allocations is no allocation.
    let others = flag::BLOCK | flag::POOL_RESERVE;
    let kind = if blocks { flag::BLOCK } else { 0 };
    let wanted = run.model.allocations().iter().filter(|one| one.on_device() && one.flags & others == kind);
    let mut changes: Vec<(u64, i64)> = Vec::new();
    for one in wanted {
        let bytes = one.bytes.next_multiple_of(512) as i64;
        changes.push((one.birth_ticks, bytes));
        if one.is(flag::DEAD) {
            changes.push((one.death_ticks, -bytes));
        }
    }
    changes.sort_unstable();
    let sums = changes.iter().scan(0, |sum, change| {
        *sum += change.1;
        Some(*sum)
    });
    sums.max().unwrap_or(0) as u64
}

#[test]
fn the_allocators_of_the_driver_give_the_same_bytes() {
    let Some(python) = python("the_allocators_of_the_driver_give_the_same_bytes") else { return };
    for settings in ["backend:cudaMallocAsync", "expandable_segments:True"] {
        let run = run(&python, H100, &format!("linear_adam {settings}"));
        let parameters = (1024 * 4096 + 4096) * 4;
        assert_eq!(number(&run.said, "/parameters"), parameters, "{settings}");
        assert_eq!(number(&run.said, "/states"), 2 * parameters, "{settings}");
        assert_eq!(
            largest(&run, settings.starts_with("expandable")),
            number(&run.said, "/peak_allocated"),
            "{settings}"
        );
    }
}

#[test]
fn a_gpt_peaks_where_its_precision_says() {
    let Some(python) = python("a_gpt_peaks_where_its_precision_says") else { return };
    for (case, peak_mib) in [("fp32", 10_876), ("bf16", 8_324), ("fp16", 8_324), ("checkpoint", 5_759)] {
        let run = run(&python, H100, &format!("gpt {case}"));
        assert_eq!(number(&run.said, "/counted"), 124_475_904);
        assert_eq!(number(&run.said, "/parameters"), 4 * 124_475_904, "{case}");
        peaks_near(&run, peak_mib);
        assert!(number(&run.said, "/host_mib") <= 600, "{case}: {} MiB of the host", run.said["host_mib"]);
        agrees_with_pytorch(&run);
    }
}

#[test]
fn a_resnet_peaks_where_its_layout_says() {
    let Some(python) = python("a_resnet_peaks_where_its_layout_says") else { return };
    for (case, peak_mib) in [("fp32", 2_841), ("channels_last", 1_680)] {
        let run = run(&python, H100, &format!("resnet {case}"));
        assert_eq!(number(&run.said, "/requested"), number(&run.said, "/arithmetic"), "{case}");
        peaks_near(&run, peak_mib);
        agrees_with_pytorch(&run);
    }
}

/// Sizes by hand: a real transform of n numbers has n / 2 + 1 complex ones, and a gradient is as large as what it is of.
#[test]
fn fourier_transforms_take_what_their_results_need() {
    let Some(python) = python("fourier_transforms_take_what_their_results_need") else { return };
    let run = run(&python, H100, "fft");
    let kinds = &run.said["kinds"];
    for (kind, result, gradient, shape) in [
        ("real", 6 * 501 * 8, 6 * 1000 * 4, json!([6, 1000])),
        ("back to real", 6 * 1000 * 4, 6 * 501 * 8, json!([6, 501])),
        ("complex", 6 * 97 * 16, 6 * 97 * 16, json!([6, 97])),
        ("of two dimensions", 3 * 40 * 26 * 8, 3 * 40 * 50 * 4, json!([3, 40, 50])),
        ("of three dimensions", 16 * 10 * 12 * 8, 16 * 10 * 12 * 8, json!([16, 10, 12])),
        ("of halves", 6 * 513 * 4, 6 * 1024 * 2, json!([6, 1024])),
        ("of columns", 30 * 101 * 8, 30 * 200 * 4, json!([30, 200])),
    ] {
        assert_eq!(kinds[kind], json!([result, gradient, shape]), "{kind}");
    }
    // 16,000 samples and 200 on each side, in windows of 400 that begin each 160.
    assert_eq!(run.said["short"], json!([2, 201, 101]));
    agrees_with_pytorch(&run);
    assert!(!stderr(&run.output).contains("is not simulated"), "{}", stderr(&run.output));
    assert!(flat(&stderr(&run.output)).contains("workspaces of cuDNN and cuFFT"), "what is left out is said");
}

/// A layer's weights are one storage, of the parameters alone; the gates, states and inner outputs of each step are kept.
#[test]
fn recurrent_layers_keep_what_their_equations_need() {
    let Some(python) = python("recurrent_layers_keep_what_their_equations_need") else { return };
    let run = run(&python, H100, "recurrent");
    // Of 96 steps in 8 sequences of 12, and of the 55 in those that are shorter.
    for (kind, numbers, bytes) in [
        ("rnn", 0, 4),
        // Five numbers of 32 in each of three layers, and two outputs inside, both ways.
        ("lstm", 2 * (3 * 5 * 32 + 2 * 32), 4),
        ("gru", 2 * 4 * 32 + 32, 4),
        // One more in each layer, before it is projected.
        ("projected", 2 * (2 * 6 * 32 + 16), 4),
        ("half", 2 * 5 * 32 + 32, 2),
    ] {
        let said = &run.said["kinds"][kind];
        // PyTorch asks for room for biases where a layer has none, too.
        let biases = if kind == "gru" { 2 * 2 * 3 * 32 * 4 } else { 0 };
        let storages = said["storages"].as_object().expect("storages");
        let storages: Vec<_> = storages.values().map(|bytes| bytes.as_u64().expect("bytes")).collect();
        assert_eq!(storages, [number(said, "/weights") + biases], "{kind}");
        assert_eq!(said["kept"], json!([96 * numbers * bytes, 55 * numbers * bytes]), "{kind}");
    }
    agrees_with_pytorch(&run);
    let missed = run.report["findings"].as_array().expect("findings").iter().find(|one| one["kind"] == "not_simulated");
    assert_eq!(missed, None);
}

#[test]
fn memory_ends_at_the_capacity_with_pytorchs_own_message() {
    let Some(python) = python("memory_ends_at_the_capacity_with_pytorchs_own_message") else { return };
    // 24 GiB hold 35 times 700 MiB (24,500 MiB of 24,576), and 34 times if a context of 518 MiB is there too.
    const WITH_CONTEXT: u64 = (24 << 30) - (518 << 20);
    for settings in ["", "expandable_segments:True"] {
        for (capacity, taken, free) in [("24GiB".to_owned(), 35, "76.00"), (WITH_CONTEXT.to_string(), 34, "258.00")] {
            let run = run(&python, &format!("--device {capacity}"), &format!("fill {settings}"));
            assert_eq!(number(&run.said, "/taken"), taken, "{settings}");
            assert_eq!(number(&run.said, "/refused"), 1);
            let message = run.said["message"].as_str().expect("a message");
            assert!(message.starts_with("CUDA out of memory. Tried to allocate 700.00 MiB."), "{message}");
            assert!(message.contains(&format!("GiB of which {free} MiB is free")), "{message}");
        }
    }
}

#[test]
fn a_model_larger_than_the_host_is_planned() {
    let Some(python) = python("a_model_larger_than_the_host_is_planned") else { return };
    let before = std::time::Instant::now();
    let run = run(&python, H100, "large");
    let seconds = |name: &str| run.said[name].as_f64().expect("seconds");
    println!(
        "6.7 billion parameters, two steps: {:.1} s; processor time of the program {:.1} s, of that {:.1} s importing torch",
        before.elapsed().as_secs_f64(),
        seconds("import_s") + seconds("train_s"),
        seconds("import_s"),
    );
    let parameters = number(&run.said, "/counted");
    assert_eq!(parameters, 6_704_857_088);
    // Weights, gradients and two states of 2 bytes each, and at least a block's activations beside them.
    let peak = number(&run.said, "/peak_allocated");
    assert!((8 * parameters..10 * parameters + parameters / 2).contains(&peak), "{peak}");
    assert!(number(&run.said, "/host_mib") <= 600, "{} MiB of the host", run.said["host_mib"]);
    agrees_with_pytorch(&run);
}

#[test]
fn memory_that_is_pinned_in_place_counts_once() {
    let Some(python) = python("memory_that_is_pinned_in_place_counts_once") else { return };
    let run = run(&python, H100, "registered");
    assert_eq!(run.said["results"], json!([0, 0, 0, 0]));
    assert_eq!(run.said["in_place"], true);
    let registered = run
        .model
        .allocations()
        .iter()
        .filter(|one| run.model.names().text(one.function).starts_with("cuMemHostRegister"));
    let own: Vec<u64> = registered.map(|one| one.bytes).collect();
    assert_eq!(own, [0, 32 * MIB], "a tensor's memory is the tensor's; that of a bytearray is nobody's else");
    // The tensor, the pinned copy of another, and the bytearray while it is pinned; and a few small tensors of PyTorch's own.
    let peak = number(&run.report, "/host/peak/bytes");
    assert!((112 * MIB..113 * MIB).contains(&peak), "{peak}");
    let kinds: Vec<_> = run.report["findings"].as_array().expect("findings").iter().map(|one| &one["kind"]).collect();
    assert!(!kinds.iter().any(|kind| *kind == "missed_free" || *kind == "free_of_unknown"), "{kinds:?}");
}

#[test]
fn a_program_that_stops_at_a_value_hears_where_and_what_to_do() {
    let Some(python) = python("a_program_that_stops_at_a_value_hears_where_and_what_to_do") else { return };
    let place = Place::new();
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/pytorch/programs/stopped.py");
    let ended = place
        .memscope()
        .args(["run", "-o", "p.mscope", "--device", "h100-80gb", "--"])
        .args([python.as_path(), &program])
        .output()
        .expect("memscope starts");
    assert_eq!(ended.status.code(), Some(1), "{}", stderr(&ended));
    let told = stderr(&ended);
    let flat = flat(&told);
    assert!(flat.contains("the program ended with status 1, and the last such read was at"), "{told}");
    assert!(flat.contains("stopped.py:6"), "{told}");
    assert!(flat.contains("torch.distributions.Distribution.set_default_validate_args(False)"), "{told}");
}

#[test]
fn what_pytorch_asks_of_the_libraries_works_or_is_told() {
    let Some(python) = python("what_pytorch_asks_of_the_libraries_works_or_is_told") else { return };
    let run = run(&python, H100, "features");
    assert_eq!(run.said["failed"], json!({}));
    assert_eq!(number(&run.said, "/tried"), 19);
    assert!(run.said["refused"].as_str().expect("a message").contains("cusolver"), "{}", run.said["refused"]);
    let told = stderr(&run.output);
    assert!(told.contains("cusolverDnCreate is not simulated"), "at once: {told}");
    let flat = flat(&told);
    let missed = "not simulated, so that the program got errors: cudaIpcGetEventHandle of the CUDA runtime (1 call), \
                  cudaIpcGetMemHandle of the CUDA runtime (1 call), cusolverDnCreate of cuSOLVER (1 call)";
    assert!(flat.contains(missed), "{told}");
    assert_eq!(
        run.said["shared"].as_array().expect("messages").len(),
        2,
        "neither memory nor events are shared: {}",
        run.said["shared"]
    );
    for function in ["cudaIpcGetMemHandle", "cudaIpcGetEventHandle"] {
        assert_eq!(told.matches(&format!("{function} is not simulated")).count(), 1, "{told}");
    }
    assert!(told.contains("features.py:"), "the line that read zeros: {told}");
    assert!(flat.contains("the CUDA libraries too, and nothing was computed"), "{told}");
    assert_eq!(run.report["compute"], false, "whatever the options say");
}

#[test]
fn a_program_that_hides_the_devices_finds_none() {
    let Some(python) = python("a_program_that_hides_the_devices_finds_none") else { return };
    let run = run(&python, H100, "hidden");
    assert_eq!(run.said["available"], false);
    assert_eq!(run.said["count"], 0);
    assert!(!stderr(&run.output).contains("not simulated"), "{}", stderr(&run.output));
}
