//! A profile as a picture: live bytes by category over time, stacked, as SVG of our own.
//!
//! Owns: which moments a column shows, and the drawing. Refuses: fonts, scripts and anything outside the file. Colours are those
//! of the dashboard, and so is the order of the categories.
//!
//! Where nothing is computed, times are those of the allocations themselves and mean nothing: such a picture goes from one
//! change to the next, each as wide as the others, and is the same on every machine.

use std::fmt::Write;
use std::ops::Range;
use std::path::Path;

use anyhow::Result;
use memscope_core::Category;
use memscope_core::allocation::{Allocation, Model, flag};
use memscope_core::explorer::{Explorer, Query, STACKED, Target};
use memscope_core::ledger::CATEGORIES;
use memscope_core::profile::Profile;
use memscope_core::report::units;
use memscope_core::timeline::{Bucket, Series};
use memscope_tui::palette::{Depth, Palette, Scheme};

/// Columns of the plot.
const COLUMNS: u64 = 240;
/// Size of the plot and its margins.
const WIDTH: u64 = 720;
const HEIGHT: u64 = 180;
const LEFT: u64 = 76;
const TOP: u64 = 14;
const BELOW: u64 = 44;
/// Steps that are shown: the last ones, when memory has found its shape.
const STEPS: usize = 2;

/// What is drawn of a profile.
pub struct Curve {
    /// Live bytes by category, a column each.
    columns: Vec<[u64; CATEGORIES]>,
    /// Where steps begin: column and number.
    steps: Vec<(f64, u64)>,
    /// What the width stands for.
    span: Span,
}

/// What the width of a picture stands for.
enum Span {
    /// So many nanoseconds.
    Time(u64),
    /// So many allocations and frees.
    Changes(usize),
}

/// An allocation or a free: when, of what, how much.
struct Change {
    ticks: u64,
    category: Category,
    bytes: i64,
}

impl Curve {
    /// The last steps of a profile, on one device: over time if it computed, else from change to change.
    pub fn of(profile: &Path, device: &str, compute: bool) -> Result<Curve> {
        let profile = Profile::open(profile)?;
        if compute { Curve::over_time(&profile, device) } else { Ok(Curve::over_changes(&profile.model()?, device)) }
    }

    /// Step by step of one process; a device that has several is shown by its first.
    fn over_changes(model: &Model, device: &str) -> Curve {
        let position = model.device_of(device).unwrap_or_default();
        let own = |one: &&Allocation| one.device == position && one.is_leaf() && one.on_device();
        let allocations: Vec<_> = model.allocations().iter().filter(own).collect();
        let process = allocations.first().map_or(0, |first| first.process);
        let marks: Vec<_> = model.steps().filter(|mark| mark.process == process).collect();
        let marks = &marks[marks.len().saturating_sub(STEPS)..];
        let begin = marks.first().map_or(0, |mark| mark.ticks);

        let mut changes = Vec::with_capacity(2 * allocations.len());
        for one in &allocations {
            let change = |ticks, sign| Change { ticks, category: one.category, bytes: sign * one.requested as i64 };
            changes.push(change(one.birth_ticks, 1));
            if one.is(flag::DEAD) {
                changes.push(change(one.death_ticks, -1));
            }
        }
        changes.sort_by_key(|change| change.ticks);
        // After the last allocation, a free of what the steps did not make is the trainer's end.
        let last_birth = allocations.iter().map(|one| one.birth_ticks).max().unwrap_or(0);
        let lasting =
            |one: &&&Allocation| one.birth_ticks < begin && one.is(flag::DEAD) && one.death_ticks > last_birth;
        let end = allocations.iter().filter(lasting).map(|one| one.death_ticks).min().unwrap_or(u64::MAX);
        changes.retain(|change| change.ticks < end);
        let first = changes.partition_point(|change| change.ticks < begin);
        let (before, shown) = changes.split_at(first);
        let mut live = [0; CATEGORIES];
        before.iter().for_each(|change| apply(&mut live, change));
        let place = |ticks| shown.partition_point(|change| change.ticks < ticks) as f64 / shown.len().max(1) as f64;
        Curve {
            steps: marks.iter().map(|mark| (place(mark.ticks) * COLUMNS as f64, mark.number)).collect(),
            columns: (0..COLUMNS as usize).map(|column| tallest_change(&mut live, shown, column)).collect(),
            span: Span::Changes(shown.len()),
        }
    }

