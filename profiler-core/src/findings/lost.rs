//! Events that were not recorded: there was no room for them, or memscope was gone.
//!
//! Owns: this finding. Refuses: to say what the lost events were.

use memscope_wire::log::Refusal;

use crate::allocation::{Model, Process};
use crate::journal::entry::Nanoseconds;
use crate::report::seconds;
use crate::report::units::{grouped, time};

use super::detect::finding;
use super::{Detail, Finding, Severity};

/// What is not in the figures.
pub(super) fn detect(model: &Model) -> Option<Finding> {
    let dropped = model.processes.iter().map(|process| process.counters.dropped).fold(0, u64::wrapping_add);
    let events = dropped.wrapping_add(model.doubts.over_limit);
    let unread = Refusal::Unread.name();
    let told = model.end.as_ref().map_or(&model.refusals, |end| &end.refusals);
    let processes = told.iter().filter(|(name, _)| name == unread).map(|(_, count)| *count).sum();
    let gone_s = gone_at(model).map(seconds);
    if events == 0 && processes == 0 {
        return None;
    }
    let later = match processes {
        0 => String::new(),
        count => format!("; processes that began later and were not recorded: {}", grouped(u64::from(count))),
    };
    let (message, advice) = match gone_s {
        None if processes == 0 => (
            format!("events that were not recorded: {}; figures may be wrong", grouped(events)),
            "give memscope more room in shared memory, or record a shorter part of the program",
        ),
        None => (
            format!(
                "memscope was gone before the program ended; events that were not recorded: {}{later}",
                grouped(events)
            ),
            "find out what ended memscope (the kernel's log names what it killed for want of memory)",
        ),
        Some(gone) => (
            format!(
                "memscope was gone, and from {} on events were not recorded: {}; figures of later moments are wrong{later}",
                time(gone),
                grouped(events)
            ),
            "trust the figures up to that moment; find out what ended memscope (the kernel's log names what it killed for want of memory)",
        ),
    };
    Some(finding(Severity::Warning, message, advice, Detail::DroppedEvents { events, gone_s, processes }))
}

/// When the first process lost an event because memscope was gone.
fn gone_at(model: &Model) -> Option<Nanoseconds> {
    let of = |process: &Process| process.counters.unread_ns;
    let first = model.processes.iter().filter_map(of).min()?;
    Some(Nanoseconds(first.saturating_sub(model.session.start_monotonic_ns)))
}
