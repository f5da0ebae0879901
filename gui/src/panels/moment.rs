//! The moment under the cursor: when it is, what fills memory, and who holds most of that.
//!
//! Owns: the ledger as a table, and the three answers that an out-of-memory error asks for: largest category, its module, its
//! holder. Refuses: to add anything up; rows are core's.

use std::fmt::Write as _;

use eframe::egui::accesskit::Role;
use eframe::egui::{
    Align, Align2, Color32, Layout, Rect, RichText, Sense, Shape, Stroke, TextStyle, Ui, Vec2, WidgetInfo,
};
use memscope_core::Category;
use memscope_core::colours::Foreign;
use memscope_core::explorer::{Answer, At, Running, STACKED, Target};
use memscope_core::report::units;

use super::{largest, length, module_of, time};
use crate::shared::{Selection, Shared};
use crate::theme::Theme;
use crate::views::timeline::Source;

/// A row of the ledger.
struct Row {
    name: String,
    bytes: i64,
    colour: Option<Color32>,
    category: Option<Category>,
    /// Of what this is a part.
    strong: bool,
}

/// Where the moment is, in words.
pub fn place(answer: &Answer) -> String {
    let state = &answer.now.state;
    let mut place = match answer.at {
        At::Live if answer.session.state == Running::Live => "Now".to_owned(),
        At::Live => "End".to_owned(),
        At::Peak => "Peak of live bytes".to_owned(),
        At::Time(_) => "Cursor".to_owned(),
        At::Refused(_) => "An allocation was refused".to_owned(),
        At::Step(number) => format!("Largest moment of step {number}"),
        At::StepFrom(_) => "Largest moment of the step".to_owned(),
    };
    let _ = write!(place, ", at {}", time(state.time.0));
    if let Some(step) = state.step {
        let _ = write!(place, ", step {step}");
    }
    if !answer.now.phase.is_empty() {
        let _ = write!(place, ", {}", answer.now.phase);
    }
    place
}

/// The part of the session, in words.
pub fn part(answer: &Answer) -> String {
    match answer.target {
        _ if answer.of_host => "host memory".to_owned(),
        Target::Host => "host memory".to_owned(),
        Target::All if answer.devices.len() > 1 => format!("all {} devices", answer.devices.len()),
        Target::All => "whole session".to_owned(),
        Target::Device(position) => {
            let device = answer.devices.get(position as usize);
            let name = device.and_then(|device| device.name.clone()).unwrap_or_default();
            format!("GPU {} {name}", answer.gpu(position.into())).trim().to_owned()
        }
        Target::Process(position) => match answer.processes.get(position as usize) {
            Some(process) => match process.called(answer.session.info.called()) {
                Some(called) => format!("{called}, process {}", process.pid),
                None => format!("process {}", process.pid),
            },
            None => "a process".to_owned(),
        },
    }
}

fn rows(answer: &Answer, theme: &Theme) -> Vec<Row> {
    let rows = &answer.now.state.rows;
    let plain =
        |name: &str, bytes: i64, colour, strong| Row { name: name.into(), bytes, colour, category: None, strong };
    let mut list: Vec<Row> = STACKED
        .iter()
        .map(|category| Row {
            name: category.name().to_owned(),
            bytes: rows.live[*category as usize] as i64,
            colour: Some(theme.category(*category)),
            category: Some(*category),
            strong: false,
        })
        .collect();
    list.push(plain("live", rows.live_bytes() as i64, None, true));
    list.push(plain("rounding", rows.rounding as i64, Some(theme.rounding()), false));
    list.push(plain("cached", rows.cached as i64, Some(theme.cached()), false));
    if rows.pools > 0 {
        list.push(plain("of it pools' reserve", rows.pools as i64, Some(theme.cached()), false));
    }
    list.push(plain("reserved", rows.reserved as i64, None, true));
    if let Some(device) = answer.now.device_rows() {
        let foreign = [
            ("unexplained", device.unexplained, Foreign::Unexplained),
            ("other processes", device.other_processes.map(|bytes| bytes as i64), Foreign::Others),
            ("firmware", device.firmware_reserved.map(|bytes| bytes as i64), Foreign::Firmware),
            ("unowned", device.unowned, Foreign::Unowned),
        ];
        for (name, bytes, what) in foreign {
            list.extend(bytes.map(|bytes| plain(name, bytes, Some(theme.foreign(what)), false)));
        }
        list.push(plain(
            &format!("device used, sample at {}", units::time(device.time.0 as f64 / 1e9)),
            device.device_used as i64,
            None,
            true,
        ));
    }
    if let Some(capacity) = answer.now.capacity {
        list.push(plain("capacity", capacity as i64, None, true));
    }
    if answer.now.host.reserved > 0 {
        list.push(plain("host memory", answer.now.host.reserved as i64, None, false));
    }
    list
}

