//! The menu and the tabs of documents, made from the table of actions.
//!
//! Owns: their layout. Refuses: a menu entry that is no action.

use eframe::egui::{self, Button, MenuBar, RichText, Ui};

use super::App;
use crate::action::{Action, Menu, TABLE, written};
use crate::theme::Theme;

const MENUS: [(Menu, &str); 5] =
    [(Menu::File, "File"), (Menu::Go, "Go"), (Menu::Time, "Time"), (Menu::View, "View"), (Menu::Help, "Help")];

impl App {
    pub(super) fn menu(&mut self, ui: &mut Ui, theme: &Theme) {
        let mut chosen = None;
        let mut recent = None;
        MenuBar::new().ui(ui, |ui| {
            for (menu, name) in MENUS {
                ui.menu_button(name, |ui| {
                    for row in TABLE.iter().filter(|row| row.menu == menu) {
                        let Some(name) = self.name_of(row.action) else { continue };
                        let keys = written(&row.keys[0]);
                        let button = ui.add(Button::new(name).shortcut_text(keys));
                        if button.on_hover_text(row.says).clicked() {
                            chosen = Some(row.action);
                        }
                    }
                    if menu == Menu::File && !self.settings.recent.is_empty() {
                        ui.separator();
                        for path in &self.settings.recent {
                            if ui.button(path.display().to_string()).clicked() {
                                recent = Some(path.clone());
                            }
                        }
                    }
                });
            }
            ui.separator();
            self.tabs(ui, theme);
        });
        if let Some(action) = chosen {
            self.act(action, ui.ctx());
        }
        if let Some(path) = recent {
            self.open(&path, ui.ctx());
        }
    }

    fn tabs(&mut self, ui: &mut Ui, theme: &Theme) {
        let mut closed = None;
        for (position, tab) in self.tabs.iter().enumerate() {
            let shown = position == self.shown;
            let label = ui.selectable_label(shown, RichText::new(&tab.document.name));
            let label = label.on_hover_text(tab.document.path.display().to_string());
            if label.clicked() {
                self.shown = position;
            }
            let name = format!("Close {}", tab.document.name);
            let close = ui.add(Button::new(RichText::new("×").color(theme.faint())).frame(false));
            close.widget_info(|| egui::WidgetInfo::labeled(egui::accesskit::Role::Button, true, name.as_str()));
            if close.clicked() {
                closed = Some(position);
            }
        }
        if let Some(position) = closed {
            self.close(position);
        }
        let now = ui.input(|input| input.time);
        if let Some((said, at)) = &self.said {
            if now - at < 8.0 {
                ui.separator();
                ui.label(RichText::new(said).color(theme.accent()));
            } else {
                self.said = None;
            }
        }
    }

    /// What a pane shows: 0 is the timeline alone, the others are the views below it; `None` for one that there is not.
    pub fn pane_name(&self, pane: u8) -> Option<&'static str> {
        match usize::from(pane).checked_sub(1) {
            None => Some(crate::action::row_of(Action::Pane(0)).name),
            Some(below) => Some(self.tabs.get(self.shown)?.below.get(below)?.title()),
        }
    }

    /// The name of an action now; `None` when it does nothing.
    fn name_of(&self, action: Action) -> Option<String> {
        if let Action::Pane(pane) = action {
            return Some(self.pane_name(pane)?.to_owned());
        }
        Some(crate::action::row_of(action).name.to_owned())
    }
}
