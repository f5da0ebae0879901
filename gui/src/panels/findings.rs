//! What was found out, gravest first, each with its advice and, where it has a moment, "Show me".
//!
//! Owns: which moment and device a finding means. Refuses: to judge.

use eframe::egui::{RichText, Ui};
use memscope_core::explorer::{Answer, At, Target};
use memscope_core::findings::{Detail, Finding, Severity};
use memscope_core::report::{self, nanoseconds};

use crate::document::target_of;
use crate::shared::{Selection, Shared, Span};
use crate::theme::Theme;

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
        Detail::Oom(oom) => Some(here(At::Refused(nanoseconds(oom.time_s)), &oom.device)),
        Detail::StepGrowth(growth) => {
            let begin =
                |number: u64| answer.step_marks.iter().find(|(_, known)| *known == number).map(|(time, _)| time.0);
            let range = begin(growth.first_step).zip(begin(growth.last_step));
            let selection = memscope_core::Category::ALL.iter().find(|category| category.name() == growth.category);
            Some(Shown {
                selection: selection.map_or(Selection::None, |category| Selection::Category(*category)),
                range: range.map(|(begin, end)| Span::between(begin, end)),
                ..here(At::Step(growth.last_step), &growth.device)
            })
        }
        Detail::LargeCached { device, .. } | Detail::CacheGivenBack { device, .. } => Some(here(At::Peak, device)),
        Detail::UnknownShare { .. } => Some(Shown {
            at: At::Peak,
            target: Target::All,
            selection: Selection::Category(memscope_core::Category::Unknown),
            range: None,
        }),
        _ => None,
    }
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

/// Draws them.
pub fn ui(ui: &mut Ui, answer: &Answer, shared: &mut Shared, theme: &Theme) {
    if answer.findings.is_empty() {
        ui.label(RichText::new("Nothing was found that is worth a word.").color(theme.faint()));
    }
    for (position, finding) in answer.findings.iter().enumerate() {
        let (word, colour) = match finding.severity {
            Severity::Error => ("ERROR", theme.error()),
            Severity::Warning => ("WARNING", theme.warning()),
            Severity::Note => ("NOTE", theme.faint()),
        };
        ui.push_id(position, |ui| {
            ui.horizontal(|ui| {
                ui.label(RichText::new(word).color(colour).strong());
                if let Some(shown) = place(answer, finding) {
                    let button = ui.small_button("Show me").on_hover_text("puts the cursor where this can be seen");
                    if button.clicked() {
                        show(shared, shown);
                    }
                }
            });
            ui.label(format!("{}.", answer.sentence(&finding.message)));
            for more in more(finding) {
                ui.label(answer.sentence(&more));
            }
            if !finding.advice.is_empty() {
                let advice = format!("To do: {}.", answer.sentence(&finding.advice));
                ui.label(RichText::new(advice).color(theme.faint()));
            }
        });
        ui.add_space(6.0);
    }
}

/// Puts cursor, selection and range where a finding can be seen.
pub fn show(shared: &mut Shared, shown: Shown) {
    (shared.cursor, shared.target, shared.selection) = (shown.at, shown.target, shown.selection);
    if shown.range.is_some() {
        shared.range = shown.range;
    }
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