/// Largest category, its module, its holder: one line each; empty where nothing is live.
pub fn reason(answer: &Answer) -> Vec<(String, String)> {
    let rows = &answer.now.state.rows;
    let Some((category, bytes)) = largest(&rows.live) else { return Vec::new() };
    let share = units::share(bytes, rows.live_bytes());
    // Of the moment at which memory ran out the finding knows it exactly.
    let told = answer.gravest.as_ref().filter(|gravest| answer.at == At::Refused(gravest.time));
    let told = told.and_then(|gravest| gravest.largest.as_ref()).or(answer.largest.as_ref());
    let told = told.filter(|largest| largest.category == category.name());
    let (module, holder) = match told {
        Some(largest) => {
            let scope = largest.scope.as_deref().unwrap_or("outside all scopes");
            let module = format!("{scope}, {}", units::bytes(largest.scope_bytes));
            (module, largest.held_by())
        }
        None => {
            // Of a part of what lived, another one may hold most.
            let module = module_of(answer, category).filter(|_| answer.top_scopes_partial.is_none());
            let module = module.map(|(module, bytes)| format!("{module}, {}", units::bytes(bytes)));
            let holder = if answer.now.partial.is_some() { "not kept" } else { "…" };
            let unknown = if answer.top_scopes_partial.is_some() { "not kept" } else { "not known" };
            (module.unwrap_or_else(|| unknown.to_owned()), holder.to_owned())
        }
    };
    vec![
        ("Largest category".to_owned(), format!("{}, {}, {share:.0} % of live", category.name(), units::bytes(bytes))),
        ("Its module".to_owned(), module),
        ("Its holder".to_owned(), holder),
    ]
}

/// The range that is chosen, and its largest moment; empty where none is.
pub fn range(answer: &Answer, shared: &Shared) -> Vec<String> {
    let Some(range) = shared.range else { return Vec::new() };
    let mut lines =
        vec![format!("Range: {}, from {} to {}", length(range.length()), time(range.begin), time(range.end))];
    if let Some(column) = Source::of(answer).column(range) {
        let at = column.time.map_or_else(String::new, |at| format!(" at {}", time(at)));
        let live = units::bytes(column.rows.live_bytes());
        lines.push(format!("Most in it: {live} live{at}, {} reserved", units::bytes(column.reserved)));
    }
    lines
}

/// Draws when it is, and what holds most.
pub fn ui(ui: &mut Ui, answer: &Answer, shared: &Shared, theme: &Theme) {
    ui.label(RichText::new(place(answer)).strong());
    ui.label(RichText::new(part(answer)).color(theme.faint()));
    ui.add_space(4.0);
    for (name, value) in reason(answer) {
        super::fact(ui, &name, value, theme);
    }
    for line in range(answer, shared) {
        ui.label(RichText::new(line).color(theme.accent()));
    }
    ui.add_space(6.0);
}

