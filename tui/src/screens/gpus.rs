//! A line for each GPU.
//!
//! Owns: which of its figures fit. Refuses: to show 0 for what NVML did not tell.

use memscope_core::explorer::{DeviceView, Target};
use memscope_core::report::units;
use ratatui::layout::Rect;
use ratatui::style::Style;

use crate::app::App;
use crate::bar::{self, Part};
use crate::canvas::Canvas;
use crate::palette::Foreign;
use crate::table::{self, Column};

const COLUMNS: [Column; 11] = [
    Column { title: "GPU", width: 5, grow: 0, rank: 0, figures: false },
    Column::words("name", 9, 1, 4),
    Column::words("memory", 10, 3, 0),
    Column::figures("used", 10, 1),
    Column::figures("of", 10, 1),
    Column::figures("busy", 5, 2),
    Column::figures("temp", 5, 3),
    Column::figures("power", 9, 5),
    Column::figures("clocks", 13, 6),
    Column::figures("fan", 5, 9),
    Column::words("PCIe", 10, 2, 8),
];

/// Lines that the GPUs take, with their titles, of at most `most`.
pub(super) fn height(app: &App, most: u16) -> u16 {
    let devices = app.answer.devices.len() as u16;
    if devices == 0 { 0 } else { (devices + 1).min(most) }
}

/// Draws the lines. Where there is no room for all, the target's is among them.
pub(super) fn draw(app: &App, canvas: &mut Canvas, area: Rect) {
    if area.height == 0 {
        return;
    }
    let devices = &app.answer.devices;
    let placed = table::place(&COLUMNS, area.x + 1, area.width.saturating_sub(2));
    table::titles(canvas, &COLUMNS, &placed, area.y, None);
    let rows = usize::from(area.height - 1);
    let chosen = match app.target {
        Target::Device(device) => usize::from(device),
        _ => 0,
    };
    let hidden = devices.len() > rows;
    let shown = if hidden { rows.saturating_sub(1) } else { rows };
    let first = (chosen + 1).saturating_sub(shown.max(1));
    for (row, (index, device)) in devices.iter().enumerate().skip(first).take(shown).enumerate() {
        let y = area.y + 1 + row as u16;
        for column in &placed {
            if COLUMNS[column.index].title == "memory" {
                memory(canvas, device, column, y);
                continue;
            }
            if COLUMNS[column.index].title == "name"
                && let Some(name) = name(device)
            {
                canvas.begin_of(column.x, y, column.width, &name, Style::new());
                continue;
            }
            let place = (app.answer.gpu(index), (devices.len() > 1).then_some(index));
            let (text, style) = figure(canvas, device, place, COLUMNS[column.index].title, column.width);
            table::cell(canvas, &COLUMNS, column, y, &text, style);
        }
        if app.target == Target::Device(index as u16) {
            canvas.glyph(area.x, y, canvas.glyphs.mark, canvas.palette.accent());
        }
    }
    if hidden && rows > 0 {
        let text = format!("and {} more", units::count((devices.len() - shown) as u64, "GPU", "GPUs"));
        canvas.text(area.x + 1, area.bottom() - 1, area.width - 1, &text, canvas.palette.faint());
    }
}

/// Its product name, without the maker's, which all have.
fn name(device: &DeviceView) -> Option<String> {
    let name = device.name.as_ref().or_else(|| device.sample.as_ref()?.name.as_ref())?;
    Some(name.strip_prefix("NVIDIA ").unwrap_or(name).to_owned())
}

/// What is in use of the device as NVML counts it, the firmware's part included. Where no sample met this moment's reserved
/// memory, it is the last one's figure, of about now: what the driver has granted since is in use all the same.
fn used(device: &DeviceView) -> Option<u64> {
    if let Some(exact) = &device.exact {
        return Some(exact.rows.device_used);
    }
    let sample = device.sample.as_ref()?;
    Some(sample.used?.saturating_add(sample.reserved.unwrap_or(0)).max(device.rows.reserved))
}

fn capacity(device: &DeviceView) -> Option<u64> {
    device.capacity.or_else(|| device.sample.as_ref()?.total)
}

