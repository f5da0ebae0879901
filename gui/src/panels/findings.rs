//! What was found out, gravest first, each with its advice and, where it has a moment, "Show me".
//!
//! Owns: which moment and device a finding means. Refuses: to judge.

use eframe::egui::{RichText, Ui};
use memscope_core::Category;
use memscope_core::explorer::{Answer, At, Target};
use memscope_core::findings::{Detail, Finding, Severity};
use memscope_core::report::{self, nanoseconds};

use crate::document::target_of;
use crate::shared::{Selection, Shared, Span};
use crate::theme::Theme;
use crate::view::whole;

/// Where a finding can be seen.
#[derive(Clone, PartialEq, Debug)]
pub struct Shown {
    /// The moment.
    pub at: At,
    /// The part of the session.
    pub target: Target,
    /// What is selected then.
    pub selection: Selection,
    /// What is chosen of time.
    pub range: Option<Span>,
}

/// Where a finding can be seen; `None` for one that has no place in time.
pub fn place(answer: &Answer, finding: &Finding) -> Option<Shown> {
    let here =
        |at, device: &str| Shown { at, target: target_of(answer, device), selection: Selection::None, range: None };
    match &finding.detail {
        Detail::Oom(oom) => {
            let largest = oom.largest.as_ref().and_then(|largest| category(&largest.category));
            let selection = largest.map_or(Selection::None, Selection::Category);
            Some(Shown { selection, ..here(At::Refused(nanoseconds(oom.time_s)), &oom.device) })
        }
        Detail::ThresholdPassed(passed) => {
            let largest = passed.largest.as_ref().and_then(|largest| category(&largest.category));
            let selection = largest.map_or(Selection::None, Selection::Category);
            Some(Shown { selection, ..here(At::Time(nanoseconds(passed.time_s)), &passed.device) })
        }
        Detail::StepGrowth(growth) => {
            let begin =
                |number: u64| answer.step_marks.iter().find(|(_, known)| *known == number).map(|(time, _)| time.0);
            let range = begin(growth.first_step).zip(begin(growth.last_step));
            Some(Shown {
                selection: category(&growth.category).map_or(Selection::None, Selection::Category),
                range: range.map(|(begin, end)| Span::between(begin, end)),
                ..here(At::Step(growth.last_step), &growth.device)
            })
        }
        Detail::InputsGrew(grew) => {
            let moment = nanoseconds(grew.time_s);
            Some(here(if grew.ran_out { At::Refused(moment) } else { At::Step(grew.step) }, &grew.device))
        }
        // In files of earlier versions the time is not told.
        Detail::LargeCached { device, time_s, .. } => {
            Some(here(time_s.map_or(At::Peak, |time| At::Time(nanoseconds(time))), device))
        }
        Detail::CacheGivenBack { device, time_s, .. } => {
            Some(here(time_s.map_or(At::Peak, |time| At::Refused(nanoseconds(time))), device))
        }
        Detail::AllocationRefused { time_s: Some(time), .. } => Some(Shown {
            at: At::Refused(nanoseconds(*time)),
            target: Target::All,
            selection: Selection::None,
            range: None,
        }),
        Detail::UnknownShare { .. } => Some(Shown {
            at: At::Peak,
            target: Target::All,
            selection: Selection::Category(Category::Unknown),
            range: None,
        }),
        _ => None,
    }
}

/// The category of this name.
pub(super) fn category(name: &str) -> Option<Category> {
    Category::ALL.into_iter().find(|category| category.name() == name)
}

/// What there is to say beside the sentence, as the report and the dashboard say it.
fn more(finding: &Finding) -> Vec<String> {
    let mut more = finding.particulars();
    if let Detail::Oom(oom) = &finding.detail {
        more.extend(oom.line.iter().map(|line| format!("Asked for by the line {line}.")));
        more.extend(report::circumstances(oom));
    }
    more
}

