//! What is seen of time, and what was seen before.
//!
//! Owns: undo and redo. Refuses: to count each notch of a wheel: what follows closely is one change.

use super::Span;

/// Changes that are this close together (seconds) are one.
const ONE_CHANGE: f64 = 0.6;
/// So many can be undone.
const REMEMBERED: usize = 100;

/// What is seen of time: all of it, or a span.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Zoom {
    seen: Option<Span>,
    before: Vec<Option<Span>>,
    after: Vec<Option<Span>>,
    changed_at: Option<f64>,
}

impl Zoom {
    /// The span that is seen, of a session this long; all of it where nothing was zoomed.
    pub fn seen(&self, whole: Span) -> Span {
        self.seen.map_or(whole, |span| span.within(whole))
    }

    /// True when all of time is seen, whatever is added to it.
    pub const fn is_whole(&self) -> bool {
        self.seen.is_none()
    }

    /// Shows a span (all of it, if that is all) at a time of the window's clock, in seconds: changes in quick succession are
    /// undone together.
    pub fn show(&mut self, span: Span, whole: Span, now: f64) {
        let span = span.within(whole);
        let seen = (span != whole).then_some(span);
        if seen == self.seen {
            return;
        }
        let continues = self.changed_at.is_some_and(|at| (0.0..ONE_CHANGE).contains(&(now - at)));
        if !continues {
            self.before.push(self.seen);
            if self.before.len() > REMEMBERED {
                self.before.remove(0);
            }
        }
        self.after.clear();
        self.changed_at = Some(now);
        self.seen = seen;
    }

    /// Shows all of time.
    pub fn show_all(&mut self, now: f64) {
        if self.seen.is_some() {
            self.changed_at = None;
            self.before.push(self.seen.take());
            self.after.clear();
            self.changed_at = Some(now);
        }
    }

    /// Takes the last change back; false when there is none.
    pub fn undo(&mut self) -> bool {
        let Some(before) = self.before.pop() else { return false };
        self.after.push(std::mem::replace(&mut self.seen, before));
        self.changed_at = None;
        true
    }

    /// Makes the change again that was taken back last; false when there is none.
    pub fn redo(&mut self) -> bool {
        let Some(after) = self.after.pop() else { return false };
        self.before.push(std::mem::replace(&mut self.seen, after));
        self.changed_at = None;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: Span = Span { begin: 0, end: 1000 };

    #[test]
    fn changes_in_quick_succession_are_undone_together() {
        let mut zoom = Zoom::default();
        let [wide, near, nearer] = [(0, 500), (100, 200), (110, 120)].map(|(begin, end)| Span { begin, end });
        zoom.show(wide, WHOLE, 0.0);
        zoom.show(near, WHOLE, 5.0);
        zoom.show(nearer, WHOLE, 5.2);
        assert!(zoom.undo());
        assert_eq!(zoom.seen(WHOLE), wide);
        assert!(zoom.redo() && !zoom.redo());
        assert_eq!(zoom.seen(WHOLE), nearer);
        assert!(zoom.undo() && zoom.undo() && !zoom.undo());
        assert!(zoom.is_whole());
        // A new change forgets what was taken back.
        zoom.show(wide, WHOLE, 9.0);
        assert!(!zoom.redo());
        zoom.show_all(20.0);
        assert!(zoom.is_whole() && zoom.undo());
        assert_eq!(zoom.seen(WHOLE), wide);
    }

    #[test]
    fn the_whole_is_not_a_zoom() {
        let mut zoom = Zoom::default();
        zoom.show(WHOLE, WHOLE, 0.0);
        assert!(zoom.is_whole() && !zoom.undo());
        // What grows is still seen whole.
        assert_eq!(zoom.seen(Span { begin: 0, end: 5000 }).end, 5000);
    }
}