/// The program's part, and what else is in use.
fn memory(canvas: &mut Canvas, device: &DeviceView, column: &table::Placed, y: u16) {
    let reserved = device.rows.reserved;
    let rest = used(device).unwrap_or(0).saturating_sub(reserved);
    let whole = capacity(device).unwrap_or(0).max(reserved.saturating_add(rest));
    let coarse = canvas.glyphs.ascii || canvas.palette.mono();
    let full = |pattern| if coarse { pattern } else { "█" };
    let ours = if canvas.glyphs.ascii { "#" } else { "█" };
    let parts = [
        Part { amount: reserved, glyph: full(ours), style: canvas.palette.accent() },
        Part {
            amount: rest,
            glyph: full(canvas.glyphs.foreign[Foreign::Others as usize]),
            style: canvas.palette.foreign(Foreign::Others),
        },
    ];
    let style = canvas.palette.faint();
    for x in column.x..column.x + column.width {
        canvas.glyph(x, y, if canvas.glyphs.ascii { "." } else { "·" }, style);
    }
    bar::draw(canvas, (column.x, y, column.width), &parts, whole);
}

/// Its number, and the key that chooses it where there is a choice: that of its position.
fn name_and_key(number: u32, position: Option<usize>) -> String {
    match position {
        Some(position @ 0..9) => format!("{number} [{}]", position + 1),
        _ => number.to_string(),
    }
}

/// The text of a column.
fn figure(
    canvas: &Canvas,
    device: &DeviceView,
    (number, position): (u32, Option<usize>),
    title: &str,
    width: u16,
) -> (String, Style) {
    let (plain, faint) = (Style::new(), canvas.palette.faint());
    let sample = device.sample.as_ref();
    let of = |text: Option<String>| match text {
        Some(text) => (text, plain),
        None => ("N/A".to_owned(), faint),
    };
    match title {
        "GPU" => (name_and_key(number, position), canvas.palette.strong()),
        "name" => of(None),
        "used" => match used(device) {
            Some(used) => {
                let about = if device.exact.is_some() { "" } else { "~" };
                (format!("{about}{}", units::bytes(used)), load(canvas, used, capacity(device)))
            }
            None => of(None),
        },
        "of" => of(capacity(device).map(units::bytes)),
        "busy" => of(sample.and_then(|sample| sample.utilization).map(|percent| format!("{percent} %"))),
        "temp" => of(sample
            .and_then(|sample| sample.temperature)
            .map(|degrees| format!("{degrees}{}", canvas.glyphs.degree.trim_start()))),
        "power" => of(sample.and_then(|sample| {
            let watts = |milliwatts: u32| (milliwatts + 500) / 1000;
            Some(match (sample.power?, sample.power_limit) {
                (power, Some(limit)) => format!("{}/{} W", watts(power), watts(limit)),
                (power, None) => format!("{} W", watts(power)),
            })
        })),
        "clocks" => of(sample.and_then(|sample| match (sample.clock, sample.memory_clock) {
            (None, None) => None,
            (clock, memory) => {
                let number = |clock: Option<u32>| clock.map_or("N/A".to_owned(), |clock| clock.to_string());
                Some(format!("{}/{} MHz", number(clock), number(memory)))
            }
        })),
        "fan" => of(sample.and_then(|sample| sample.fan).map(|percent| format!("{percent} %"))),
        _ => of(pcie(canvas, device, width)),
    }
}

/// Link and traffic, as much as fits.
fn pcie(canvas: &Canvas, device: &DeviceView, width: u16) -> Option<String> {
    let sample = device.sample.as_ref()?;
    let link = match (sample.pcie_generation, sample.pcie_width) {
        (Some(generation), Some(lanes)) => Some(format!("gen {generation} x{lanes}")),
        (Some(generation), None) => Some(format!("gen {generation}")),
        (None, lanes) => lanes.map(|lanes| format!("x{lanes}")),
    };
    let rate = |arrow: &str, bytes: Option<u64>| bytes.map(|bytes| format!("{arrow}{}/s", units::bytes(bytes)));
    let traffic = match (rate(canvas.glyphs.received, sample.pcie_receive), rate(canvas.glyphs.sent, sample.pcie_send))
    {
        (None, None) => None,
        (received, sent) => Some([received, sent].into_iter().flatten().collect::<Vec<_>>().join(" ")),
    };
    let both = match (&link, &traffic) {
        (Some(link), Some(traffic)) => format!("{link} {traffic}"),
        _ => return link.or(traffic),
    };
    if crate::words::columns(&both) <= usize::from(width) { Some(both) } else { link }
}

/// A figure's style by how full the device is.
fn load(canvas: &Canvas, used: u64, capacity: Option<u64>) -> Style {
    match capacity.filter(|capacity| *capacity > 0) {
        Some(capacity) if used >= capacity / 100 * 95 => canvas.palette.error(),
        Some(capacity) if used >= capacity / 100 * 80 => canvas.palette.warning(),
        _ => Style::new(),
    }
}