    fn over_time(profile: &Profile, device: &str) -> Result<Curve> {
        let mut explorer = Explorer::of_profile(profile)?;
        let devices = explorer.answer(&Query::default()).devices;
        let position = devices.iter().position(|view| view.uuid == device).unwrap_or_default() as u16;
        let mut query = Query { target: Target::Device(position), ..Query::default() };
        let total = explorer.answer(&query).steps_total;
        query.steps = total.saturating_sub(STEPS)..total;
        let answer = explorer.answer(&query);
        let last = answer.session.last_time.0;
        let begin = answer.steps.first().map_or(0, |step| step.begin.0);
        let end = answer.steps.last().and_then(|step| step.end).map_or(last, |end| end.0);
        let span = begin..end.max(begin + 1);
        let steps = answer.steps.iter().map(|step| {
            let part = (step.begin.0 - span.start) as f64 / (span.end - span.start) as f64;
            (part * COLUMNS as f64, step.number)
        });
        Ok(Curve {
            steps: steps.collect(),
            columns: (0..COLUMNS).map(|column| tallest(&answer.series, &span, column)).collect(),
            span: Span::Time(span.end - span.start),
        })
    }

    /// Largest live bytes in it.
    pub fn most(&self) -> u64 {
        self.columns.iter().map(|live| live.iter().sum()).max().unwrap_or(0)
    }

