//! Cells of the list: of single allocations, and of groups.
//!
//! Owns: columns, their words, and what a row selects. Refuses: where they stand.

use std::fmt::Write as _;

use eframe::egui::Ui;
use memscope_core::explorer::{AllocationRow, Answer, Column as By, GroupRow, Grouping, Row, RowsView};
use memscope_core::report::units;
use memscope_core::{Category, Origin};

use super::bars;
use super::list::row_at;
use crate::panels;
use crate::shared::Selection;
use crate::table::{Cell, Column, Rows};
use crate::theme::Theme;
use crate::view::ViewContext;

/// Columns of single allocations, and by what each sorts.
pub const COLUMNS: [(Column, By); 15] = [
    (Column::figures("size", 70.0, 0, "bytes asked for"), By::Size),
    (Column::words("category", 86.0, 0.0, 1, "what it is for"), By::Category),
    (Column::words("known", 54.0, 0.0, 7, "how the category is known"), By::Origin),
    (Column::words("name", 90.0, 3.0, 0, "from its tag, else the driver's function"), By::Name),
    (Column::words("scope", 90.0, 4.0, 2, "the scope that made it"), By::Scope),
    (Column::words("line", 110.0, 4.0, 3, "the line of the program that made it"), By::Line),
    (Column::figures("age", 56.0, 4, "time since it was made"), By::Age),
    (Column::figures("step", 40.0, 5, "the step that made it"), By::Step),
    (Column::figures("GPU", 34.0, 6, "the device that it lies on"), By::Device),
    (Column::figures("granted", 70.0, 8, "bytes granted: more where sizes are rounded"), By::Granted),
    (Column::figures("born", 84.0, 9, "when it was made"), By::Age),
    (Column::figures("stream", 54.0, 10, "CUDA stream"), By::Stream),
    (Column::figures("process", 56.0, 11, "process id"), By::Process),
    (Column::figures("address", 104.0, 12, "address in its process"), By::Address),
    (Column::words("memory", 54.0, 0.0, 13, "the kind of memory"), By::Size),
];

/// The column that is sorted by nothing: what it tells is no order.
const MEMORY: usize = 14;
const LINE: usize = 5;
const GPU: usize = 8;

/// Columns of groups; the last is sorted by what the groups have in common.
const GROUPED: [Column; 5] = [
    Column::figures("size", 70.0, 0, "bytes asked for"),
    Column::figures("share", 54.0, 2, "of what the filter lets through, or of all that is live"),
    Column::figures("count", 64.0, 1, "allocations"),
    Column::words("categories", 90.0, 1.0, 3, "bytes by category, of all that the filter lets through"),
    Column::words("group", 120.0, 4.0, 0, "what they have in common"),
];

/// The rows of an answer, with what is drawn of them.
pub struct Drawn<'a> {
    view: &'a RowsView,
    answer: &'a Answer,
    selection: Selection,
    theme: Theme,
    group: Option<Grouping>,
    grouped: bool,
    sorted: Option<(usize, bool)>,
    columns: Vec<Column>,
    /// Of each of these columns its position among [`COLUMNS`].
    shown: Vec<usize>,
}

