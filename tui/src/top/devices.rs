//! A line for each GPU and instance, or two where one is too short; and the curves.
//!
//! Owns: their columns and pictures. Refuses: the processes. What the driver does not tell is `N/A`, and nothing is drawn of it.

use memscope_core::monitor::{MonitorDevice, MonitorInstance};
use memscope_core::report::units;
use ratatui::layout::Rect;
use ratatui::style::Style;

use super::TopApp;
use super::history::Point;
use super::layout::Layout;
use super::screen::parts;
use crate::bar::{self, Part};
use crate::canvas::Canvas;
use crate::table::{self, Column, Placed};

/// What stands for a value that is not known.
pub(super) const ABSENT: &str = "N/A";

/// Width from which on a line has room for everything.
pub(super) const FULL_WIDTH: u16 = 111;

const COLUMNS: [Column; 13] = [
    Column::words("GPU", 3, 0, 0),
    Column::words("NAME", 10, 4, 5),
    Column::words("MEMORY", 20, 3, 0),
    Column::figures("GPU%", 4, 0),
    Column::figures("TEMP", 4, 1),
    Column::figures("POWER", 8, 2),
    Column::figures("MHz", 4, 3),
    Column::figures("MEM MHz", 7, 7),
    Column::figures("FAN", 4, 6),
    Column::words("PCIE", 5, 0, 8),
    Column::figures("RX/s", 5, 9),
    Column::figures("TX/s", 5, 9),
    Column::words("HISTORY", 8, 2, 4),
];
const NAME: usize = 1;
const MEMORY: usize = 2;
const HISTORY: usize = 12;

/// Columns of `61.2/80.0 GiB`, and the least of a bar in front of it.
const FIGURES: u16 = 13;
/// From this width on the history shows the memory beside the utilisation.
const TWO_HISTORIES: u16 = 17;

/// The titles and the lines.
pub(super) fn draw(app: &TopApp, canvas: &mut Canvas<'_>, layout: &Layout) {
    let placed = table::place(&COLUMNS, layout.devices.x, layout.devices.width);
    if !layout.device_titles.is_empty() {
        table::titles(canvas, &COLUMNS, &placed, layout.device_titles.y, None);
    }
    let mut line = 0;
    let mut next = || {
        line += 1;
        let shown = (line - 1usize).checked_sub(app.first_device)?;
        (shown < usize::from(layout.devices.height)).then(|| layout.devices.y + shown as u16)
    };
    for (position, device) in app.view.devices.iter().enumerate() {
        if let Some(y) = next() {
            device_line(app, canvas, &placed, (position, device), y);
        }
        if layout.two_lines
            && let Some(y) = next()
        {
            second_line(canvas, device, layout.devices, y);
        }
        for instance in &device.instances {
            if let Some(y) = next() {
                instance_line(canvas, &placed, device.index, instance, y);
            }
        }
    }
    table::thumb(canvas, layout.devices, app.first_device, line);
}

fn device_line(
    app: &TopApp,
    canvas: &mut Canvas<'_>,
    placed: &[Placed],
    (position, device): (usize, &MonitorDevice),
    y: u16,
) {
    let remark = remark(device, app.view.interval_ms);
    let style = if remark.is_some() { canvas.palette.faint() } else { Style::new() };
    for column in placed {
        let text = match column.index {
            0 => device.index.to_string(),
            NAME => continue,
            MEMORY => {
                memory(canvas, column, y, (device.memory_used, device.memory_reserved), device.memory_total, style);
                continue;
            }
            HISTORY => {
                history(app, canvas, column, position, y);
                continue;
            }
            3 => known(device.utilization_percent, |percent| format!("{percent}%")),
            4 => known(device.temperature_celsius, |degrees| format!("{degrees}{}", canvas.glyphs.degree)),
            5 => power(device),
            6 => known(device.clock_megahertz, |clock| clock.to_string()),
            7 => known(device.memory_clock_megahertz, |clock| clock.to_string()),
            8 => known(device.fan_percent, |percent| format!("{percent}%")),
            9 => link(device),
            10 => known(device.pcie_receive, brief),
            _ => known(device.pcie_send, brief),
        };
        table::cell(canvas, &COLUMNS, column, y, &text, style);
    }
    // What is wrong stands where the name does, and over the memory where there is no figure of it.
    let find = |wanted| placed.iter().find(|column| column.index == wanted);
    let (name, memory) = (find(NAME), find(MEMORY));
    match (remark, name.or(memory), memory) {
        (Some(remark), Some(first), Some(memory)) => {
            let last = if device.memory_used.is_none() { memory } else { first };
            let width = last.x + last.width - first.x;
            canvas.clear(Rect::new(first.x, y, width, 1));
            canvas.fitted(first.x, y, width, &remark, canvas.palette.warning());
        }
        _ => {
            if let Some(name) = name {
                canvas.fitted(name.x, y, name.width, short(device.name.as_deref()), style);
            }
        }
    }
}