/// Draws the ledger. Rows of 0 B are one line that can be opened; their colours stay in sight, for whoever looks them up.
pub fn ledger(ui: &mut Ui, answer: &Answer, shared: &mut Shared, theme: &Theme) {
    let (empty, full): (Vec<Row>, Vec<Row>) = rows(answer, theme).into_iter().partition(|row| row.bytes == 0);
    for row in &full {
        ledger_row(ui, row, shared, theme);
    }
    let id = ui.scope_id().with("rows of nothing");
    let mut opened = empty.len() < 2 || ui.data(|data| data.get_temp(id).unwrap_or(false));
    if empty.len() >= 2 {
        let (rect, response) = ui.allocate_exact_size(Vec2::new(ui.available_width(), 18.0), Sense::click());
        let name = format!("{} rows of 0 B", empty.len());
        let mut at = rect.left_center();
        let points =
            if opened { [(0.0, -2.0), (8.0, -2.0), (4.0, 4.0)] } else { [(1.0, -4.0), (7.0, 0.0), (1.0, 4.0)] };
        let points = points.map(|(x, y)| at + Vec2::new(x, y)).to_vec();
        ui.painter().add(Shape::convex_polygon(points, theme.faint(), Stroke::NONE));
        at.x += 18.0;
        let said =
            ui.painter().text(at, Align2::LEFT_CENTER, &name, TextStyle::Body.resolve(ui.style()), theme.faint());
        at.x = said.right() + 8.0;
        for colour in empty.iter().filter_map(|row| row.colour).filter(|_| !opened) {
            ui.painter().rect_filled(Rect::from_center_size(at + Vec2::new(5.0, 0.0), Vec2::splat(10.0)), 2.0, colour);
            at.x += 14.0;
        }
        response.widget_info(|| WidgetInfo::selected(Role::Button, true, opened, name.as_str()));
        let names: Vec<&str> = empty.iter().map(|row| row.name.as_str()).collect();
        if response.on_hover_text(names.join(", ")).clicked() {
            opened ^= true;
            ui.data_mut(|data| data.insert_temp(id, opened));
        }
    }
    for row in empty.iter().filter(|_| opened) {
        ledger_row(ui, row, shared, theme);
    }
}

fn ledger_row(ui: &mut Ui, row: &Row, shared: &mut Shared, theme: &Theme) {
    let (rect, response) = ui.allocate_exact_size(Vec2::new(ui.available_width(), 18.0), Sense::click());
    let selected = row.category.is_some_and(|category| shared.selection == Selection::Category(category));
    let mut inside =
        ui.new_child(eframe::egui::UiBuilder::new().max_rect(rect).layout(Layout::left_to_right(Align::Center)));
    if selected {
        inside.painter().rect_filled(rect, 2.0, theme.selected());
    }
    let (swatch, _) = inside.allocate_exact_size(Vec2::splat(10.0), Sense::hover());
    if let Some(colour) = row.colour {
        inside.painter().rect_filled(swatch, 2.0, colour);
    }
    let faint = if row.bytes == 0 { theme.faint() } else { theme.text() };
    let styled = |text: String| {
        let text = RichText::new(text).color(faint);
        if row.strong { text.strong() } else { text }
    };
    let amount = units::signed_bytes(row.bytes);
    let name = eframe::egui::Label::new(styled(row.name.clone())).truncate().selectable(false);
    inside.with_layout(Layout::right_to_left(Align::Center), |ui| {
        ui.add(eframe::egui::Label::new(styled(amount.clone())).selectable(false));
        ui.with_layout(Layout::left_to_right(Align::Center), |ui| ui.add(name));
    });
    let Some(category) = row.category else { return };
    let label = format!("{}: {amount}", row.name);
    response.widget_info(|| WidgetInfo::selected(Role::Button, true, selected, label.as_str()));
    let exact = format!("{}: {} B", row.name, units::grouped(row.bytes.unsigned_abs()));
    if response.on_hover_text(exact).clicked() {
        shared.toggle(Selection::Category(category));
    }
}

/// What it shows, as text.
pub fn text(answer: &Answer, shared: &Shared, theme: &Theme) -> String {
    let mut text = format!("{} ({})\n", place(answer), part(answer));
    for line in range(answer, shared) {
        let _ = writeln!(text, "{line}");
    }
    for (name, value) in reason(answer) {
        let _ = writeln!(text, "{name}: {value}");
    }
    for row in rows(answer, theme) {
        let bytes = format!("{}{}", if row.bytes < 0 { "-" } else { "" }, units::grouped(row.bytes.unsigned_abs()));
        let _ = writeln!(text, "{:<16} {bytes:>20} B", row.name);
    }
    text
}