impl<'a> Drawn<'a> {
    /// Those of a list that was asked for so.
    pub fn of(
        view: &'a RowsView,
        context: &ViewContext<'a>,
        (group, sort, descending): (Option<Grouping>, By, bool),
        unwanted: &[usize],
    ) -> Drawn<'a> {
        // By what the answer holds: it may be the one to an earlier question.
        let grouped = view.rows.first().map_or(group.is_some(), |row| matches!(row, Row::Group(_)));
        let answer = context.answer;
        let is_told = |position: &usize| match *position {
            LINE => answer.session.stacks,
            GPU => answer.devices.len() > 1,
            _ => true,
        };
        let shown: Vec<usize> = match grouped {
            true => (0..GROUPED.len()).collect(),
            false => (0..COLUMNS.len()).filter(|at| !unwanted.contains(at)).filter(is_told).collect(),
        };
        let columns = shown.iter().map(|at| if grouped { GROUPED[*at] } else { COLUMNS[*at].0 }).collect();
        let drawn = Drawn {
            view,
            answer,
            selection: context.shared.selection.clone(),
            theme: context.theme,
            group,
            grouped,
            sorted: None,
            columns,
            shown,
        };
        // Groups whose label is not sorted by are sorted by size.
        let by = |column: &usize| drawn.by(*column) == Some(sort);
        let column = (0..drawn.columns.len()).find(by).or(grouped.then_some(0));
        Drawn { sorted: column.map(|column| (column, descending)), ..drawn }
    }

    /// By what a column sorts.
    pub fn by(&self, column: usize) -> Option<By> {
        let at = *self.shown.get(column)?;
        match (self.grouped, at) {
            (false, MEMORY) => None,
            (false, at) => Some(COLUMNS[at].1),
            (true, 0) => Some(By::Size),
            (true, 2) => Some(By::Count),
            (true, 4) => match self.group? {
                Grouping::Name => Some(By::Name),
                Grouping::Scope => Some(By::Scope),
                Grouping::Line => Some(By::Line),
                Grouping::Category => Some(By::Category),
                // Its figures are those of the first column.
                Grouping::Size => None,
            },
            (true, _) => None,
        }
    }

    fn single(&self, row: &AllocationRow, column: usize, cell: &Cell<'_>) {
        let (plain, faint) = (self.theme.text(), self.theme.faint());
        match column {
            0 => cell.text(&units::bytes(row.bytes), plain),
            1 => cell.swatch(row.category.name(), (self.theme.category(row.category), plain)),
            2 if row.origin == Origin::None => {}
            2 => cell.text(row.origin.name(), faint),
            3 => cell.end_of(name(row), if row.name.is_empty() { faint } else { plain }),
            4 => cell.end_of(&row.scope, plain),
            // File and line tell more than the function behind them.
            LINE => cell.text(&row.site, plain),
            6 => cell.text(&age(self.view, row), plain),
            7 => cell.text(&row.step.map_or(String::new(), |step| step.to_string()), plain),
            GPU => cell.text(&device(self.answer, row), faint),
            9 => cell.text(&units::bytes(row.granted), if row.granted == row.bytes { faint } else { plain }),
            10 => cell.text(&panels::time(row.birth.0), faint),
            11 => cell.text(&stream(row), faint),
            12 => cell.text(&row.pid.to_string(), faint),
            13 => cell.text(&format!("{:#x}", row.address), faint),
            _ => cell.text(row.memory.name(), faint),
        }
    }

    fn group(&self, row: &GroupRow, column: usize, cell: &Cell<'_>) {
        let (bytes, whole) = (bytes(row), self.view.shares_of);
        let plain = self.theme.text();
        match column {
            0 => cell.text(&units::bytes(bytes), plain),
            1 => cell.text(&format!("{:.1} %", units::share(bytes, whole)), plain),
            2 => cell.text(&units::grouped(row.allocations), plain),
            3 => bars::shares(cell, &row.live, whole),
            _ => cell.end_of(label(row, self.group), plain),
        }
    }
}

impl Rows for Drawn<'_> {
    fn name(&self) -> &str {
        "Allocations"
    }

    fn columns(&self) -> &[Column] {
        &self.columns
    }

    fn count(&self) -> usize {
        self.view.matching
    }

    fn sorted(&self) -> Option<(usize, bool)> {
        self.sorted
    }

    fn sorts(&self, column: usize) -> bool {
        self.by(column).is_some()
    }

    fn label(&self, row: usize) -> Option<String> {
        Some(match row_at(self.view, row)? {
            Row::Allocation(row) => {
                let name = if name(row).is_empty() { &row.scope } else { name(row) };
                let name = if name.is_empty() { "without a name" } else { name };
                format!("{name}, {}, {}", units::bytes(row.bytes), row.category.name())
            }
            Row::Group(group) => {
                let count = units::count(group.allocations, "allocation", "allocations");
                format!("{}: {}, {count}", label(group, self.group), units::bytes(bytes(group)))
            }
        })
    }

    fn is_lit(&self, row: usize) -> bool {
        let chosen = row_at(self.view, row).map(|row| selection(row, self.group));
        self.selection != Selection::None && chosen.as_ref() == Some(&self.selection)
    }

    fn cell(&self, row: usize, column: usize, cell: &Cell<'_>) {
        match row_at(self.view, row) {
            Some(Row::Allocation(row)) => self.single(row, self.shown[column], cell),
            Some(Row::Group(row)) => self.group(row, column, cell),
            None => {}
        }
    }

    fn told(&self, row: usize, ui: &mut Ui) {
        match row_at(self.view, row) {
            Some(Row::Allocation(row)) => {
                let name = name(row);
                ui.strong(if name.is_empty() { "without a name" } else { name });
                ui.label(units::exact(row.bytes));
                if row.granted != row.bytes {
                    ui.label(format!("granted {}", units::exact(row.granted)));
                }
                ui.label(row.held_by());
                ui.label(if row.scope.is_empty() { "outside all scopes" } else { &row.scope });
                if !row.site.is_empty() {
                    ui.label(&row.site);
                }
                let step = row.step.map_or_else(String::new, |step| format!(", step {step}"));
                ui.label(format!("made at {}{step}, {} ago", panels::time(row.birth.0), age(self.view, row)));
            }
            Some(Row::Group(group)) => {
                ui.strong(label(group, self.group));
                ui.label(units::exact(bytes(group)));
                ui.label(units::count(group.allocations, "allocation", "allocations"));
                for category in memscope_core::explorer::STACKED {
                    let bytes = group.live[category as usize];
                    if bytes > 0 {
                        ui.colored_label(
                            self.theme.category(category),
                            format!("{}: {}", category.name(), units::bytes(bytes)),
                        );
                    }
                }
                ui.weak("a double click or Enter lists them");
            }
            None => {}
        }
    }
}