    /// The picture; `top` is the value at the upper edge, so that pictures can be compared, and `baseline` a line across.
    pub fn svg(&self, title: &str, top: u64, baseline: Option<u64>) -> String {
        let top = top.max(self.most()).max(1);
        let (width, height) = (LEFT + WIDTH + 8, TOP + HEIGHT + BELOW);
        let title = escape(title);
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" role=\"img\" \
             font-family=\"sans-serif\" font-size=\"11\">\n<title>{title}</title>\n"
        );
        let palette = Palette::new(Scheme::Default, Depth::True);
        for (position, category) in STACKED.into_iter().enumerate().rev() {
            if self.columns.iter().any(|live| live[category as usize] > 0) {
                let path = self.outline(&STACKED[..=position], top);
                let _ = writeln!(svg, "<path fill=\"{}\" d=\"{path}\"/>", palette.category(category));
            }
        }
        self.axes(&mut svg, top, baseline);
        self.legend(&mut svg, &palette);
        svg + "</svg>\n"
    }

    /// The area under a stack of categories.
    fn outline(&self, categories: &[Category], top: u64) -> String {
        let floor = TOP + HEIGHT;
        let mut path = format!("M{LEFT} {floor}");
        let mut before = None;
        for (column, live) in self.columns.iter().enumerate() {
            let bytes = categories.iter().map(|category| live[*category as usize]).sum();
            let y = format!("{:.1}", height_of(bytes, top));
            if before.as_ref() != Some(&y) {
                let _ = write!(path, "H{}V{y}", LEFT + column as u64 * WIDTH / COLUMNS);
            }
            before = Some(y);
        }
        let _ = write!(path, "H{}V{floor}Z", LEFT + WIDTH);
        path
    }

    fn axes(&self, svg: &mut String, top: u64, baseline: Option<u64>) {
        let grey = "#6e7781";
        let (floor, right) = (TOP + HEIGHT, LEFT + WIDTH);
        let _ = writeln!(svg, "<path fill=\"none\" stroke=\"{grey}\" d=\"M{LEFT} {TOP}V{floor}H{right}\"/>");
        for bytes in [top, top / 2, 0] {
            let y = height_of(bytes, top) + 4.0;
            let text = units::bytes(bytes);
            let _ = writeln!(
                svg,
                "<text fill=\"{grey}\" text-anchor=\"end\" x=\"{}\" y=\"{y:.1}\">{text}</text>",
                LEFT - 6
            );
        }
        if let Some(bytes) = baseline {
            let y = height_of(bytes, top);
            let _ = writeln!(
                svg,
                "<path fill=\"none\" stroke=\"{grey}\" stroke-dasharray=\"4 3\" d=\"M{LEFT} {y:.1}H{right}\"/>"
            );
            let _ = writeln!(
                svg,
                "<text fill=\"{grey}\" text-anchor=\"end\" x=\"{right}\" y=\"{:.1}\">peak of the baseline</text>",
                y - 4.0
            );
        }
        for (column, number) in &self.steps {
            let x = LEFT as f64 + column * WIDTH as f64 / COLUMNS as f64;
            let _ = writeln!(svg, "<path fill=\"none\" stroke=\"{grey}\" d=\"M{x:.1} {TOP}V{}\"/>", floor + 4);
            let _ =
                writeln!(svg, "<text fill=\"{grey}\" x=\"{:.1}\" y=\"{}\">step {number}</text>", x + 2.0, floor + 14);
        }
        let span = match self.span {
            Span::Time(nanoseconds) => units::time(nanoseconds as f64 / 1e9),
            Span::Changes(count) => format!("{count} allocations and frees"),
        };
        let _ =
            writeln!(svg, "<text fill=\"{grey}\" text-anchor=\"end\" x=\"{right}\" y=\"{}\">{span}</text>", floor + 14);
    }

    fn legend(&self, svg: &mut String, palette: &Palette) {
        let y = TOP + HEIGHT + 34;
        let mut x = LEFT;
        for category in STACKED {
            if self.columns.iter().any(|live| live[category as usize] > 0) {
                let (colour, name) = (palette.category(category), category.name());
                let _ = writeln!(svg, "<rect fill=\"{colour}\" x=\"{x}\" y=\"{}\" width=\"9\" height=\"9\"/>", y - 8);
                let _ = writeln!(svg, "<text fill=\"#6e7781\" x=\"{}\" y=\"{y}\">{name}</text>", x + 13);
                x += 26 + 7 * name.len() as u64;
            }
        }
    }
}

/// The moment of a column's span at which most was live.
fn tallest(series: &Series, span: &Range<u64>, column: u64) -> [u64; CATEGORIES] {
    let width = series.width_ns.max(1);
    let long = u128::from(span.end - span.start);
    let at = |column: u64| span.start + (long * u128::from(column) / u128::from(COLUMNS)) as u64;
    let first = (at(column) / width) as usize;
    let last = (at(column + 1).div_ceil(width) as usize).max(first + 1).min(series.buckets.len());
    let covered = series.buckets.get(first..last.max(first)).unwrap_or_default();
    let sum = |bucket: &&Bucket| bucket.live.iter().sum::<u64>();
    covered.iter().max_by_key(sum).or(series.buckets.last()).map_or([0; CATEGORIES], |bucket| bucket.live)
}

fn apply(live: &mut [i64; CATEGORIES], change: &Change) {
    live[change.category as usize] += change.bytes;
}

/// The moment of a column's changes at which most was live, from what was `live` before; then that is what is after.
fn tallest_change(live: &mut [i64; CATEGORIES], changes: &[Change], column: usize) -> [u64; CATEGORIES] {
    let at = |column: usize| changes.len() * column / COLUMNS as usize;
    let mut tallest = None;
    for change in &changes[at(column)..at(column + 1)] {
        apply(live, change);
        let sum: i64 = live.iter().sum();
        if tallest.is_none_or(|(most, _)| sum > most) {
            tallest = Some((sum, *live));
        }
    }
    tallest.map_or(*live, |(_, moment)| moment).map(|bytes| bytes.max(0) as u64)
}

fn height_of(bytes: u64, top: u64) -> f64 {
    TOP as f64 + HEIGHT as f64 * (1.0 - bytes as f64 / top as f64)
}