/// Why a device's values are not fresh.
fn remark(device: &MonitorDevice, interval_ms: u64) -> Option<String> {
    if let Some(error) = &device.error {
        return Some(error.clone());
    }
    match device.age_ms {
        None => Some("no answer yet".to_owned()),
        Some(age) if age > 2 * interval_ms => Some(format!("{:.1} s old", age as f64 / 1000.0)),
        Some(_) => None,
    }
}

fn instance_line(canvas: &mut Canvas<'_>, placed: &[Placed], device: u32, instance: &MonitorInstance, y: u16) {
    let style = Style::new();
    for column in placed {
        match column.index {
            0 => {
                canvas.text(column.x, y, column.width, &format!("{device}:{}", instance.index), style);
            }
            NAME => {
                let name = instance.name.as_deref();
                // The device's own name stands above it.
                let profile = name.and_then(|name| name.find("MIG ").map(|at| &name[at..])).or(name);
                canvas.fitted(column.x, y, column.width, short(profile), style);
            }
            MEMORY => memory(canvas, column, y, (instance.memory_used, None), instance.memory_total, style),
            _ => {}
        }
    }
}

/// What did not fit.
fn second_line(canvas: &mut Canvas<'_>, device: &MonitorDevice, area: Rect, y: u16) {
    let glyphs = canvas.glyphs;
    let memory_clock = known(device.memory_clock_megahertz, |clock| format!("{clock} MHz"));
    let fan = known(device.fan_percent, |percent| format!("{percent}%"));
    let rate = |value: Option<u64>| known(value, |value| format!("{}/s", units::bytes(value)));
    let text = format!(
        "memory {memory_clock}  fan {fan}  PCIe {}  {}{}  {}{}",
        link(device),
        glyphs.received,
        rate(device.pcie_receive),
        glyphs.sent,
        rate(device.pcie_send)
    );
    canvas.text(area.x + 5, y, area.width.saturating_sub(5), &text, canvas.palette.faint());
}

/// A bar with figures behind it.
fn memory(
    canvas: &mut Canvas<'_>,
    column: &Placed,
    y: u16,
    (used, reserved): (Option<u64>, Option<u64>),
    total: Option<u64>,
    style: Style,
) {
    let figures = column.x + column.width.saturating_sub(FIGURES);
    match used.zip(total) {
        None => canvas.right(figures, y, FIGURES, ABSENT, style),
        Some((used, total)) => {
            canvas.right(figures, y, FIGURES, &pair(used, total), style);
            let width = column.width.saturating_sub(FIGURES + 1);
            let palette = canvas.palette;
            let full = if canvas.glyphs.ascii { "#" } else { "█" };
            let parts = [
                Part { amount: used, glyph: full, style: palette.accent() },
                Part { amount: reserved.unwrap_or(0), glyph: canvas.glyphs.idle, style: palette.idle() },
            ];
            for x in column.x..column.x + width {
                canvas.glyph(x, y, canvas.glyphs.rule, palette.faint());
            }
            bar::draw(canvas, (column.x, y, width), &parts, total);
        }
    }
}

