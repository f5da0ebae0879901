//! What is live and not drawn: live bytes less those of the bands.
//!
//! Owns: its sums over time. Refuses: live bytes (`history`).

use memscope_wire::Category;

use crate::ledger::CATEGORIES;

use super::super::history::{History, Ledger, Peak, Sums};
use super::super::listed::Partial;
use super::super::window::{Remembered, peaks};
use super::make::Chosen;
use super::{BandsView, Rest};

/// So many changes are told one by one.
const FEW: u32 = 1 << 14;

/// A band begins or ends.
struct Turn {
    order: u32,
    ends: bool,
    category: Category,
    bytes: u64,
}

/// What of the bands is live.
#[derive(Default)]
struct Drawn {
    live: [u64; CATEGORIES],
    count: u64,
}

impl Drawn {
    fn turn(&mut self, turn: &Turn) {
        let live = &mut self.live[turn.category as usize];
        (*live, self.count) = match turn.ends {
            true => (live.wrapping_sub(turn.bytes), self.count.wrapping_sub(1)),
            false => (live.wrapping_add(turn.bytes), self.count + 1),
        };
    }
}

/// Sums up the rest.
pub(super) fn sum(history: &History, sums: &Sums, chosen: &Chosen<'_>, view: &mut BandsView) {
    let source = chosen.source;
    let (after, until) = chosen.orders;
    let mut turns: Vec<Turn> = Vec::with_capacity(chosen.ids.len() * 2);
    for id in &chosen.ids {
        let (allocation, lifetime) = (source.allocation(*id), source.lifetime(*id));
        let (category, bytes) = (allocation.category, allocation.requested);
        turns.push(Turn { order: lifetime.birth, ends: false, category, bytes });
        if lifetime.death <= until {
            turns.push(Turn { order: lifetime.death, ends: true, category, bytes });
        }
    }
    turns.sort_unstable_by_key(|turn| turn.order);
    let mut turns = turns.into_iter().peekable();
    let mut drawn = Drawn::default();
    let mut rest = |order: u32, time, ledger: &Ledger| {
        while let Some(turn) = turns.next_if(|turn| turn.order <= order) {
            drawn.turn(&turn);
        }
        let mut rest =
            Rest { time, drawn: 0, live: ledger.rows.live, allocations: ledger.allocations.wrapping_sub(drawn.count) };
        for (live, drawn) in rest.live.iter_mut().zip(drawn.live) {
            *live = live.saturating_sub(drawn);
            rest.drawn = rest.drawn.wrapping_add(drawn);
        }
        rest
    };
    let gaps = chosen.listed.filter(|listed| !listed.has_all(&chosen.range));
    view.rest_exact = until - after <= FEW && gaps.is_none();
    if !view.rest_exact {
        let mut peaks = peaks(history, source, sums, &chosen.range, &chosen.ruler);
        if let (Some(listed), Some(track)) = (gaps, sums.part.track(source.walk)) {
            view.partial = fill(&mut peaks, chosen, &Remembered { listed, series: track.series() });
        }
        // Before the range there may be what ends as it begins.
        view.rest = peaks.iter().map(|peak| rest(peak.order, peak.time, &peak.ledger)).collect();
        return;
    }
    let (mut ledger, _) = sums.at(history, source, after);
    view.rest.push(rest(after, chosen.range.start, &ledger));
    for turn in history.between(source, (after, until)) {
        let allocation = source.allocation(turn.id);
        if !sums.part.counts(source.model, allocation) {
            continue;
        }
        ledger.turn(allocation, turn.ends);
        let now = rest(turn.order, turn.time, &ledger);
        match view.rest.last_mut() {
            Some(last) if last.time == now.time => *last = now,
            _ => view.rest.push(now),
        }
    }
}

/// Puts what was live into the parts of a range of which only some is listed; where the least of it is.
fn fill(peaks: &mut [Peak], chosen: &Chosen<'_>, remembered: &Remembered<'_>) -> Option<Partial> {
    let mut partial: Option<Partial> = None;
    for (number, peak) in peaks.iter_mut().enumerate() {
        let Some(rows) = remembered.largest(&chosen.ruler, number) else { continue };
        let here = Partial::of(peak.ledger.live, rows.live_bytes());
        partial = partial.into_iter().chain(here).max_by_key(Partial::missing);
        peak.time = chosen.ruler.begin(number);
        peak.ledger = Ledger { rows, live: rows.live_bytes(), ..peak.ledger };
    }
    partial
}