fn bytes(group: &GroupRow) -> u64 {
    group.live.iter().fold(0, |sum, bytes| sum.wrapping_add(*bytes))
}

/// What a group has in common.
fn label(group: &GroupRow, grouping: Option<Grouping>) -> &str {
    match (group.label.as_str(), grouping) {
        ("", Some(Grouping::Line)) => "no line recorded",
        ("", Some(Grouping::Scope)) => "outside all scopes",
        ("", _) => "without a name",
        (label, _) => label,
    }
}

/// Its name, else the driver's function that made it.
fn name(row: &AllocationRow) -> &str {
    if row.name.is_empty() { &row.function } else { &row.name }
}

/// How long something has lived, in few characters.
fn age(view: &RowsView, row: &AllocationRow) -> String {
    units::time(view.as_of.0.saturating_sub(row.birth.0) as f64 / 1e9)
}

fn device(answer: &Answer, row: &AllocationRow) -> String {
    row.device.map_or("host".to_owned(), |position| answer.gpu(position.into()).to_string())
}

fn stream(row: &AllocationRow) -> String {
    match row.stream {
        0 => "default".to_owned(),
        stream if stream < 1000 => stream.to_string(),
        stream => format!("{stream:#x}"),
    }
}

/// What a row means in all views; nothing for a group that other views do not know.
pub fn selection(row: &Row, grouping: Option<Grouping>) -> Selection {
    match (row, grouping) {
        (Row::Allocation(row), _) => {
            Selection::Allocation(memscope_core::explorer::Pick { id: row.id, birth: row.birth })
        }
        (Row::Group(group), Some(Grouping::Scope)) if !group.label.is_empty() => Selection::Scope(group.label.clone()),
        (Row::Group(group), Some(Grouping::Category)) => {
            let category = Category::ALL.into_iter().find(|category| category.name() == group.label);
            category.map_or(Selection::None, Selection::Category)
        }
        (Row::Group(_), _) => Selection::None,
    }
}

/// Rows as text, to the byte, for spreadsheets.
pub fn text<'r>(answer: &Answer, rows: impl Iterator<Item = &'r Row>) -> String {
    let mut text = String::new();
    let mut titled = false;
    for row in rows {
        if !std::mem::replace(&mut titled, true) {
            text.push_str(match row {
                Row::Allocation(_) => {
                    "bytes\tgranted\tcategory\tknown\tname\tscope\tline\tstep\tborn_s\tgpu\tstream\tprocess\taddress\tmemory\n"
                }
                Row::Group(_) => "bytes\tallocations\tgroup\n",
            });
        }
        let _ = match row {
            Row::Allocation(row) => writeln!(
                text,
                "{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{:.9}\t{}\t{}\t{}\t{:#x}\t{}",
                row.bytes,
                row.granted,
                row.category.name(),
                row.origin.name(),
                flat(name(row)),
                flat(&row.scope),
                flat(&row.site),
                row.step.map_or_else(String::new, |step| step.to_string()),
                row.birth.0 as f64 / 1e9,
                device(answer, row),
                row.stream,
                row.pid,
                row.address,
                row.memory.name()
            ),
            Row::Group(group) => writeln!(text, "{}\t{}\t{}", bytes(group), group.allocations, flat(&group.label)),
        };
    }
    text
}

/// Within one field of a table.
fn flat(text: &str) -> String {
    text.replace(char::is_control, " ")
}
