//! The window: documents as tabs, what lies where, and what a frame is.
//!
//! Owns: the panes and the order in which a frame is made: take in what is new, do what keys ask for, draw, ask what is drawn.
//! Refuses: to wait for anything.

mod act;
mod dialog;
mod keeping;
mod menu;
mod saving;

use std::path::Path;
use std::sync::Arc;

use eframe::egui::{self, CentralPanel, Panel, RichText, ScrollArea, Ui};
use memscope_core::explorer::{Answer, ended_as};

use crate::document::{Document, Stage};
use crate::panels::{findings, header, moment, refusal, selected};
use crate::settings::Settings;
use crate::theme::Theme;
use crate::view::{View, ViewContext};
use crate::views;

use dialog::{Browsing, Dialog};

/// The window's state.
pub struct App {
    tabs: Vec<Tab>,
    /// Makes the views below the timeline of each document.
    below: fn() -> Vec<Box<dyn View>>,
    shown: usize,
    settings: Settings,
    dialog: Option<Dialog>,
    browsing: Option<Browsing>,
    /// What the window was named last.
    named: String,
    /// A sentence about what was done last, for a while.
    said: Option<(String, f64)>,
    /// True when text was typed in the last frame.
    typing: bool,
    /// What was typed in the last frame after a key that opened something to type in.
    waiting: Vec<egui::Event>,
}

/// A document and its views.
struct Tab {
    document: Document,
    timeline: views::timeline::Timeline,
    below: Vec<Box<dyn View>>,
    /// Which of those is shown.
    pane: Option<usize>,
    /// It is among the files that were opened last, or need not be.
    noted: bool,
}

impl Tab {
    fn new(document: Document, below: Vec<Box<dyn View>>) -> Tab {
        Tab { document, timeline: Default::default(), below, pane: None, noted: false }
    }

    /// The view that is copied and exported: the one below, else the timeline.
    fn current(&mut self) -> &mut dyn View {
        match self.pane {
            Some(pane) => &mut *self.below[pane],
            None => &mut self.timeline,
        }
    }
}

impl Default for App {
    fn default() -> App {
        App::new(Settings::default())
    }
}

impl App {
    /// A window without documents.
    pub fn new(settings: Settings) -> App {
        App {
            tabs: Vec::new(),
            below: views::below,
            shown: 0,
            settings,
            dialog: None,
            browsing: None,
            named: String::new(),
            said: None,
            typing: false,
            waiting: Vec::new(),
        }
    }

    /// The same with other views below the timeline: for tests.
    pub fn with_views(below: fn() -> Vec<Box<dyn View>>) -> App {
        App { below, ..App::default() }
    }

    /// Opens a file or session as a new tab, and shows it; one that is open is only shown.
    pub fn open(&mut self, path: &Path, context: &egui::Context) {
        // What was a session when it was named or shown last is a profile now.
        let profile = ended_as(path);
        let path = profile.as_deref().unwrap_or(path);
        if let Some(known) = self.tab_of(path) {
            self.shown = known;
            return;
        }
        let context = context.clone();
        self.add(Document::open(path, move || context.request_repaint()));
        // Once it can be opened: a session that is named by a number is no file.
        self.tabs[self.shown].noted = !path.exists();
    }

    /// The tab of a path, whichever way it was written.
    fn tab_of(&self, path: &Path) -> Option<usize> {
        let absolute = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
        let wanted = absolute(path);
        self.tabs.iter().position(|tab| absolute(&tab.document.path) == wanted)
    }

    /// Adds a document as a new tab, and shows it.
    pub fn add(&mut self, document: Document) {
        self.tabs.push(Tab { noted: true, ..Tab::new(document, (self.below)()) });
        self.shown = self.tabs.len() - 1;
    }

    /// The document that is shown.
    pub fn document(&self) -> Option<&Document> {
        self.tabs.get(self.shown).map(|tab| &tab.document)
    }

    /// The same, to be changed.
    pub fn document_mut(&mut self) -> Option<&mut Document> {
        self.tabs.get_mut(self.shown).map(|tab| &mut tab.document)
    }

