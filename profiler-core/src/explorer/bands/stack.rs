//! Bands one on another: each on those that were made before it and still live.
//!
//! Owns: offsets over time. Refuses: what is not drawn.

use crate::journal::entry::Nanoseconds;

use super::BandsView;
use super::make::Chosen;

/// A band that lives, where it lies, and its points so far.
struct Standing {
    band: usize,
    offset: u64,
    points: Vec<(Nanoseconds, u64)>,
}

/// Gives the bands their points.
pub(super) fn lay(chosen: &Chosen<'_>, view: &mut BandsView) {
    let (after, until) = chosen.orders;
    // Births come in order; deaths are put in order.
    let mut deaths: Vec<(u32, usize)> = Vec::new();
    for (band, id) in chosen.ids.iter().enumerate() {
        let death = chosen.source.lifetime(*id).death;
        if death <= until {
            deaths.push((death, band));
        }
    }
    deaths.sort_unstable();
    let mut deaths = deaths.into_iter().peekable();
    let mut done: Vec<Vec<(Nanoseconds, u64)>> = vec![Vec::new(); chosen.ids.len()];
    let mut standing: Vec<Standing> = Vec::new();
    let (mut top, mut height, mut now) = (0u64, 0, chosen.range.start);
    for band in 0..=chosen.ids.len() {
        let birth = chosen.ids.get(band).map_or(u32::MAX, |id| chosen.source.lifetime(*id).birth);
        while let Some((_, ended)) = deaths.next_if(|(death, _)| *death < birth) {
            now = now.max(view.bands[ended].end);
            let gone = view.bands[ended].height;
            if let Some(at) = standing.iter().position(|standing| standing.band == ended) {
                done[ended] = standing.remove(at).points;
                standing[at..].iter_mut().for_each(|above| above.sink(gone, now, chosen));
                top = top.wrapping_sub(gone);
            }
        }
        if band < chosen.ids.len() {
            // Those that lived before the range begin with it.
            now = if birth > after { now.max(view.bands[band].begin) } else { now };
            standing.push(Standing { band, offset: top, points: vec![(now, top)] });
            top = top.wrapping_add(view.bands[band].height);
            height = height.max(top);
        }
    }
    for left in standing {
        done[left.band] = left.points;
    }
    for (band, points) in view.bands.iter_mut().zip(done) {
        let first = view.points.len() as u32;
        view.points.extend(points);
        band.points = first..view.points.len() as u32;
    }
    view.height = height;
}

impl Standing {
    /// One below ended. Of several offsets within one column, and at one moment, only the last is told.
    fn sink(&mut self, bytes: u64, now: Nanoseconds, chosen: &Chosen<'_>) {
        self.offset = self.offset.wrapping_sub(bytes);
        let first = self.points.len() == 1;
        match self.points.last_mut() {
            Some((time, offset)) if *time == now || (!first && chosen.ruler.part(*time) == chosen.ruler.part(now)) => {
                *offset = self.offset;
            }
            _ => self.points.push((now, self.offset)),
        }
    }
}
