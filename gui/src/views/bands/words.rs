//! Memory over time in words.
//!
//! Owns: how many are drawn and what becomes of the rest; names of bands; the table that is copied. Refuses: figures.

use std::fmt::Write as _;

use memscope_core::explorer::{Answer, Band, BandOrder, BandsView, STACKED};
use memscope_core::report::units;

use super::draw;
use crate::panels::{self, selected};
use crate::shared::{Selection, Span};

/// Rows of what is merged in the table that is copied.
const MERGED: usize = 64;

/// What a band is called: its name, else its scope.
fn called<'a>(view: &'a BandsView, band: &'a Band) -> &'a str {
    let scope = view.scope(band).map_or("", |scope| &scope.path);
    match (band.name.as_str(), scope) {
        ("", "") => "without a name",
        ("", scope) => scope,
        (name, _) => name,
    }
}

/// A band, as it is written on it.
pub fn on_band(view: &BandsView, band: &Band) -> String {
    let name = match called(view, band) {
        "without a name" => band.category.name(),
        name => name,
    };
    format!("{name}  {}", units::bytes(band.bytes))
}

/// A band in a line.
pub fn line(view: &BandsView, band: &Band) -> String {
    let (name, bytes, category) = (called(view, band), units::bytes(band.bytes), band.category.name());
    format!("{name}, {bytes}, {category}, made at {}", panels::time(band.pick.birth.0))
}

/// How many are drawn, and what becomes of the rest.
pub fn summary(view: &BandsView, filter: &str, thin: usize) -> String {
    let (drawn, all) = (view.bands.len() as u64, view.alive);
    let filtered = !filter.trim().is_empty() && view.filter_error.is_none();
    let is_where = match view.order {
        BandOrder::Stacked => "merged on top, striped".to_owned(),
        BandOrder::Address => format!("not in the picture: {} at most", draw::most_merged(view)),
    };
    let mut text = match view.merged() {
        0 => format!("{} drawn", units::count(all, "allocation", "allocations")),
        _ if filtered => {
            let matching = units::count(drawn, "that matches", "that match");
            format!("{matching} drawn, of {} in this time; the rest {is_where}", units::grouped(all))
        }
        _ => format!("{} of {} drawn, the rest {is_where}", units::grouped(drawn), units::grouped(all)),
    };
    if thin > 0 {
        let _ = write!(text, "; {} of them lower than a pixel: Alt and wheel", units::grouped(thin as u64));
    }
    if view.segments_hidden > 0 {
        let _ = write!(text, "; {} not drawn", units::count(view.segments_hidden as u64, "segment", "segments"));
    }
    text
}

/// Why there is nothing to see; `None` where there is something.
pub fn without(view: &BandsView) -> Option<&'static str> {
    let nothing = view.alive == 0;
    if nothing && view.partial.is_some() {
        return Some("No allocation of this time is kept: what was live is merged, striped.");
    }
    nothing.then_some("No device memory was live in this time. 0 shows all of time, D another device or process.")
}

/// Where the selected allocation is, if it is none of the bands.
pub fn lost(answer: &Answer, view: &BandsView, selection: &Selection, seen: Span) -> Option<String> {
    let pick = selection.pick()?;
    let detail = selected::detail(answer, pick)?;
    if view.bands.iter().any(|band| band.pick == pick) || detail.container {
        return None;
    }
    let life = life(detail.row.birth.0, detail.death.map(|death| death.0), answer);
    let place = if detail.row.device.is_none() {
        return Some("What is selected is host memory: it has no band here.".to_owned());
    } else if life.begin >= seen.end || life.end <= seen.begin {
        "lived at another time"
    } else {
        "is among the merged"
    };
    Some(format!("What is selected {place}: Z shows its life."))
}

/// The time that an allocation lives.
pub fn life(birth: u64, death: Option<u64>, answer: &Answer) -> Span {
    Span::between(birth, death.unwrap_or(answer.session.last_time.0).max(birth))
}

/// All bands as a table for spreadsheets, and what is merged.
pub fn table(answer: &Answer, view: &BandsView, filter: &str) -> String {
    let (begin, end) = (panels::time(view.range.start.0), panels::time(view.range.end.0));
    let mut text = format!("Memory over time from {begin} to {end}: {}\n", summary(view, filter, 0));
    text.extend(
        view.partial.map(|partial| format!("{}\n", panels::partial::text(answer, panels::partial::SPAN, partial))),
    );
    text.push_str("made_s\tended_s\tbytes\tgranted\tcategory\tknown\tscope\tname\tprocess\taddress\n");
    let seconds = |time: u64| format!("{}.{:09}", time / 1_000_000_000, time % 1_000_000_000);
    for band in &view.bands {
        let ended = band.death.map_or_else(String::new, |death| seconds(death.0));
        let scope = view.scope(band).map_or("", |scope| &scope.path);
        let _ = writeln!(
            text,
            "{}\t{ended}\t{}\t{}\t{}\t{}\t{scope}\t{}\t{}\t{:#x}",
            seconds(band.pick.birth.0),
            band.bytes,
            band.granted,
            band.category.name(),
            band.origin.name(),
            band.name,
            band.process,
            band.address,
        );
    }
    if !view.has_rest() {
        return text;
    }
    let names: Vec<&str> = STACKED.iter().map(|category| category.name()).collect();
    let _ = writeln!(text, "\nmerged_at_s\tdrawn\t{}\tallocations", names.join("\t"));
    let stride = view.rest.len().div_ceil(MERGED).max(1);
    for part in view.rest.chunks(stride) {
        let Some(rest) = part.iter().max_by_key(|rest| rest.drawn.saturating_add(rest.bytes())) else { continue };
        let live: Vec<String> = STACKED.iter().map(|category| rest.live[*category as usize].to_string()).collect();
        let _ = writeln!(text, "{}\t{}\t{}\t{}", seconds(rest.time.0), rest.drawn, live.join("\t"), rest.allocations);
    }
    text
}