/// Text as it stands in XML, in attributes too.
pub fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped += "&amp;",
            '<' => escaped += "&lt;",
            '>' => escaped += "&gt;",
            '"' => escaped += "&quot;",
            '\'' => escaped += "&#39;",
            other => escaped.push(other),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(bytes: &[u64]) -> Series {
        let bucket = |weights: &u64| Bucket { live: [0, *weights, 0, 0, 0, 0, 0], reserved: *weights };
        Series { width_ns: 10, buckets: bytes.iter().map(bucket).collect() }
    }

    #[test]
    fn a_column_keeps_its_peak() {
        // 480 buckets of 10 ns in 240 columns: two a column.
        let mut bytes = vec![1; 480];
        bytes[101] = 9;
        let series = series(&bytes);
        let columns: Vec<u64> = (0..COLUMNS).map(|column| tallest(&series, &(0..4800), column)[1]).collect();
        assert_eq!(columns[50], 9);
        assert_eq!(columns.iter().filter(|bytes| **bytes == 1).count(), 239);
    }

    #[test]
    fn a_short_series_fills_all_columns() {
        let series = series(&[5, 7]);
        let columns: Vec<u64> = (0..COLUMNS).map(|column| tallest(&series, &(0..20), column)[1]).collect();
        assert_eq!((columns[0], columns[119], columns[120], columns[239]), (5, 5, 7, 7));
        assert_eq!(tallest(&series, &(100..200), 3)[1], 7, "nothing has changed since");
    }

    #[test]
    fn changes_are_as_wide_as_one_another() {
        // 480 changes in 240 columns, two each: 5 bytes come and go at once, once in the whole also 7.
        let change = |ticks: usize, bytes| Change { ticks: ticks as u64, category: Category::Weights, bytes };
        let mut changes: Vec<_> =
            (0..480).map(|ticks| change(ticks * ticks, if ticks % 2 == 0 { 5 } else { -5 })).collect();
        changes[100].bytes = 12;
        changes[101].bytes = -12;
        let mut live = [0; CATEGORIES];
        live[Category::Weights as usize] = 1;
        let columns: Vec<u64> =
            (0..COLUMNS as usize).map(|column| tallest_change(&mut live, &changes, column)[1]).collect();
        assert_eq!(columns[50], 13);
        assert_eq!(columns.iter().filter(|bytes| **bytes == 6).count(), 239);
        // Fewer changes than columns: what was live before goes on.
        assert_eq!(tallest_change(&mut live, &changes[..1], 0)[1], 1);
        assert_eq!(tallest_change(&mut live, &changes[..1], 239)[1], 6);
    }

    #[test]
    fn a_picture_is_well_formed_and_to_scale() {
        let mut columns = vec![[0; CATEGORIES]; COLUMNS as usize];
        columns.iter_mut().for_each(|live| live[Category::Weights as usize] = 50);
        columns[120][Category::Activations as usize] = 50;
        let curve = Curve { columns, steps: vec![(0.0, 4)], span: Span::Time(1_000_000) };
        assert_eq!(curve.most(), 100);
        let svg = curve.svg("a < b & \"c\"", 200, Some(200));
        let document = roxmltree::Document::parse(&svg).expect("well-formed");
        let fills: Vec<_> = document
            .descendants()
            .filter(|node| node.has_tag_name("path"))
            .filter_map(|node| node.attribute("fill").filter(|fill| *fill != "none").zip(node.attribute("d")))
            .collect();
        assert_eq!(fills.len(), 2, "weights and activations");
        // 50 of 200 bytes are a quarter of the plot: 14 + 180 · 3/4 = 149; 100 of 200 a half, 104, in column 120 alone.
        assert_eq!(fills[1], ("#4C9BE8", "M76 194H76V149.0H796V194Z"));
        assert_eq!(fills[0].1, "M76 194H76V149.0H436V104.0H439V149.0H796V194Z");
        assert!(svg.contains("a &lt; b &amp; &quot;c&quot;"));
    }
}
