//! Which process came after another: what tells programs one after another from ranks that run side by side.
//!
//! Owns: that question, of the processes of a model. Refuses: steps (`device`).

use crate::allocation::Model;

/// The lives of a model's processes.
pub(crate) struct Lives<'m>(pub &'m Model);

impl Lives<'_> {
    /// True when a process began after another had ended, as far as that is known.
    pub fn came_after(&self, process: usize, other: usize) -> bool {
        let of = |process: usize| self.0.processes.get(process);
        let start = self.0.session.start_monotonic_ns;
        of(process).zip(of(other)).is_some_and(|(process, other)| process.came_after(other, start))
    }
}
