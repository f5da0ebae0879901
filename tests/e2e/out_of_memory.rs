//! Out of memory of programs without a framework: said on the terminal at once, while they still run, and in full three times.

use std::path::Path;

use crate::memscope::{Place, flat, stderr, told_while_it_waits};

/// Runs the program on a device of 1 GiB, and gives what was said while it waited, and in all.
fn waits(place: &Place, program: &Path, arguments: &[&str]) -> (String, String) {
    let mut command = place.memscope();
    command.args(["run", "-f", "-o", "p.mscope", "--device", "1GiB", "--"]).arg(program).args(arguments);
    let (first, said, output) = told_while_it_waits(&mut command);
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "refused with 2\n");
    (first, said)
}

#[test]
fn a_c_program_is_told_while_it_runs() {
    let place = Place::new();
    let program = place.compile_linked("out_of_memory");
    // 1024 MiB hold 200 MiB and two of 300 MiB.
    for (arguments, function) in [(&[][..], "cuMemAlloc_v2"), (&["pool"], "cuMemAllocAsync")] {
        let (first, said) = waits(&place, &program, arguments);
        for part in [
            "is out of memory: error [oom] out of memory on GPU-",
            &format!("{function} asked for 300.0 MiB, 224.0 MiB of 1.00 GiB were free; 800.0 MiB were live"),
            "before the first step, phase forward, scope encoder.",
            "weights 200.0 MiB 25.0 %",
            "unknown 600.0 MiB 75.0 %",
            "encoder.weight",
        ] {
            assert!(first.contains(part), "{function}: no `{part}` in {first}");
        }
        assert_eq!(said.matches("is out of memory").count(), 1, "once: {said}");
        assert_eq!(said.matches("error [oom]").count(), 2, "at once, and in the report: {said}");
    }
}

#[test]
fn a_sample_that_does_not_fit_is_told_before_its_report() {
    let place = Place::new();
    let sample = env!("CARGO_BIN_EXE_memscope");
    let run = |options: &str| {
        place.run(&format!(
            "run {options} -f -o p.mscope --device rtx3090-24gb --no-compute -- {sample} sample gpt --model gpt2-xl --steps 1"
        ))
    };
    let said = stderr(&run(""));
    let told = said.find("is out of memory:").unwrap_or_else(|| panic!("not told: {said}"));
    let report = said.find("memscope: profile:").expect("a report");
    assert!(told < report, "{said}");
    let told = flat(&said[told..report]);
    assert!(told.contains("asked for") && told.contains("of 24.00 GiB were free"), "{told}");
    assert!(told.contains("scope") && told.contains("activations"), "{told}");
    assert!(!stderr(&run("-q")).contains("is out of memory"), "-q");
}