/// Bytes in as few columns as tell them: `1.2G`.
pub(super) fn brief(bytes: u64) -> String {
    const UNITS: [char; 7] = ['B', 'K', 'M', 'G', 'T', 'P', 'E'];
    let mut unit = 0;
    let mut scaled = bytes as f64;
    // 999.5 would be rounded to four digits.
    while scaled >= 999.5 && unit + 1 < UNITS.len() {
        scaled /= 1024.0;
        unit += 1;
    }
    let decimals = usize::from(scaled < 9.95 && unit > 0);
    format!("{scaled:.decimals$}{}", UNITS[unit])
}

/// Used and total in the unit of the total: `61.2/80.0 GiB`.
fn pair(used: u64, total: u64) -> String {
    let (unit, shift) = match total {
        0..0x10_0000 => ("KiB", 10),
        0x10_0000..0x4000_0000 => ("MiB", 20),
        0x4000_0000..0x100_0000_0000 => ("GiB", 30),
        _ => ("TiB", 40),
    };
    let scaled = |bytes: u64| bytes as f64 / (1u64 << shift) as f64;
    format!("{:.1}/{:.1} {unit}", scaled(used), scaled(total))
}

fn power(device: &MonitorDevice) -> String {
    let watts = |value: Option<u32>| value.map(|milliwatts| (f64::from(milliwatts) / 1000.0).round());
    match (watts(device.power_milliwatts), watts(device.power_limit_milliwatts)) {
        (None, None) => ABSENT.to_owned(),
        (Some(power), Some(limit)) => format!("{power}/{limit}W"),
        (Some(power), None) => format!("{power}W"),
        (None, Some(limit)) => format!("-/{limit}W"),
    }
}

/// Generation and lanes.
fn link(device: &MonitorDevice) -> String {
    match (device.pcie_generation, device.pcie_width) {
        (None, None) => ABSENT.to_owned(),
        (generation, width) => {
            let text = |value: Option<u32>| value.map_or_else(|| "?".to_owned(), |value| value.to_string());
            format!("{}x{}", text(generation), text(width))
        }
    }
}

/// A product's name without its maker's, which all share.
fn short(name: Option<&str>) -> &str {
    name.map_or(ABSENT, |name| name.strip_prefix("NVIDIA ").unwrap_or(name))
}

pub(super) fn known<T>(value: Option<T>, text: impl Fn(T) -> String) -> String {
    value.map_or_else(|| ABSENT.to_owned(), text)
}

fn history(app: &TopApp, canvas: &mut Canvas<'_>, column: &Placed, device: usize, y: u16) {
    let (busy, held) = (canvas.palette.good(), canvas.palette.accent());
    if column.width < TWO_HISTORIES {
        return spark(app, canvas, (column.x, y, column.width), device, |point| point.utilization, busy);
    }
    let half = (column.width - 1) / 2;
    spark(app, canvas, (column.x, y, half), device, |point| point.utilization, busy);
    let right = column.x + column.width - half;
    spark(app, canvas, (right, y, half), device, |point| point.memory, held);
}

/// The newest rounds, the last one at the right.
fn spark(
    app: &TopApp,
    canvas: &mut Canvas<'_>,
    (x, y, width): (u16, u16, u16),
    device: usize,
    value: impl Fn(&Point) -> Option<u8>,
    style: Style,
) {
    for (column, point) in (x..x + width).rev().zip(app.history.newest(device)) {
        if let Some(percent) = value(&point) {
            // Nothing at all is a blank; the least that is something is seen.
            let level = (usize::from(percent) * 8).div_ceil(100);
            canvas.glyph(column, y, canvas.glyphs.rising[level], style);
        }
    }
}

/// A curve for each device: utilisation as an area, memory as a line in front of it.
pub(super) fn draw_charts(app: &TopApp, canvas: &mut Canvas<'_>, layout: &Layout) {
    let (area, across) = (layout.charts, layout.charts_across.max(1));
    if area.is_empty() {
        return;
    }
    let count = app.view.devices.len() as u16;
    let down = count.div_ceil(across);
    let (width, height) = (area.width / across, area.height / down);
    for (position, device) in app.view.devices.iter().enumerate().take(usize::from(across * down)) {
        let (column, row) = (position as u16 % across, position as u16 / across);
        let gap = u16::from(column + 1 < across);
        let chart = Rect::new(area.x + column * width, area.y + row * height, width - gap, height);
        draw_chart(app, canvas, chart, (position, device));
    }
}

