//! Below the chart: a lane for each device and process, and what NVML told.
//!
//! Owns: how many of them there is room for. Refuses: to draw a line where there was no sample.

use eframe::egui::{
    Align2, Color32, FontId, Mesh, Painter, Rect, Sense, Shape, Stroke, Ui, WidgetInfo, accesskit::Role, pos2,
};
use memscope_core::explorer::{DeviceTelemetry, Lane, STACKED, Target, TelemetryPoint, TracksView};
use memscope_core::report::units;

use super::Chart;
use super::columns::Source;
use crate::shared::{Selection, Span};
use crate::view::ViewContext;

/// Height of a lane, where there is room, and where there is little.
const LANE: f32 = 26.0;
const LOW_LANE: f32 = 13.0;
/// Height of a track of telemetry.
const TRACK: f32 = 34.0;
/// Space below each.
const GAP: f32 = 4.0;

/// A track of telemetry.
struct Track {
    name: &'static str,
    /// What it shows of a sample, if that was told.
    value: fn(&TelemetryPoint) -> Option<f64>,
    /// How it is written.
    written: fn(f64) -> String,
    /// The value at the upper edge; the largest one, where there is none.
    top: Option<f64>,
}

const TRACKS: [Track; 4] = [
    Track {
        name: "GPU use",
        value: |point| point.utilization.map(f64::from),
        written: |percent| format!("{percent:.0} %"),
        top: Some(100.0),
    },
    Track {
        name: "power",
        value: |point| point.power.map(|milliwatts| f64::from(milliwatts) / 1000.0),
        written: |watts| format!("{watts:.0} W"),
        top: None,
    },
    Track {
        name: "temperature",
        value: |point| point.temperature.map(f64::from),
        written: |degrees| format!("{degrees:.0} °C"),
        top: Some(100.0),
    },
    Track {
        name: "PCIe",
        value: |point| Some((point.pcie_receive? + point.pcie_send?) as f64),
        written: |bytes| format!("{}/s", units::bytes(bytes as u64)),
        top: None,
    },
];

/// What there is room for below the chart.
pub struct Rows {
    lanes: Vec<Lane>,
    /// Height of each.
    lane: f32,
    /// Lanes for which there is none.
    hidden: usize,
    /// Positions in [`TRACKS`].
    tracks: Vec<usize>,
}

impl Rows {
    /// What is known, as far as it fits into a third of the height.
    pub fn of(view: Option<&TracksView>, height: f32) -> Rows {
        let Some(view) = view else { return Rows { lanes: Vec::new(), lane: 0.0, hidden: 0, tracks: Vec::new() } };
        let mut room = height * 0.4;
        let lane = (room / view.lanes.len().max(1) as f32 - GAP).clamp(LOW_LANE, LANE);
        let fitting = ((room / (lane + GAP)) as usize).min(view.lanes.len());
        let (lanes, hidden) = (view.lanes[..fitting].to_vec(), view.lanes.len() - fitting);
        room -= fitting as f32 * (lane + GAP);
        let mut fits = |height: f32| {
            let fits = room >= height;
            room -= if fits { height } else { 0.0 };
            fits
        };
        let told = |track: &Track| {
            view.devices.iter().any(|device| device.samples.iter().any(|point| (track.value)(point).is_some()))
        };
        let tracks = (0..TRACKS.len()).filter(|track| told(&TRACKS[*track]) && fits(TRACK + GAP)).collect();
        Rows { lanes, lane, hidden, tracks }
    }

    /// Height of all.
    pub fn height(&self) -> f32 {
        self.lanes.len() as f32 * (self.lane + GAP) + self.tracks.len() as f32 * (TRACK + GAP)
    }
}

/// Draws them from here downwards.
pub fn ui(ui: &Ui, context: &mut ViewContext<'_>, chart: &Chart, rows: &Rows, mut top: f32) {
    // Devices to one scale, and processes to one, so that what is uneven is seen.
    let kind = |lane: &Lane| matches!(lane.target, Target::Process(_));
    let most = |lane: &Lane| lane.series.buckets.iter().map(|bucket| bucket.live.iter().sum::<u64>()).max();
    for lane in &rows.lanes {
        let alike = rows.lanes.iter().filter(|other| kind(other) == kind(lane));
        let highest = alike.filter_map(most).max().unwrap_or(0).max(1);
        let rect = Rect::from_x_y_ranges(chart.rect.x_range(), top..=top + rows.lane);
        draw_lane(ui, context, &Chart { rect, ..*chart }, lane, (most(lane).unwrap_or(0), highest));
        top += rows.lane + GAP;
    }
    if rows.hidden > 0 {
        let text = format!("{} more: make the window higher", units::count(rows.hidden as u64, "lane", "lanes"));
        let at = pos2(chart.rect.right() - 4.0, top - GAP - rows.lane / 2.0);
        ui.painter().text(at, Align2::RIGHT_CENTER, text, FontId::proportional(11.0), context.theme.text());
    }
    let Some(view) = context.answer.tracks.clone() else { return };
    for track in &rows.tracks {
        let rect = Rect::from_x_y_ranges(chart.rect.x_range(), top..=top + TRACK);
        draw_track(ui.painter(), context, &Chart { rect, ..*chart }, &TRACKS[*track], &view.devices);
        top += TRACK + GAP;
    }
}