    /// What is kept for the next start.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The same, to be changed.
    pub fn settings_mut(&mut self) -> &mut Settings {
        &mut self.settings
    }

    /// Names the window after what is shown, where that has changed.
    fn name_window(&mut self, context: &egui::Context) {
        let name = self.document().map_or_else(|| "memscope".to_owned(), |shown| format!("{} · memscope", shown.name));
        if self.named != name {
            context.send_viewport_cmd(egui::ViewportCommand::Title(name.clone()));
            self.named = name;
        }
    }

    fn say(&mut self, text: impl Into<String>, context: &egui::Context) {
        self.said = Some((text.into(), context.input(|input| input.time)));
    }

    /// Draws a frame.
    pub fn frame(&mut self, ui: &mut Ui) {
        let context = ui.ctx().clone();
        let theme = self.settings.look.apply(&context);
        if let Some(tab) = self.tabs.get_mut(self.shown) {
            tab.document.awaken();
        }
        self.tabs.iter_mut().for_each(|tab| tab.document.poll());
        self.note_opened();
        self.dropped(&context);
        self.keys(&context);
        Panel::top("menu").show(ui, |ui| self.menu(ui, &theme));
        match self.tabs.is_empty() {
            true => self.welcome(ui, &theme),
            false => self.shown(ui, &theme),
        }
        self.dialogs(&context, &theme);
        self.typing = context.text_edit_focused();
        self.name_window(&context);
        self.ask();
    }

    /// Asks what is drawn; documents that nobody looks at only what a view that compares wants of them.
    fn ask(&mut self) {
        let shown = self.shown.min(self.tabs.len());
        let (before, rest) = self.tabs.split_at_mut(shown);
        let Some((tab, after)) = rest.split_first_mut() else { return };
        let pane = tab.pane.map(|pane| &*tab.below[pane]);
        let timeline: &dyn View = &tab.timeline;
        tab.document.ask(|shared, query| {
            timeline.ask(shared, query);
            pane.into_iter().for_each(|view| view.ask(shared, query));
        });
        let shared = &tab.document.shared;
        for (position, other) in before.iter_mut().chain(after).enumerate() {
            let mut wanted = false;
            other.document.ask(|_, query| {
                let before = query.clone();
                pane.into_iter().for_each(|view| view.ask_other(shared, position, query));
                wanted = *query != before;
            });
            if wanted {
                other.document.awaken();
            }
        }
    }

    fn shown(&mut self, ui: &mut Ui, theme: &Theme) {
        let others = self.others();
        let Some(tab) = self.tabs.get_mut(self.shown) else { return };
        match tab.document.stage() {
            Stage::Failed(failure) => failed(ui, &failure, theme),
            Stage::Ready => tab.ui(ui, theme, &others),
            Stage::Opening => opening(ui, &tab.document.path),
        }
    }

    /// The documents that are not shown: name, and last answer.
    fn others(&self) -> Vec<(String, Arc<Answer>)> {
        let others = self.tabs.iter().enumerate().filter(|(position, _)| *position != self.shown);
        others.map(|(_, tab)| (tab.document.name.clone(), Arc::clone(tab.document.answer()))).collect()
    }

    /// Shows a view of the document that is shown, by its title.
    pub fn show_view(&mut self, title: &str) {
        if let Some(tab) = self.tabs.get_mut(self.shown) {
            tab.pane = tab.below.iter().position(|view| view.title() == title);
        }
    }

    fn welcome(&mut self, ui: &mut Ui, theme: &Theme) {
        let mut wanted = None;
        CentralPanel::default_margins().show(ui, |ui| {
            ui.add_space(ui.available_height() / 4.0);
            ui.vertical_centered(|ui| {
                ui.heading("memscope");
                ui.label("Drop a profile (.mscope) here, or open one with Ctrl+O.");
                ui.add_space(12.0);
                if !self.settings.recent.is_empty() {
                    ui.label(RichText::new("Opened last").color(theme.faint()));
                }
                for path in &self.settings.recent {
                    if ui.link(path.display().to_string()).clicked() {
                        wanted = Some(path.clone());
                    }
                }
            });
        });
        if let Some(path) = wanted {
            self.open(&path, ui.ctx());
        }
    }

