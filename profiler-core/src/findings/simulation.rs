//! What a simulated run is, and is not.
//!
//! Owns: the sentences about simulated devices and libraries, which library a function belongs to, and what the simulation
//! leaves out. Refuses: to guess what a GPU would have added.

use std::collections::BTreeMap;

use crate::allocation::{Model, Names, Reads};
use crate::report::units::{bytes, count, grouped, simulated};

use super::detect::finding;
use super::{Detail, Finding, MissedFunction, ReadLine, Severity};

/// Most functions, and most lines, that a finding names; of more, how many there were.
const MOST: usize = 1000;
/// So many are named in a sentence.
const IN_SENTENCE: usize = 4;
/// What stands for a line that is not known.
pub(crate) const ELSEWHERE: &str = "outside Python";

/// Libraries by what their functions' names begin with, the longer beginning first.
const LIBRARIES: [(&str, &str); 18] = [
    ("cublasLt", "cuBLASLt"),
    ("cublas", "cuBLAS"),
    ("cudnn", "cuDNN"),
    ("cufft", "cuFFT"),
    ("cusolver", "cuSOLVER"),
    ("cusparseLt", "cuSPARSELt"),
    ("cusparse", "cuSPARSE"),
    ("curand", "cuRAND"),
    ("cupti", "CUPTI"),
    ("cuFile", "cuFile"),
    ("nccl", "NCCL"),
    ("nvrtc", "NVRTC"),
    ("nvJitLink", "nvJitLink"),
    ("nvshmem", "NVSHMEM"),
    ("nvtx", "NVTX"),
    ("nvml", "NVML"),
    ("cuda", "the CUDA runtime"),
    ("cu", "the CUDA driver"),
];

/// What to do about values that were read and not computed.
const READ: &str = "look at what these lines do with the values: memory that depends on them is another on a GPU";
/// And where the program failed.
const STOPPED: &str = "if a check of values stopped it, leave that check out of a dry run: an assert on a loss, \
                       error_if_nonfinite, assert_close; torch.distributions.Distribution.set_default_validate_args(False) \
                       for distributions. docs/dry-run.md has a list";

/// What is missing when the libraries above the driver are simulated.
const LEFT_OUT: [&str; 4] = [
    "CUDA contexts (hundreds of MiB a process; MEMSCOPE_SIMULATOR_CONTEXT_BYTES sets a size)",
    "workspaces of cuDNN and cuFFT",
    "what NCCL and the handles of cuBLAS take",
    "sizes that follow from computed values (masks, nonzero, sampling, early ends)",
];

pub(super) fn detect(model: &Model) -> Vec<Finding> {
    let reads = reads(model);
    missed(model).into_iter().chain(reads).chain(devices(model)).collect()
}

/// The library that a function belongs to.
fn library_of(function: &str) -> &'static str {
    let name = function.trim_start_matches('_');
    LIBRARIES.iter().find(|(begin, _)| name.starts_with(begin)).map_or("another library", |(_, library)| library)
}

fn missed(model: &Model) -> Option<Finding> {
    let named = model.simulation.missed.iter().map(|(name, calls)| (model.names.text(*name), *calls));
    let mut functions: Vec<MissedFunction> = named
        .map(|(function, calls)| MissedFunction { library: library_of(&function).to_owned(), function, calls })
        .collect();
    if functions.is_empty() {
        return None;
    }
    functions.sort_by(|a, b| b.calls.cmp(&a.calls).then_with(|| a.function.cmp(&b.function)));
    let told = functions
        .iter()
        .take(IN_SENTENCE)
        .map(|missed| format!("{} of {} ({})", missed.function, missed.library, count(missed.calls, "call", "calls")));
    let mut told = told.collect::<Vec<_>>().join(", ");
    if functions.len() > IN_SENTENCE {
        told.push_str(&format!(" and {} more", functions.len() - IN_SENTENCE));
    }
    let more_functions = functions.len().saturating_sub(MOST) as u64;
    functions.truncate(MOST);
    Some(finding(
        Severity::Warning,
        format!("not simulated, so that the program got errors: {told}"),
        "do without what needs these functions, or run on a GPU: figures after such an error are those of a program that \
         met it",
        Detail::NotSimulated { functions, more_functions },
    ))
}

