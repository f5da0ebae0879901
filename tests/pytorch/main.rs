//! PyTorch programs under memscope, as a user runs them: an unmodified PyTorch, on the CPU and on the simulated device. One test
//! binary; this is its index.
//!
//! | file | what belongs there |
//! | --- | --- |
//! | `simulated.rs` | the CUDA build on the simulated device: PyTorch's own counters against the report, and against arithmetic |
//! | `ranks.rs` | ranks of one machine on the simulated device: what they hold and exchange, and waiting for each other |
//! | `snapshots.rs` | PyTorch's snapshot against memscope's allocations, block by block, at every step |
//! | `exact.rs` | the CPU: live bytes after each event, against a count in C that knows nothing of memscope |
//! | `categories.rs` | what each tensor is for, against the program's own objects |
//! | `others.rs` | training loops of packages: the Trainer of transformers, a model of timm, Lightning |
//! | `harmless.rs` | what a program prints, computes and ends with, with and without memscope; names of modules |
//! | `starts.rs` | how Python can begin and where its PyTorch is; no PyTorch, half a one, one that is not known |
//! | `notebooks.rs` | a notebook: its kernel, and cells that train, fail and are interrupted |
//! | `removed.rs` | programs that take hooks away, and models that go and come |
//! | `libraries.rs` | the simulated CUDA libraries: every name that PyTorch imports, and programs without PyTorch |
//! | `stacks.rs` | `--stacks python`: lines against those that Python gives, and against PyTorch's own history |
//! | `steps.rs` | steps of loops with several optimizers |
//! | `across.rs` | what goes from step to step: tensors that a program keeps, batches that grow |
//! | `graphs.rs` | evaluations that keep what a backward pass would need |
//! | `oom.rs` | out of memory: what is said at once, and what is kept |
//!
//! `torch.rs` finds the Python, runs a program and reads what it printed; `replay.rs` says what a live view knew at a moment,
//! `marks.rs` what a program knew of its own tensors.
//! Programs are in `programs/`: each prints one line of JSON, the figures that its test compares. The version is pinned in
//! `requirements.txt`; `.ci/run` installs it and sets `MEMSCOPE_TEST_TORCH` to the path of its Python. Where that is not set, the
//! tests say so and do nothing.

mod across;
mod categories;
mod exact;
mod graphs;
mod harmless;
mod libraries;
mod marks;
#[allow(dead_code, reason = "shared with the end-to-end tests, which use all of it")]
#[path = "../e2e/memscope.rs"]
mod memscope;
mod notebooks;
mod oom;
mod others;
mod ranks;
mod removed;
mod replay;
mod simulated;
mod snapshots;
mod stacks;
mod starts;
mod steps;
mod torch;