    /// Opens what was dropped on the window.
    fn dropped(&mut self, context: &egui::Context) {
        let files = context.input(|input| input.raw.dropped_files.clone());
        for file in &files {
            self.open(file.path(), context);
        }
    }
}

impl Tab {
    fn ui(&mut self, ui: &mut Ui, theme: &Theme, others: &[(String, Arc<Answer>)]) {
        let answer = Arc::clone(self.document.answer());
        let read = self.document.allocations_read();
        Panel::top("header").show(ui, |ui| header::ui(ui, &answer, read, theme));
        let waiting = self.document.is_waiting();
        let shared = &mut self.document.shared;
        Panel::right("beside").default_size(330.0).min_size(220.0).show(ui, |ui| {
            let height = ui.available_height();
            ScrollArea::vertical().auto_shrink(false).show(ui, |ui| {
                ui.add_space(4.0);
                // What is asked most first: why, and what to do.
                refusal::ui(ui, &answer, shared, theme, height);
                findings::first(ui, &answer, shared, theme);
                selected::ui(ui, &answer, shared, theme);
                moment::ui(ui, &answer, shared, theme);
                if waiting {
                    ui.spinner();
                }
                moment::ledger(ui, &answer, shared, theme);
                ui.separator();
                findings::others(ui, &answer, shared, theme);
            });
        });
        let (name, shared) = (&self.document.name, &mut self.document.shared);
        let mut context = ViewContext { name, answer: &answer, shared, theme: *theme, others };
        let (below, pane) = (&mut self.below, &mut self.pane);
        match *pane {
            _ if below.is_empty() => {}
            None => drop(Panel::bottom("tabs of views").show(ui, |ui| tabs(ui, below, pane))),
            Some(shown) => {
                let height = ui.available_height();
                let panel = Panel::bottom("below").resizable(true).default_size(height * 0.55).max_size(height - 140.0);
                panel.show(ui, |ui| {
                    tabs(ui, below, pane);
                    // As high as it was made, whatever the view needs.
                    ui.set_min_size(ui.available_size());
                    below[shown].ui(ui, &mut context);
                });
            }
        }
        CentralPanel::no_frame().show(ui, |ui| self.timeline.ui(ui, &mut context));
    }
}

fn tabs(ui: &mut Ui, below: &[Box<dyn View>], pane: &mut Option<usize>) {
    ui.horizontal_wrapped(|ui| {
        if ui.selectable_label(pane.is_none(), "Timeline alone").clicked() {
            *pane = None;
        }
        for (position, view) in below.iter().enumerate() {
            if ui.selectable_label(*pane == Some(position), view.title()).clicked() {
                *pane = Some(position);
            }
        }
    });
}

fn opening(ui: &mut Ui, path: &Path) {
    CentralPanel::default_margins().show(ui, |ui| {
        ui.add_space(ui.available_height() / 3.0);
        ui.vertical_centered(|ui| {
            ui.label(format!("opening {} …", path.display()));
            ui.add(egui::ProgressBar::new(0.0).animate(true).desired_width(240.0).text("reading"));
        });
    });
}

fn failed(ui: &mut Ui, failure: &str, theme: &Theme) {
    CentralPanel::default_margins().show(ui, |ui| {
        ui.add_space(ui.available_height() / 3.0);
        ui.vertical_centered(|ui| {
            ui.label(RichText::new("This cannot be opened").color(theme.error()).heading());
            ui.label(failure);
        });
    });
}

impl eframe::App for App {
    fn ui(&mut self, ui: &mut Ui, _frame: &mut eframe::Frame) {
        self.frame(ui);
    }

    fn save(&mut self, storage: &mut dyn eframe::Storage) {
        self.keep(storage);
    }
}
