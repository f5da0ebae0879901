//! Tests of the analysis half of memscope-core, in one binary.
//!
//! Index: `trace` writes small sessions by hand; `reference` is an independent, naive model; `ledger` holds the model against
//! it; `explorer` holds what views are told against both; `reports` compares reports with reviewed texts; `out_of_memory` those of an allocator with a cache; `holders` who holds memory; `inputs` steps that were given more; `registration` counts memory that is pinned in place; `simulation` what a simulated run missed; `stacks` where in the program memory was made; `schema` checks the JSON; `profile` writes, reads and damages profiles; `ranks` several profiles as one job;
//! `reader` runs the queries of docs/profile-format.md in a reader that is not ours; `seeds` keeps the fuzzers' seeds sound.

mod alerts;
mod explorer;
mod holders;
mod inputs;
mod ledger;
mod out_of_memory;
mod profile;
mod ranks;
mod reader;
mod reference;
mod registration;
mod reports;
mod schema;
mod seeds;
mod simulation;
mod stacks;
mod trace;
