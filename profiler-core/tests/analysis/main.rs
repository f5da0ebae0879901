//! Tests of the analysis half of memscope-core, in one binary.
//!
//! | file | what belongs there |
//! | --- | --- |
//! | `trace` | writes small sessions by hand |
//! | `deeds`, `reference` | random sessions, and an independent, naive model |
//! | `ledger` | the model against the reference |
//! | `rules`, `objects` | single cases of what counts, by hand: plain memory, and what else the driver has |
//! | `explorer` | what views are told, against both |
//! | `reports` | reports against reviewed texts |
//! | `out_of_memory`, `holders`, `inputs`, `graphs` | why memory ran out: a cache, who holds, steps that were given more, forward passes that no backward pass came for |
//! | `alerts` | thresholds that were passed |
//! | `registration` | memory that is pinned in place |
//! | `simulation` | what a simulated run missed |
//! | `stacks` | where in the program memory was made |
//! | `schema` | the JSON |
//! | `profile` | profiles: written, read and damaged |
//! | `keep` | sessions of which not all is kept |
//! | `ranks` | several profiles as one job |
//! | `reader` | the queries of docs/profile-format.md in a reader that is not ours |
//! | `seeds` | the fuzzers' seeds are sound |

mod alerts;
mod deeds;
mod explorer;
mod graphs;
mod holders;
mod inputs;
mod keep;
mod ledger;
mod objects;
mod out_of_memory;
mod profile;
mod ranks;
mod reader;
mod reference;
mod registration;
mod reports;
mod rules;
mod schema;
mod seeds;
mod simulation;
mod stacks;
mod trace;