/// The finding whose advice must not be looked for: the first, where it is more than a note. Of an out-of-memory error
/// [`super::refusal`] says it.
fn foremost(answer: &Answer) -> Option<usize> {
    let grave = answer.findings.first().is_some_and(|finding| finding.severity < Severity::Note);
    (grave && answer.gravest.is_none()).then_some(0)
}

/// Draws the foremost one, if there is one.
pub fn first(ui: &mut Ui, answer: &Answer, shared: &mut Shared, theme: &Theme) {
    if let Some(position) = foremost(answer) {
        one(ui, answer, position, shared, theme);
        ui.separator();
    }
}

/// Draws the others.
pub fn others(ui: &mut Ui, answer: &Answer, shared: &mut Shared, theme: &Theme) {
    if answer.findings.is_empty() {
        ui.label(RichText::new("Nothing was found that is worth a word.").color(theme.faint()));
    }
    let foremost = foremost(answer);
    for position in (0..answer.findings.len()).filter(|position| Some(*position) != foremost) {
        one(ui, answer, position, shared, theme);
    }
}

fn one(ui: &mut Ui, answer: &Answer, position: usize, shared: &mut Shared, theme: &Theme) {
    let finding = &answer.findings[position];
    let (word, colour) = match finding.severity {
        Severity::Error => ("ERROR", theme.error()),
        Severity::Warning => ("WARNING", theme.warning()),
        Severity::Note => ("NOTE", theme.faint()),
    };
    ui.push_id(("finding", position), |ui| {
        ui.horizontal(|ui| {
            ui.label(RichText::new(word).color(colour).strong());
            if let Some(shown) = place(answer, finding) {
                let button = ui.small_button("Show me").on_hover_text("puts the cursor where this can be seen");
                if button.clicked() {
                    let now = ui.input(|input| input.time);
                    show(answer, shared, shown, now);
                }
            }
        });
        ui.label(format!("{}.", answer.sentence(&finding.message)));
        for more in more(finding) {
            ui.label(answer.sentence(&more));
        }
        if !finding.advice.is_empty() {
            let advice = format!("To do: {}.", answer.sentence(&finding.advice));
            ui.label(RichText::new(advice).strong());
        }
    });
    ui.add_space(6.0);
}

/// Puts cursor, selection and range where a finding can be seen, and shows that time where it is out of sight.
pub fn show(answer: &Answer, shared: &mut Shared, shown: Shown, now: f64) {
    (shared.cursor, shared.target, shared.selection) = (shown.at, shown.target, shown.selection);
    if shown.range.is_some() {
        shared.range = shown.range;
    }
    let whole = whole(answer);
    let seen = shared.zoom.seen(whole);
    let peak = || answer.peak.as_ref().filter(|_| shown.at == At::Peak).map(|peak| peak.state.time.0);
    let moment = shown.at.time().map(|time| time.0).or_else(peak);
    let wanted = match (shown.range, moment) {
        (Some(range), _) if !(seen.contains(range.begin) && seen.contains(range.end)) => {
            let around = range.length() / 8;
            Span::between(range.begin.saturating_sub(around), range.end.saturating_add(around))
        }
        // As near as it was looked at, around that moment.
        (None, Some(moment)) if !seen.contains(moment) => {
            let half = seen.length() / 2;
            Span::between(moment.saturating_sub(half), moment.saturating_add(half))
        }
        _ => return,
    };
    shared.zoom.show(wanted, whole, now);
}

/// The findings as text.
pub fn text(answer: &Answer) -> String {
    let line = |finding: &Finding| {
        let mut text = format!("{:?}: {}.", finding.severity, answer.sentence(&finding.message));
        for more in more(finding) {
            text.push_str(&format!("\n\t{}", answer.sentence(&more)));
        }
        if !finding.advice.is_empty() {
            text.push_str(&format!("\n\tTo do: {}.", answer.sentence(&finding.advice)));
        }
        text + "\n"
    };
    answer.findings.iter().map(line).collect()
}
