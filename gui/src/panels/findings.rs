//! What was found out, gravest first, each with its advice and, where it has a moment, "Show me".
//!
//! Owns: which moment and device a finding means. Refuses: to judge.

use eframe::egui::{RichText, Ui};
use memscope_core::explorer::{Answer, At, Target};
use memscope_core::findings::{Detail, Finding, Severity};
use memscope_core::report::nanoseconds;

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
            ui.label(format!("{}.", sentence(answer, &finding.message)));
            if !finding.advice.is_empty() {
                let advice = format!("To do: {}.", sentence(answer, &finding.advice));
                ui.label(RichText::new(advice).color(theme.faint()));
            }
        });
        ui.add_space(6.0);
    }
}

/// A finding's words, in which devices are called as everywhere in the window.
fn sentence(answer: &Answer, text: &str) -> String {
    let named = answer.devices.iter().filter(|device| !device.uuid.is_empty());
    named.fold(text.to_owned(), |text, device| text.replace(&device.uuid, &format!("GPU {}", device.ordinal)))
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
        let (message, advice) = (sentence(answer, &finding.message), sentence(answer, &finding.advice));
        format!("{:?}: {message}. To do: {advice}.\n", finding.severity)
    };
    answer.findings.iter().map(line).collect()
}
