//! What the window takes over from its last start.
//!
//! Owns: settings and tabs. Refuses: the window's size and its panels: eframe and egui keep those.

use std::path::{Path, PathBuf};

use eframe::egui;
use memscope_core::explorer::ended_as;

use super::{App, Tab};
use crate::document::{Document, Stage};
use crate::settings::KEY;

/// A file or folder as long as it is there; of a session that has ended meanwhile its profile.
fn there(path: &Path) -> Option<PathBuf> {
    if path.exists() { Some(path.to_path_buf()) } else { ended_as(path) }
}

impl App {
    /// The window as eframe makes it, with what was kept of the last one but its tabs.
    pub fn restore(creation: &eframe::CreationContext<'_>) -> App {
        let kept = creation.storage.and_then(|storage| eframe::get_value(storage, KEY));
        App::new(kept.unwrap_or_default())
    }

    /// Opens what the command line names beside the tabs of the last window whose files are still there. The last of what is named
    /// is shown, else what was shown then. With `compares`, what is named comes first: the first of two others is what a
    /// difference is made to.
    pub fn begin(&mut self, named: &[PathBuf], compares: bool, context: &egui::Context) {
        if compares {
            named.iter().for_each(|path| self.open(path, context));
        }
        for path in self.settings.tabs.clone().iter().filter_map(|path| there(path)) {
            if self.tab_of(&path).is_none() {
                let wake = context.clone();
                let document = Document::asleep(&path, move || wake.request_repaint());
                // The files that were opened last keep their order.
                self.tabs.push(Tab { noted: true, ..Tab::new(document, (self.below)()) });
            }
        }
        named.iter().for_each(|path| self.open(path, context));
        let before = self.settings.shown.as_deref().filter(|_| named.is_empty()).and_then(there);
        let before = before.and_then(|path| self.tab_of(&path));
        if let Some(tab) = before {
            self.shown = tab;
        }
    }

    /// Notes files that could be opened: one that could not is not offered again.
    pub(super) fn note_opened(&mut self) {
        for tab in self.tabs.iter_mut().filter(|tab| !tab.noted && matches!(tab.document.stage(), Stage::Ready)) {
            tab.noted = true;
            self.settings.opened(&tab.document.path);
        }
    }

    /// Notes what is open, and stores all that is kept.
    pub(super) fn keep(&mut self, storage: &mut dyn eframe::Storage) {
        // A session that was named by its id or a process is found elsewhere next time, or is another one.
        let place = |path: &Path| std::path::absolute(there(path)?).ok();
        self.settings.tabs = self.tabs.iter().filter_map(|tab| place(&tab.document.path)).collect();
        self.settings.shown = self.document().and_then(|document| place(&document.path));
        eframe::set_value(storage, KEY, &self.settings);
    }
}