fn name(context: &ViewContext<'_>, target: Target) -> String {
    match target {
        Target::All => "all".to_owned(),
        Target::Host => "host memory".to_owned(),
        Target::Device(position) => {
            format!("GPU {}", context.answer.gpu(position.into()))
        }
        Target::Process(position) => match context.answer.processes.get(position as usize) {
            Some(process) => process.short(),
            None => "process".to_owned(),
        },
    }
}

/// A lane: live bytes by category; a click looks at it alone, or at all again.
fn draw_lane(ui: &Ui, context: &mut ViewContext<'_>, chart: &Chart, lane: &Lane, (most, highest): (u64, u64)) {
    let (painter, theme) = (ui.painter(), context.theme);
    let name = name(context, lane.target);
    let chosen = context.shared.target == lane.target;
    painter.rect_filled(chart.rect, 0.0, if chosen { theme.selected() } else { theme.grid().gamma_multiply(0.35) });
    let mut meshes = STACKED.map(|_| Mesh::default());
    let columns = chart.rect.width().ceil().max(1.0) as usize;
    let source = Source::of_series(&lane.series);
    for column in 0..columns {
        let at = |column: usize| chart.seen.at(column as f64 / columns as f64);
        let Some(here) = source.column(Span::between(at(column), at(column + 1))) else { continue };
        let (left, mut bottom) = (chart.rect.left() + column as f32, chart.rect.bottom());
        for (category, mesh) in STACKED.iter().zip(&mut meshes) {
            let height = here.rows.live[*category as usize] as f64 / highest as f64 * f64::from(chart.rect.height());
            if height > 0.0 {
                let top = bottom - height as f32;
                let colour = theme.category(*category);
                mesh.add_colored_rect(Rect::from_min_max(pos2(left, top), pos2(left + 1.0, bottom)), colour);
                bottom = top;
            }
        }
    }
    let inside = painter.with_clip_rect(chart.rect);
    for mesh in meshes.into_iter().filter(|mesh| !mesh.is_empty()) {
        inside.add(Shape::mesh(mesh));
    }
    label(painter, chart, &name, &units::bytes(most), theme.faint());
    let heading = Rect::from_x_y_ranges(chart.rect.left() - super::MARGIN..=chart.rect.left(), chart.rect.y_range());
    let response = ui.interact(heading, ui.scope_id().with(("lane", &name)), Sense::click());
    response.widget_info(|| WidgetInfo::selected(Role::Button, true, chosen, format!("Lane of {name}")));
    if response.clicked() {
        context.shared.target = if chosen { Target::All } else { lane.target };
        if let Selection::Allocation(_) = context.shared.selection {
            context.shared.selection = Selection::None;
        }
    }
}

fn draw_track(painter: &Painter, context: &ViewContext<'_>, chart: &Chart, track: &Track, devices: &[DeviceTelemetry]) {
    let theme = &context.theme;
    painter.rect_filled(chart.rect, 0.0, theme.grid().gamma_multiply(0.35));
    let values = devices.iter().flat_map(|device| device.samples.iter().filter_map(track.value));
    let most = values.fold(0.0, f64::max);
    let top = track.top.unwrap_or(most).max(most).max(1.0);
    let inside = painter.with_clip_rect(chart.rect);
    for (position, device) in devices.iter().enumerate() {
        let colour = theme.accent().lerp_to_gamma(theme.warning(), position as f32 / devices.len() as f32);
        let mut line = Vec::new();
        for point in &device.samples {
            let Some(value) = (track.value)(point) else {
                stroke(&inside, &mut line, colour);
                continue;
            };
            let y = chart.rect.bottom() - (value / top) as f32 * (chart.rect.height() - 3.0) - 1.0;
            let x = chart.x(point.time.0);
            if let Some(eframe::egui::Pos2 { y: before, .. }) = line.last().copied() {
                line.push(pos2(x, before));
            }
            line.push(pos2(x, y));
        }
        stroke(&inside, &mut line, colour);
    }
    label(painter, chart, track.name, &format!("≤ {}", (track.written)(top)), theme.faint());
}

fn stroke(painter: &Painter, line: &mut Vec<eframe::egui::Pos2>, colour: Color32) {
    match line[..] {
        [] => {}
        [alone] => {
            painter.circle_filled(alone, 1.5, colour);
        }
        _ => {
            painter.add(Shape::line(line.clone(), Stroke::new(1.3, colour)));
        }
    }
    line.clear();
}

fn label(painter: &Painter, chart: &Chart, name: &str, most: &str, colour: Color32) {
    let x = chart.rect.left() - 6.0;
    let centre = chart.rect.center().y;
    if chart.rect.height() < 22.0 {
        let text = format!("{name} {most}");
        painter.text(pos2(x, centre), Align2::RIGHT_CENTER, text, FontId::proportional(9.5), colour);
        return;
    }
    painter.text(pos2(x, centre - 6.0), Align2::RIGHT_CENTER, name, FontId::proportional(11.0), colour);
    painter.text(pos2(x, centre + 6.0), Align2::RIGHT_CENTER, most, FontId::proportional(9.5), colour);
}