fn reads(model: &Model) -> Option<Finding> {
    let mut all = Reads::default();
    model.simulation.reads.values().for_each(|reads| all.merge(reads));
    if all.uncomputed == 0 {
        return None;
    }
    let uncomputed = model.simulation.reads.iter().filter(|(_, reads)| reads.uncomputed > 0);
    let text = |name| Some(model.names.text(name)).filter(|line| !line.is_empty());
    let line_of = |name| text(name).unwrap_or_else(|| ELSEWHERE.to_owned());
    let line = |(name, reads): (&u32, &Reads)| ReadLine {
        line: line_of(*name),
        reads: reads.uncomputed,
        bytes: reads.uncomputed_bytes,
    };
    let mut lines: Vec<ReadLine> = uncomputed.map(line).collect();
    lines.sort_by(|a, b| b.reads.cmp(&a.reads).then_with(|| a.line.cmp(&b.line)));
    let more_lines = lines.len().saturating_sub(MOST) as u64;
    lines.truncate(MOST);
    let mut told = format!(
        "the program read the device {} ({}), and {} of these reads ({}) got zeros for what a GPU would have computed",
        count(all.count, "time", "times"),
        bytes(all.bytes),
        grouped(all.uncomputed),
        bytes(all.uncomputed_bytes),
    );
    let failed = model.end.as_ref().and_then(|end| end.exit_status).filter(|status| *status != 0);
    let last = failed.map(|_| line_of(model.simulation.last));
    if let (Some(status), Some(last)) = (failed, &last) {
        told.push_str(&format!("; the program ended with status {status}, and the last such read was at {last}"));
    }
    let (severity, advice) = match failed {
        Some(_) => (Severity::Warning, STOPPED),
        None => (Severity::Note, READ),
    };
    Some(finding(
        severity,
        told,
        advice,
        Detail::DeviceReads {
            reads: all.count,
            bytes: all.bytes,
            uncomputed: all.uncomputed,
            uncomputed_bytes: all.uncomputed_bytes,
            lines,
            more_lines,
            last,
        },
    ))
}

fn devices(model: &Model) -> Option<Finding> {
    let device = model.session.simulated.as_ref()?;
    let (compute, libraries) = (model.computes(), model.simulation.not_computed);
    let rest = match (libraries, compute) {
        (true, _) => ", the CUDA libraries too, and nothing was computed",
        (false, false) => ", and kernels and copies were skipped",
        (false, true) => "",
    };
    let left_out = if libraries { LEFT_OUT.map(str::to_owned).to_vec() } else { Vec::new() };
    Some(finding(
        Severity::Note,
        format!("the devices were simulated ({}){rest}", simulated(device)),
        "do not use checkpoints or losses of this run",
        Detail::Simulated { device: device.clone(), compute, libraries, calibrated: false, left_out },
    ))
}

/// The reads of a finding, by the numbers of their lines.
pub(crate) fn reads_of(detail: &Detail, names: &mut Names) -> BTreeMap<u32, Reads> {
    let Detail::DeviceReads { reads, bytes, uncomputed, uncomputed_bytes, lines, .. } = detail else {
        return BTreeMap::new();
    };
    let mut by_line = BTreeMap::<u32, Reads>::new();
    let mut rest = Reads { count: *reads, bytes: *bytes, uncomputed: *uncomputed, uncomputed_bytes: *uncomputed_bytes };
    for ReadLine { line, reads, bytes } in lines {
        let name = if line == ELSEWHERE { 0 } else { names.number_of(line) };
        let here = Reads { count: *reads, bytes: *bytes, uncomputed: *reads, uncomputed_bytes: *bytes };
        rest.remove(&here);
        by_line.entry(name).or_default().merge(&here);
    }
    by_line.entry(0).or_default().merge(&rest);
    by_line
}

/// What stands below a finding's sentence, where it has more to say.
pub(crate) fn particulars(detail: &Detail) -> Vec<String> {
    match detail {
        Detail::Simulated { left_out, .. } if !left_out.is_empty() => vec![
            format!("Left out, so that a GPU needs more: {}.", left_out.join("; ")),
            "Not calibrated: no figure of a simulated run was compared with a GPU on the same versions yet.".to_owned(),
        ],
        Detail::NotSimulated { functions, more_functions } if functions.len() > IN_SENTENCE => {
            let more = functions.len() as u64 + more_functions - IN_SENTENCE as u64;
            let named = functions.iter().skip(IN_SENTENCE).take(2 * IN_SENTENCE);
            let named = named.map(|missed| format!("{} ({})", missed.function, grouped(missed.calls)));
            let named = named.collect::<Vec<_>>();
            let rest = more - named.len() as u64;
            let rest = if rest > 0 { format!(" and {}", count(rest, "other", "others")) } else { String::new() };
            vec![format!("And {}{rest}.", named.join(", "))]
        }
        Detail::DeviceReads { lines, more_lines, .. } => {
            let named = lines.iter().take(IN_SENTENCE + 1);
            let mut told: Vec<String> = named
                .map(|line| format!("{}: {}, {}.", line.line, count(line.reads, "time", "times"), bytes(line.bytes)))
                .collect();
            let rest = (lines.len() - told.len()) as u64 + more_lines;
            if rest > 0 {
                told.push(format!("And at {}.", count(rest, "other line", "other lines")));
            }
            told
        }
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_functions_name_says_its_library() {
        for (function, library) in [
            ("cublasLtMatmul", "cuBLASLt"),
            ("cublasGetVectorAsync", "cuBLAS"),
            ("cufftCreate", "cuFFT"),
            ("cusolverDnCreate", "cuSOLVER"),
            ("cusparseSpMM", "cuSPARSE"),
            ("cudaGraphAddNode", "the CUDA runtime"),
            ("__cudaInitModule", "the CUDA runtime"),
            ("cudnnRNNForward", "cuDNN"),
            ("cuptiSubscribe", "CUPTI"),
            ("cuLaunchGrid", "the CUDA driver"),
            ("magma_init", "another library"),
        ] {
            assert_eq!(library_of(function), library, "{function}");
        }
    }
}
