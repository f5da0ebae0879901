//! The columns of each table. docs/profile-format.md says what they mean.
//!
//! Owns: names, types and encodings. Refuses: to change them within a format version; columns may be added.

use super::table::Coding::{Delta, Dictionary, Plain};
use super::table::Kind::{Narrow, Signed, Text, Wide};
use super::table::{Field, optional, required};

/// One row an allocation or block, in the order of births. The encodings are what makes them small: times and orders as
/// differences from the row before, sizes and addresses (which repeat from step to step) as dictionaries.
pub(super) const ALLOCATIONS: &[Field] = &[
    required("birth_order", Narrow(32), Delta),
    optional("death_order", Narrow(32), Delta),
    required("birth_ns", Wide, Delta),
    optional("death_ns", Wide, Delta),
    required("address", Wide, Dictionary),
    required("bytes", Wide, Dictionary),
    required("requested", Wide, Dictionary),
    required("category", Narrow(8), Dictionary),
    required("origin", Narrow(8), Dictionary),
    required("memory", Narrow(8), Dictionary),
    required("process", Narrow(32), Dictionary),
    optional("device", Narrow(16), Dictionary),
    required("stream", Wide, Dictionary),
    optional("container", Narrow(32), Dictionary),
    optional("step", Wide, Dictionary),
    required("phase", Narrow(32), Dictionary),
    required("scope", Narrow(32), Dictionary),
    required("name", Narrow(32), Dictionary),
    required("function", Narrow(32), Dictionary),
    required("thread", Narrow(32), Dictionary),
    required("flags", Narrow(16), Dictionary),
    required("stack", Narrow(32), Dictionary),
];

pub(super) const NAMES: &[Field] = &[required("id", Narrow(32), Delta), required("text", Text, Plain)];

pub(super) const SCOPES: &[Field] = &[
    required("id", Narrow(32), Delta),
    required("parent", Narrow(32), Delta),
    required("name", Narrow(32), Dictionary),
    required("path", Text, Plain),
];

pub(super) const STACKS: &[Field] = &[
    required("id", Narrow(32), Delta),
    required("parent", Narrow(32), Delta),
    required("file", Text, Dictionary),
    required("line", Narrow(32), Dictionary),
    required("function", Text, Dictionary),
];

pub(super) const PROCESSES: &[Field] = &[
    required("id", Narrow(32), Delta),
    required("pid", Narrow(32), Plain),
    required("parent_pid", Narrow(32), Plain),
    required("start_time", Wide, Plain),
    required("exec_count", Narrow(32), Plain),
    optional("rank", Narrow(32), Plain),
    required("executable", Text, Dictionary),
    required("command", Text, Dictionary),
    required("devices", Text, Dictionary),
    optional("last_ns", Wide, Plain),
    optional("exit_ns", Wide, Plain),
    optional("world_size", Narrow(32), Plain),
    optional("local_rank", Narrow(32), Plain),
    optional("name", Text, Dictionary),
    optional("begin_ns", Wide, Plain),
    optional("closed_ns", Wide, Plain),
];

pub(super) const DEVICES: &[Field] = &[
    required("id", Narrow(16), Delta),
    required("uuid", Text, Plain),
    optional("name", Text, Dictionary),
    optional("capacity", Wide, Plain),
    required("ordinal", Narrow(32), Plain),
];

pub(super) const MARKERS: &[Field] = &[
    required("order", Narrow(32), Delta),
    required("time_ns", Wide, Delta),
    required("process", Narrow(32), Dictionary),
    required("kind", Text, Dictionary),
    optional("step", Wide, Dictionary),
    optional("phase", Text, Dictionary),
    optional("function", Text, Dictionary),
    optional("scope", Narrow(32), Dictionary),
    optional("device", Narrow(16), Dictionary),
    optional("memory", Narrow(8), Dictionary),
    optional("requested", Wide, Dictionary),
    optional("free", Wide, Plain),
    optional("total", Wide, Dictionary),
    optional("result", Signed, Dictionary),
    optional("line", Text, Dictionary),
    optional("asked_again", Narrow(8), Dictionary),
];

pub(super) const STEPS: &[Field] = &[
    required("device", Narrow(16), Dictionary),
    required("step", Wide, Delta),
    required("begin_ns", Wide, Delta),
    optional("end_ns", Wide, Delta),
    required("peak_order", Narrow(32), Delta),
    required("peak_ns", Wide, Delta),
    required("peak_phase", Narrow(32), Dictionary),
    required("peak_bytes", Wide, Dictionary),
    required("weights", Wide, Dictionary),
    required("gradients", Wide, Dictionary),
    required("activations", Wide, Dictionary),
    required("optimizer", Wide, Dictionary),
    required("inputs", Wide, Dictionary),
    required("workspace", Wide, Dictionary),
    required("unknown", Wide, Dictionary),
    optional("live_at_end", Wide, Dictionary),
    required("turn", Narrow(32), Dictionary),
];

pub(super) const TELEMETRY: &[Field] = &[
    required("begin_ns", Wide, Delta),
    required("time_ns", Wide, Delta),
    required("uuid", Text, Dictionary),
    optional("total", Wide, Dictionary),
    optional("used", Wide, Dictionary),
    optional("reserved", Wide, Dictionary),
    optional("utilization", Narrow(32), Dictionary),
    optional("temperature", Narrow(32), Dictionary),
    optional("power", Narrow(32), Dictionary),
    optional("clock", Narrow(32), Dictionary),
    optional("processes", Text, Dictionary),
    optional("memory_clock", Narrow(32), Dictionary),
    optional("power_limit", Narrow(32), Dictionary),
    optional("fan", Narrow(32), Dictionary),
    optional("pcie_generation", Narrow(32), Dictionary),
    optional("pcie_width", Narrow(32), Dictionary),
    optional("pcie_receive", Wide, Dictionary),
    optional("pcie_send", Wide, Dictionary),
];

pub(super) const DEVICE_ROWS: &[Field] = &[
    required("device", Narrow(16), Dictionary),
    required("time_ns", Wide, Delta),
    optional("step", Wide, Dictionary),
    required("exact", Narrow(8), Dictionary),
    required("device_used", Wide, Dictionary),
    optional("this_process", Wide, Dictionary),
    optional("other_processes", Wide, Dictionary),
    optional("firmware_reserved", Wide, Dictionary),
    optional("unowned", Signed, Dictionary),
    required("reserved", Wide, Dictionary),
    optional("unexplained", Signed, Dictionary),
];

pub(super) const SERIES: &[Field] = &[
    required("device", Narrow(16), Dictionary),
    required("begin_ns", Wide, Delta),
    required("weights", Wide, Dictionary),
    required("gradients", Wide, Dictionary),
    required("activations", Wide, Dictionary),
    required("optimizer", Wide, Dictionary),
    required("inputs", Wide, Dictionary),
    required("workspace", Wide, Dictionary),
    required("unknown", Wide, Dictionary),
    required("reserved", Wide, Dictionary),
];

pub(super) const FINDINGS: &[Field] = &[
    required("kind", Text, Dictionary),
    required("severity", Text, Dictionary),
    required("message", Text, Plain),
    required("advice", Text, Plain),
    required("detail", Text, Plain),
];
