//! What lies over the window: the field for a path, and the shortcut sheet.
//!
//! Owns: asking for a file or a place to write to. Refuses: to block the window while the system's own dialog is open.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, TryRecvError};

use eframe::egui::text::{CCursor, CCursorRange};
use eframe::egui::text_edit::TextEditState;
use eframe::egui::{self, Grid, Key, KeyboardShortcut, Modal, Modifiers, RichText, ScrollArea, TextEdit};

use super::App;
use crate::action::{TABLE, written};
use crate::theme::Theme;
use crate::view::OwnKey;

/// What lies over the window.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Dialog {
    /// The table of actions.
    Shortcuts,
    /// A path is typed, of a file to open.
    Open(String),
    /// A path is typed, of a picture to write, with its ending.
    Save(String, &'static str),
}

/// The system's own dialog, that is open on another thread, and what the user said to it.
pub(super) struct Browsing {
    said: Receiver<Option<PathBuf>>,
}

/// So many completions are shown.
const COMPLETIONS: usize = 8;

impl App {
    pub(super) fn ask_for_a_file(&mut self) {
        self.dialog = Some(Dialog::Open(String::new()));
    }

    /// Asks with the system's own dialog, which may stay open as long as it likes; for a place to write to, if that is named.
    fn browse(&mut self, save: Option<(&'static str, PathBuf)>, context: &egui::Context) {
        let (send, said) = std::sync::mpsc::channel();
        let context = context.clone();
        let ask = move || {
            let dialog = rfd::FileDialog::new();
            let path = match save {
                None => dialog.set_title("Open a profile").add_filter("memscope profiles", &["mscope"]).pick_file(),
                Some((kind, place)) => {
                    let name = place.file_name().unwrap_or_default().to_string_lossy().into_owned();
                    dialog.set_title("Save the view").add_filter(kind, &[kind]).set_file_name(name).save_file()
                }
            };
            // Nobody may wait any more.
            let _ = send.send(path);
            context.request_repaint();
        };
        if std::thread::Builder::new().name("memscope-browse".into()).spawn(ask).is_ok() {
            self.browsing = Some(Browsing { said });
        }
    }

    /// Takes in what the user said to the system's dialog: it becomes the path that is asked for.
    fn browsed(&mut self) {
        // Nobody waits for it once the dialog that asks is closed.
        let browsing = self.browsing.take().filter(|_| self.dialog.is_some());
        let said = match browsing.as_ref().map(|browsing| browsing.said.try_recv()) {
            Some(Err(TryRecvError::Empty)) => return self.browsing = browsing,
            Some(Ok(said)) => said,
            Some(Err(TryRecvError::Disconnected)) | None => return,
        };
        if let (Some(path), Some(Dialog::Open(text) | Dialog::Save(text, _))) = (said, &mut self.dialog) {
            *text = path.display().to_string();
        }
    }

    /// The keys that each view reads itself: its title, and them.
    fn keys_of_views(&self) -> Vec<(&'static str, &'static [OwnKey])> {
        let views = (self.below)();
        views.iter().map(|view| (view.title(), view.keys())).filter(|(_, keys)| !keys.is_empty()).collect()
    }

    pub(super) fn dialogs(&mut self, context: &egui::Context, theme: &Theme) {
        self.browsed();
        match self.dialog.take() {
            None => {}
            Some(Dialog::Shortcuts) => {
                let open = shortcuts(context, theme, &self.keys_of_views());
                self.dialog = open.then_some(Dialog::Shortcuts);
            }
            Some(Dialog::Open(mut text)) => match ask(context, theme, "Open a profile or a session", &mut text, true) {
                Said::Nothing => self.dialog = Some(Dialog::Open(text)),
                Said::Path(path) => self.open(&path, context),
                Said::Browse => {
                    self.browse(None, context);
                    self.dialog = Some(Dialog::Open(text));
                }
                Said::No => {}
            },
            Some(Dialog::Save(mut text, kind)) => {
                let title = format!("Save the view as {}", kind.to_uppercase());
                match ask(context, theme, &title, &mut text, false) {
                    Said::Nothing => self.dialog = Some(Dialog::Save(text, kind)),
                    Said::Path(path) => self.write(&path, kind, context),
                    Said::Browse => {
                        self.browse(Some((kind, PathBuf::from(&text))), context);
                        self.dialog = Some(Dialog::Save(text, kind));
                    }
                    Said::No => {}
                }
            }
        }
    }
}

/// What the user said to a dialog.
enum Said {
    Nothing,
    Path(PathBuf),
    /// The system's own dialog shall ask.
    Browse,
    No,
}

fn ask(context: &egui::Context, theme: &Theme, title: &str, text: &mut String, exists: bool) -> Said {
    let mut said = Said::Nothing;
    let modal = Modal::new(egui::Id::unique("ask for a path")).show(context, |ui| {
        ui.set_width(560.0);
        ui.heading(title);
        let label = ui.label("Path");
        let field = ui.add(TextEdit::singleline(text).desired_width(f32::INFINITY).hint_text("/path/to/run.mscope"));
        let field = field.labelled_by(label.id);
        let entered = field.lost_focus() && ui.input(|input| input.key_pressed(Key::Enter));
        if !field.has_focus() && !entered {
            field.request_focus();
            // What was asked before has left its own.
            let mut state = TextEditState::load(ui.ctx(), field.id).unwrap_or_default();
            state.cursor.set_char_range(Some(CCursorRange::one(CCursor::new(text.chars().count()))));
            state.store(ui.ctx(), field.id);
        }
        for path in if exists { completions(text) } else { Vec::new() } {
            if ui.link(&path).clicked() {
                *text = path;
            }
        }
        let more = match exists {
            true => "A session may also be named by its id or a process id.",
            false => "A file that is there is not replaced.",
        };
        ui.label(RichText::new(more).color(theme.faint()));
        ui.horizontal(|ui| {
            let name = if exists { "Open" } else { "Save" };
            if (ui.button(name).clicked() || entered) && !text.trim().is_empty() {
                said = Said::Path(expanded(text.trim()));
            }
            let browse = ui.button("Browse…").on_hover_text("the system's own dialog, where there is one");
            if browse.clicked() {
                said = Said::Browse;
            }
            if ui.button("Cancel").clicked() {
                said = Said::No;
            }
        });
    });
    if modal.should_close() { Said::No } else { said }
}

/// `~` is the home folder, as in a shell.
fn expanded(text: &str) -> PathBuf {
    match (text.strip_prefix("~/"), std::env::home_dir()) {
        (Some(rest), Some(home)) => home.join(rest),
        _ => PathBuf::from(text),
    }
}

/// Profiles and folders that begin like this, in the order of the alphabet.
fn completions(text: &str) -> Vec<String> {
    let (folder, begin) = match text.rfind('/') {
        Some(at) => (&text[..=at], &text[at + 1..]),
        None => ("", text),
    };
    let place = if folder.is_empty() { PathBuf::from(".") } else { expanded(folder) };
    let Ok(entries) = std::fs::read_dir(place) else { return Vec::new() };
    let name = |entry: std::fs::DirEntry| {
        let name = entry.file_name().into_string().ok()?;
        let is_folder = entry.path().is_dir();
        let fits = is_folder || Path::new(&name).extension().is_some_and(|ending| ending == "mscope");
        let shown = !name.starts_with('.') || begin.starts_with('.');
        (fits && shown && name.starts_with(begin))
            .then(|| format!("{folder}{name}{}", if is_folder { "/" } else { "" }))
    };
    let mut names: Vec<String> = entries.flatten().filter_map(name).collect();
    names.sort_unstable();
    names.truncate(COMPLETIONS);
    names
}

/// Draws the table of actions, and the keys of each view; false once it is closed.
fn shortcuts(context: &egui::Context, theme: &Theme, views: &[(&str, &[OwnKey])]) -> bool {
    let modal = Modal::new(egui::Id::unique("shortcuts")).show(context, |ui| {
        ui.heading("Shortcuts");
        ScrollArea::vertical().max_height(560.0).show(ui, |ui| {
            Grid::new("shortcuts").num_columns(3).striped(true).show(ui, |ui| {
                for row in TABLE {
                    let keys: Vec<String> = row.keys.iter().map(written).collect();
                    ui.label(RichText::new(keys.join(" or ")).monospace().color(theme.accent()));
                    ui.label(row.name);
                    ui.label(row.says);
                    ui.end_row();
                }
                for (title, keys) in views {
                    for OwnKey { key, says } in *keys {
                        let key = written(&KeyboardShortcut::new(Modifiers::NONE, *key));
                        ui.label(RichText::new(key).monospace().color(theme.accent()));
                        ui.label(*title);
                        ui.label(*says);
                        ui.end_row();
                    }
                }
            });
        });
        if !views.is_empty() {
            ui.label("A view reads its own keys while it has the keyboard: after a click in it, or Tab.");
        }
        ui.label("In the timeline: a click sets the cursor, a drag chooses a range, the wheel zooms,");
        ui.label("a drag with Shift or another button moves, and so does the wheel with Shift. So it is in other charts over time;");
        ui.label("in Memory over time the wheel with Alt looks closer at bytes, and a double click shows the life of an allocation.");
    });
    !modal.should_close()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the system's own dialog is told comes to the field; meanwhile the window's keys do nothing, and none of it outlives the
    /// question.
    #[test]
    fn the_systems_dialog_is_waited_for_as_long_as_a_path_is_asked_for() {
        let context = egui::Context::default();
        let mut app = App::default();
        let look = app.settings.look;
        let frame = |app: &mut App, key| {
            let pressed =
                egui::Event::Key { key, physical_key: None, pressed: true, repeat: false, modifiers: Modifiers::NONE };
            let input = egui::RawInput { events: vec![pressed], ..Default::default() };
            context.run_ui(input, |ui| app.frame(ui)).textures_delta.clear();
        };
        let (send, said) = std::sync::mpsc::channel();
        (app.dialog, app.browsing) = (Some(Dialog::Open("typed".into())), Some(Browsing { said }));
        frame(&mut app, Key::C);
        assert!(app.settings.look == look && app.browsing.is_some());
        send.send(Some("/a/chosen.mscope".into())).expect("it is waited for");
        frame(&mut app, Key::C);
        assert!(app.settings.look == look && app.browsing.is_none());
        assert_eq!(app.dialog, Some(Dialog::Open("/a/chosen.mscope".into())));

        let (send, said) = std::sync::mpsc::channel::<Option<PathBuf>>();
        app.browsing = Some(Browsing { said });
        drop(send);
        frame(&mut app, Key::C);
        assert!(app.browsing.is_none(), "whoever would have said it is gone");

        let (send, said) = std::sync::mpsc::channel();
        (app.dialog, app.browsing) = (None, Some(Browsing { said }));
        // The keyboard leaves a field that is gone; a key until then was meant for it.
        (0..3).for_each(|_| frame(&mut app, Key::F20));
        frame(&mut app, Key::C);
        assert!(app.settings.look != look, "no question, and keys act");
        assert!(send.send(Some("/a/late.mscope".into())).is_err(), "nobody waits");
    }

    #[test]
    fn profiles_and_folders_are_completed() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        for name in ["train.mscope", "train.log", "other.mscope"] {
            std::fs::write(folder.path().join(name), "").expect("written");
        }
        std::fs::create_dir(folder.path().join("train-old")).expect("a folder");
        let place = folder.path().display();
        assert_eq!(
            completions(&format!("{place}/tr")),
            [format!("{place}/train-old/"), format!("{place}/train.mscope")]
        );
        assert_eq!(completions("/no/such/folder/"), Vec::<String>::new());
    }
}