fn draw_chart(app: &TopApp, canvas: &mut Canvas<'_>, area: Rect, (position, device): (usize, &MonitorDevice)) {
    let share = device.memory_used.zip(device.memory_total.filter(|total| *total > 0));
    let memory = known(share, |(used, total)| format!("{:.0}%", used as f64 * 100.0 / total as f64));
    let busy = known(device.utilization_percent, |percent| format!("{percent}%"));
    let (busy_style, memory_style) = (canvas.palette.good(), canvas.palette.accent());
    canvas.heading(area, &format!("GPU {}", device.index), "");
    let title = Rect { x: area.x + 10, width: area.width.saturating_sub(11), ..area };
    let said = [(" busy ", busy_style), (&busy, busy_style), ("  memory ", memory_style), (&memory, memory_style)];
    let end = parts(canvas, title, &said);
    canvas.text(end, area.y, 1, " ", busy_style);
    let plot = Rect::new(area.x, area.y + 1, area.width, area.height.saturating_sub(1));
    let eighths = usize::from(plot.height) * 8;
    for (column, point) in (plot.left()..plot.right()).rev().zip(app.history.newest(position)) {
        let level = point.utilization.map_or(0, |percent| (usize::from(percent) * eighths).div_ceil(100));
        for row in 0..plot.height.min(level.div_ceil(8) as u16) {
            let part = (level - usize::from(row) * 8).min(8);
            canvas.glyph(column, plot.bottom() - 1 - row, canvas.glyphs.rising[part], busy_style);
        }
        if let Some(memory) = point.memory {
            let row = (u16::from(memory) * plot.height / 100).min(plot.height.saturating_sub(1));
            canvas.glyph(column, plot.bottom() - 1 - row, canvas.glyphs.rule, memory_style);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn used_and_total_have_one_unit() {
        assert_eq!(pair(0, 80 << 30), "0.0/80.0 GiB");
        assert_eq!(pair(61 << 30, 80 << 30), "61.0/80.0 GiB");
        assert_eq!(pair(512 << 20, 768 << 20), "512.0/768.0 MiB");
        assert_eq!(pair(1 << 40, 2 << 40), "1.0/2.0 TiB");
    }

    #[test]
    fn brief_bytes_have_at_most_four_columns() {
        let texts = [0, 999, 1000, 1 << 20, 3 << 29, 80 << 30, 999 << 30, 1000 << 30, u64::MAX].map(brief);
        assert_eq!(texts, ["0B", "999B", "1.0K", "1.0M", "1.5G", "80G", "999G", "1.0T", "16E"]);
    }

    #[test]
    fn what_is_not_known_is_not_a_number() {
        let device = MonitorDevice::default();
        assert_eq!((power(&device).as_str(), link(&device).as_str()), ("N/A", "N/A"));
        let limit = MonitorDevice { power_limit_milliwatts: Some(349_600), ..MonitorDevice::default() };
        assert_eq!(power(&limit), "-/350W");
        let width = MonitorDevice { pcie_width: Some(16), ..MonitorDevice::default() };
        assert_eq!(link(&width), "?x16");
    }

    #[test]
    fn a_device_without_a_fresh_answer_says_so() {
        let aged = |age_ms| remark(&MonitorDevice { age_ms, ..MonitorDevice::default() }, 1000);
        assert_eq!(aged(None).as_deref(), Some("no answer yet"));
        assert_eq!((aged(Some(2000)), aged(Some(3200)).as_deref()), (None, Some("3.2 s old")));
    }

    #[test]
    fn all_columns_fit_from_the_full_width_on() {
        assert_eq!(table::place(&COLUMNS, 0, FULL_WIDTH).len(), COLUMNS.len());
        assert!(table::place(&COLUMNS, 0, FULL_WIDTH - 1).len() < COLUMNS.len());
        let narrow: Vec<usize> = table::place(&COLUMNS, 0, 80).iter().map(|column| column.index).collect();
        assert_eq!(narrow, [0, NAME, MEMORY, 3, 4, 5, 6, HISTORY]);
    }
}
