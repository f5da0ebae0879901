//! The processes of a session, where there are several or one that has a rank or a name.

use crate::report::units::{bytes, count};
use crate::report::{ProcessReport, Report, called};

use super::{Page, WIDTH, fit};

/// Processes that are shown.
const MOST: usize = 32;
/// Columns of the figures behind a process.
const FIGURES: usize = 47;

impl Page {
    pub(super) fn processes(&mut self, report: &Report) {
        let (mut shown, others): (Vec<&ProcessReport>, Vec<_>) =
            report.processes.iter().partition(|process| process.allocations > 0);
        let told = |process: &&ProcessReport| process.rank.is_some() || process.name.is_some();
        if shown.len() < 2 && !shown.iter().any(told) {
            return;
        }
        shown.sort_by_key(|process| (process.rank.unwrap_or(u32::MAX), process.pid, process.exec_count));
        self.title(
            &report.node.as_ref().map_or("Processes".to_owned(), |node| format!("Processes on {}", fit(node, 60))),
        );
        for process in shown.iter().take(MOST) {
            let called = called(process.rank, process.world_size, None, process.name.as_deref());
            let called = called.map_or_else(String::new, |called| format!("{called}, "));
            let figures = match (process.peak_live, process.peak_reserved) {
                (Some(live), Some(reserved)) => {
                    format!("peak live {:>11}, reserved {:>11}", bytes(live), bytes(reserved))
                }
                _ => String::new(),
            };
            let room = WIDTH - FIGURES;
            self.line(format!("  {:<room$} {figures}", fit(&format!("{called}pid {}", process.pid), room)));
        }
        let left = shown.len().saturating_sub(MOST);
        if left > 0 {
            self.line(format!("  and {} more", count(left as u64, "process", "processes")));
        }
        if !others.is_empty() {
            self.line(format!("  and {} without an allocation", count(others.len() as u64, "process", "processes")));
        }
    }
}
