//! Where everything stands: one computation for drawing and for the mouse.
//!
//! Owns: the division of the screen. Refuses: to draw.

use ratatui::layout::Rect;

use super::{TopApp, devices};

/// Rows of processes that are wanted before charts are.
const WANTED_ROWS: u16 = 12;
/// Rows of processes that devices leave in any case.
const LEAST_ROWS: u16 = 4;
/// Least columns and rows of a chart.
const CHART: (u16, u16) = (36, 5);
/// Most rows of a chart.
const TALLEST: u16 = 12;

/// What stands above the processes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Panel {
    /// A line a device, and charts where there is room.
    #[default]
    Automatic,
    /// A line a device.
    Lines,
    /// A line a device, charts, and what is left for processes.
    Charts,
    /// No processes: as many devices as fit.
    Devices,
}

impl Panel {
    /// The next one.
    pub const fn next(self) -> Panel {
        match self {
            Panel::Automatic => Panel::Charts,
            Panel::Charts => Panel::Devices,
            Panel::Devices => Panel::Lines,
            Panel::Lines => Panel::Automatic,
        }
    }
}

/// The parts of the screen; empty ones are not drawn.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Layout {
    /// What is watched, and how.
    pub header: Rect,
    /// Titles of the devices' columns.
    pub device_titles: Rect,
    /// A line a device or instance.
    pub devices: Rect,
    /// Each device has a second line, for what does not fit into the first one.
    pub two_lines: bool,
    /// Curves.
    pub charts: Rect,
    /// Charts side by side.
    pub charts_across: u16,
    /// Titles of the processes' columns.
    pub titles: Rect,
    /// A line a process.
    pub rows: Rect,
    /// What the selected process's memory is for.
    pub detail: Rect,
    /// Keys, filter or message.
    pub footer: Rect,
}

impl Layout {
    /// Of this screen as it is now.
    pub(super) fn of(app: &TopApp) -> Layout {
        let area = app.area;
        let mut free = area.height;
        let mut take = |wanted: u16| {
            let taken = wanted.min(free);
            free -= taken;
            taken
        };
        let footer = take(1);
        let header = take(1);
        let device_titles = take(1);
        let titles = if app.panel == Panel::Devices { 0 } else { take(1) };
        let detail = if app.has_ledgers() && area.height >= 20 && app.panel != Panel::Devices { take(1) } else { 0 };
        let least = match app.panel {
            Panel::Devices => 0,
            Panel::Automatic => WANTED_ROWS,
            Panel::Lines | Panel::Charts => LEAST_ROWS,
        };
        let twice = lines(app, true) <= usize::from(free.saturating_sub(least)) && app.panel != Panel::Lines;
        let two_lines = area.width < devices::FULL_WIDTH && twice;
        let lines = lines(app, two_lines).min(usize::from(u16::MAX)) as u16;
        let devices = lines.min(free.saturating_sub(least.min(LEAST_ROWS)));
        free -= devices;
        let (charts, across) = charts(app, free);
        let rows = if app.panel == Panel::Devices { 0 } else { free - charts };

        let mut y = area.y;
        let mut part = |height: u16| {
            let part = Rect::new(area.x, y, area.width, height);
            y += height;
            part
        };
        let mut layout = Layout {
            header: part(header),
            device_titles: part(device_titles),
            devices: part(devices),
            charts: part(charts),
            charts_across: across,
            two_lines,
            titles: part(titles),
            rows: part(rows),
            ..Layout::default()
        };
        let bottom = area.bottom();
        layout.footer = Rect::new(area.x, bottom - footer, area.width, footer);
        layout.detail = Rect::new(area.x, bottom - footer - detail, area.width, detail);
        layout
    }
}

/// Lines that all devices and instances take.
pub(super) fn lines(app: &TopApp, two_lines: bool) -> usize {
    app.view.devices.iter().map(|device| 1 + usize::from(two_lines) + device.instances.len()).sum()
}

/// Height of the charts together, and how many stand side by side.
fn charts(app: &TopApp, free: u16) -> (u16, u16) {
    let count = app.view.devices.len().min(64) as u16;
    let most_across = (app.area.width / CHART.0).max(1);
    let spare = match app.panel {
        Panel::Lines => 0,
        Panel::Automatic => {
            // Not by what the filter lets through: the charts stand still while it is typed.
            let processes = app.view.processes.len().min(usize::from(free / 2)) as u16;
            free.saturating_sub(processes.max(WANTED_ROWS))
        }
        Panel::Charts => free.saturating_sub(LEAST_ROWS),
        Panel::Devices => free,
    };
    let down = count.div_ceil(most_across);
    // All devices have one, or none has.
    if count == 0 || spare / down < CHART.1 {
        return (0, 0);
    }
    // As few side by side as need so many rows of charts.
    let across = count.div_ceil(down).min(most_across);
    let height = (spare / down).min(TALLEST);
    (height * down, across)
}
