//! The pause: what a view that stands still goes on to show, whatever comes.
//!
//! Owns: what was known when it was stopped, part by part, and the program's output of then. Refuses: to stop anything but the
//! view.

use std::sync::Arc;

use memscope_core::explorer::{Answer, At, StepView, Target};
use memscope_core::journal::entry::Nanoseconds;

use super::App;
use crate::output::Output;

/// What is held while the view stands still.
pub(crate) struct Held {
    /// The moment at which it was stopped.
    at: Nanoseconds,
    /// What was known of each part when it was first looked at since.
    parts: Vec<Part>,
    /// The program's output as it was.
    output: Option<Output>,
}

/// What is held of one part of the session.
struct Part {
    target: Target,
    answer: Arc<Answer>,
    /// The step that ran.
    running: Option<StepView>,
}

impl App {
    /// Stops the view, or lets it go on.
    pub(super) fn pause(&mut self) {
        if self.paused.is_some() {
            return self.go_on();
        }
        let at = self.answer.session.last_time;
        self.paused = Some(at);
        let mut held = Held { at, parts: Vec::new(), output: self.output.as_ref().map(Output::held) };
        held.part(&self.answer);
        self.held = Some(held);
        if self.at == At::Peak {
            self.peak();
        }
    }

    /// Ends the pause.
    pub(super) fn go_on(&mut self) {
        self.paused = None;
        if self.held.take().is_some_and(|held| held.output.is_some())
            && let Some(output) = &self.output
        {
            output.search(&self.output_search);
        }
    }

    /// The output that is shown: while the view stands still, that of then.
    pub(crate) fn shown_output(&self) -> Option<&Output> {
        self.held.as_ref().and_then(|held| held.output.as_ref()).or(self.output.as_ref())
    }

    /// An answer without what came after the view was stopped.
    pub(super) fn as_held(&mut self, answer: Arc<Answer>) -> Arc<Answer> {
        match &mut self.held {
            Some(held) => Arc::new(held.cut(&answer)),
            None => answer,
        }
    }
}

impl Held {
    /// What is held of an answer's part.
    fn part(&mut self, answer: &Arc<Answer>) -> &mut Part {
        let known = self.parts.iter().position(|part| part.target == answer.target);
        let position = known.unwrap_or_else(|| {
            self.parts.push(Part { target: answer.target, answer: Arc::clone(answer), running: None });
            self.parts.len() - 1
        });
        &mut self.parts[position]
    }

    fn cut(&mut self, answer: &Arc<Answer>) -> Answer {
        let at = self.at;
        let first = Arc::clone(&self.parts[0].answer);
        let part = self.part(answer);
        let then = &part.answer;
        let marks = then.step_marks.iter().filter(|(begin, _)| *begin <= at).copied().collect();
        let mut cut = Answer {
            // Of the session as a whole; that its program ended is no figure.
            findings: Arc::clone(&first.findings),
            refusals: Arc::clone(&first.refusals),
            series: Arc::clone(&then.series),
            step_marks: Arc::new(marks),
            peak: then.peak.clone(),
            ..Answer::clone(answer)
        };
        let state = cut.session.state;
        let exit_status = cut.session.exit_status;
        cut.session = memscope_core::explorer::SessionView { state, exit_status, ..first.session.clone() };
        // Steps that began since are the last ones.
        let kept = cut.steps.iter().take_while(|step| step.begin <= at).count();
        let ends_here = kept < cut.steps.len();
        cut.steps.truncate(kept);
        if let Some(last) = cut.steps.last_mut().filter(|step| step.end.is_none_or(|end| end > at)) {
            let known = then.steps.iter().find(|step| step.begin == last.begin);
            let running = part.running.get_or_insert_with(|| {
                let seen = known.cloned().unwrap_or_else(|| last.clone());
                StepView { end: None, at_end: None, growth: None, ..seen }
            });
            if running.number == last.number {
                *last = running.clone();
            }
        }
        cut.steps_total = match ends_here {
            true => cut.steps_first + kept,
            false => then.steps_total.min(answer.steps_total).max(cut.steps_first + kept),
        };
        cut
    }
}
