//! What the window takes over from its last start.
//!
//! Owns: settings and tabs. Refuses: the window's size and its panels: eframe and egui keep those.

use std::path::Path;

use eframe::egui;

use super::App;
use crate::settings::{KEY, Settings};

impl App {
    /// The window as eframe makes it, with what was kept of the last one but its tabs.
    pub fn restore(creation: &eframe::CreationContext<'_>) -> App {
        let kept = creation.storage.and_then(|storage| eframe::get_value(storage, KEY));
        App::new(kept.unwrap_or_default())
    }

    /// Opens the tabs of the last window, those whose files are still there.
    pub fn open_tabs(&mut self, context: &egui::Context) {
        // The files that were opened last keep their order.
        let Settings { tabs, shown, recent, .. } = self.settings.clone();
        tabs.iter().filter(|path| path.exists()).for_each(|path| self.open(path, context));
        if let Some(path) = shown.filter(|path| path.exists()) {
            self.open(&path, context);
        }
        self.settings.recent = recent;
    }

    /// Notes what is open, and stores all that is kept.
    pub(super) fn keep(&mut self, storage: &mut dyn eframe::Storage) {
        // A session that was named by its id or a process is found elsewhere next time, or is another one.
        let place = |path: &Path| path.exists().then(|| std::path::absolute(path).ok()).flatten();
        self.settings.tabs = self.tabs.iter().filter_map(|tab| place(&tab.document.path)).collect();
        self.settings.shown = self.document().and_then(|document| place(&document.path));
        eframe::set_value(storage, KEY, &self.settings);
    }
}
