//! Bands where their addresses are, without the gaps between what is shown.
//!
//! Owns: the axis, and the containers on it. Refuses: what lies in a container (those are bands).

use std::cmp::Reverse;

use crate::allocation::flag;

use super::super::history::History;
use super::super::rows::pick;
use super::make::Chosen;
use super::{AddressSpan, BandsView, SegmentBand};

/// Most containers that are told.
const MOST: usize = 4096;

/// Gives the bands their places.
pub(super) fn lay(history: &History, chosen: &Chosen<'_>, view: &mut BandsView) {
    let source = chosen.source;
    let mut containers = containers(history, chosen);
    containers.sort_unstable_by_key(|id| (Reverse(source.allocation(*id).bytes), *id));
    view.segments_hidden = containers.len().saturating_sub(MOST);
    containers.truncate(MOST);
    let mut shown: Vec<AddressSpan> = chosen
        .ids
        .iter()
        .chain(&containers)
        .map(|id| {
            let allocation = source.allocation(*id);
            let (process, address) = (allocation.process, allocation.address);
            AddressSpan { process, address, bytes: allocation.bytes.min(u64::MAX - address), offset: 0 }
        })
        .collect();
    shown.sort_unstable_by_key(|span| (span.process, span.address, Reverse(span.bytes)));
    for span in shown {
        match view.axis.last_mut() {
            Some(last) if last.process == span.process && span.address <= last.address + last.bytes => {
                last.bytes = last.bytes.max(span.address + span.bytes - last.address);
            }
            last => {
                let offset = last.map_or(0, |last| last.offset.saturating_add(last.bytes));
                view.axis.push(AddressSpan { offset, ..span });
            }
        }
    }
    view.height = view.axis.last().map_or(0, |last| last.offset.saturating_add(last.bytes));
    let axis = &view.axis;
    let offset = |process: u32, address: u64| {
        let behind = axis.partition_point(|span| (span.process, span.address) <= (process, address));
        let span = axis[behind.saturating_sub(1)];
        span.offset.saturating_add(address - span.address)
    };
    for (number, band) in (0..).zip(&mut view.bands) {
        view.points.push((band.begin, offset(band.process, band.address)));
        band.points = number..number + 1;
    }
    view.segments = containers
        .into_iter()
        .map(|id| {
            let allocation = source.allocation(id);
            let (begin, end) = chosen.span(id);
            let offset = offset(allocation.process, allocation.address);
            let (pick, device) = (pick(source.model, id), chosen.positions.shown(allocation));
            SegmentBand { pick, begin, end, bytes: allocation.bytes, offset, device }
        })
        .collect();
}

/// The containers that live within the range.
fn containers(history: &History, chosen: &Chosen<'_>) -> Vec<u32> {
    let (source, part) = (chosen.source, chosen.part);
    let is_container = |id: &u32| {
        let allocation = source.allocation(*id);
        let is_segment = allocation.is(flag::CONTAINER) && !allocation.is(flag::POOL_RESERVE);
        is_segment && part.counts(source.model, allocation)
    };
    history.blocks.alive(source, chosen.orders, |block| block.containers).filter(is_container).collect()
}
