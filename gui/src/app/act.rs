//! Does what an action says.
//!
//! Owns: what each action does, and when a key is one. Refuses: keys while text is typed, or something lies over the window.

use eframe::egui::{self, Event, Key, KeyboardShortcut};
use memscope_core::explorer::{At, Target};
use memscope_core::journal::entry::Nanoseconds;

use super::dialog::Dialog;
use super::{App, Tab};
use crate::action::{Action, TABLE};
use crate::document::out_of_memory;
use crate::shared::Selection;
use crate::view::{OwnKey, whole};

/// How far a key moves: this share of what is seen.
const PAN: f64 = 0.15;
const ZOOM: f64 = 0.7;
const NUDGE: f64 = 0.01;

impl App {
    /// Does what the keys of this frame ask for, one after the other. What is typed after a key that opens something is for what it
    /// opens: it waits for the next frame. What lies over the window keeps keys from it.
    pub(super) fn keys(&mut self, context: &egui::Context) {
        let waited = std::mem::take(&mut self.waiting);
        context.input_mut(|input| drop(input.events.splice(0..0, waited)));
        // A key that leaves a field (Escape, Enter) was meant for that field.
        if context.text_edit_focused() || (self.typing && self.dialog.is_none()) {
            return;
        }
        let own = self.own_keys(context);
        let mut from = 0;
        while let Some((action, next)) = self.next_action(own, from, context) {
            from = next;
            self.act(action, context);
            if matches!(action, Action::Open | Action::SaveSvg | Action::SavePng | Action::Shortcuts | Action::Search) {
                self.waiting = context.input_mut(|input| typed_after(&mut input.events, from));
                context.request_repaint();
                return;
            }
        }
    }

    /// The next action that a key asks for, from this event on, and where what follows begins. Its key is nobody else's.
    fn next_action(&self, own: &[OwnKey], from: usize, context: &egui::Context) -> Option<(Action, usize)> {
        let may = |action: &Action| match &self.dialog {
            None => true,
            // The sheet is closed by the key that opened it.
            Some(Dialog::Shortcuts) => matches!(action, Action::Shortcuts | Action::ClearSelection),
            Some(Dialog::Open(_) | Dialog::Save(..)) => *action == Action::ClearSelection,
        };
        context.input_mut(|input| {
            let asked = |at: usize| Some((action_of(&input.events[at], own).filter(may)?, at));
            let (action, at) = (from..input.events.len()).find_map(asked)?;
            input.events.remove(at);
            Some((action, at))
        })
    }

    /// Keys that the view that is shown reads itself at present.
    fn own_keys(&self, context: &egui::Context) -> &'static [OwnKey] {
        let view = self.tabs.get(self.shown).and_then(|tab| tab.pane.map(|pane| &tab.below[pane]));
        let has_keyboard = |id| context.memory(|memory| memory.has_focus(id));
        view.filter(|view| view.keyboard().is_some_and(has_keyboard)).map(|view| view.keys()).unwrap_or_default()
    }

    /// Does it.
    pub fn act(&mut self, action: Action, context: &egui::Context) {
        let now = context.input(|input| input.time);
        match action {
            Action::Open => self.ask_for_a_file(),
            Action::Close => self.close(self.shown),
            Action::NextTab if !self.tabs.is_empty() => self.shown = (self.shown + 1) % self.tabs.len(),
            Action::PreviousTab if !self.tabs.is_empty() => {
                self.shown = (self.shown + self.tabs.len() - 1) % self.tabs.len();
            }
            Action::CopyText => self.copy(context),
            Action::SaveSvg => self.save("svg"),
            Action::SavePng => self.save("png"),
            Action::Quit => context.send_viewport_cmd(egui::ViewportCommand::Close),
            Action::Theme => self.settings.look.next_ground(context.theme() == egui::Theme::Dark),
            Action::Palette => self.settings.look.colour_blind ^= true,
            Action::Larger => context.set_zoom_factor((context.zoom_factor() + 0.1).min(4.0)),
            Action::Smaller => context.set_zoom_factor((context.zoom_factor() - 0.1).max(0.4)),
            Action::Shortcuts => {
                self.dialog = match self.dialog {
                    Some(Dialog::Shortcuts) => None,
                    _ => Some(Dialog::Shortcuts),
                }
            }
            Action::ClearSelection if self.dialog.is_some() => self.dialog = None,
            action => {
                if let Some(tab) = self.tabs.get_mut(self.shown) {
                    tab.act(action, now);
                }
            }
        }
    }

    pub(super) fn close(&mut self, position: usize) {
        if position < self.tabs.len() {
            self.tabs.remove(position);
            if self.shown > position || self.shown == self.tabs.len() {
                self.shown = self.shown.saturating_sub(1);
            }
        }
    }
}

/// What a key that is pressed asks for; nothing where the view has that key.
fn action_of(event: &Event, own: &[OwnKey]) -> Option<Action> {
    let Event::Key { key: pressed, pressed: true, modifiers, .. } = event else { return None };
    let asks = |key: &KeyboardShortcut| {
        // Shift is part of the sign on many keyboards.
        let sign = matches!(key.logical_key, Key::Questionmark | Key::Slash);
        let is_own = key.modifiers.is_none() && own.iter().any(|own| own.key == key.logical_key);
        key.logical_key == *pressed && !is_own && (sign || modifiers.matches_logically(key.modifiers))
    };
    // Those with more modifiers first: Ctrl+Shift+E is not Ctrl+E.
    let rows = |shifted: bool| {
        let fits = move |key: &&KeyboardShortcut| key.modifiers.shift == shifted && asks(key);
        TABLE.iter().find(|row| row.keys.iter().any(|key| fits(&key)))
    };
    [true, false].into_iter().find_map(rows).map(|row| row.action)
}

/// Takes out what was typed from this event on, but not the sign of the key before it.
fn typed_after(events: &mut Vec<Event>, from: usize) -> Vec<Event> {
    let is_typed = |event: &Event| {
        matches!(event, Event::Key { .. } | Event::Text(_) | Event::Ime(_) | Event::Paste(_) | Event::Copy | Event::Cut)
    };
    let from = from + usize::from(matches!(events.get(from), Some(Event::Text(_))));
    let after = events.split_off(from.min(events.len()));
    let (typed, others) = after.into_iter().partition(is_typed);
    events.extend::<Vec<Event>>(others);
    typed
}

impl Tab {
    fn act(&mut self, action: Action, now: f64) {
        let answer = std::sync::Arc::clone(self.document.answer());
        let shared = &mut self.document.shared;
        let whole = whole(&answer);
        let seen = shared.zoom.seen(whole);
        let cursor = shared.cursor.time().unwrap_or(answer.now.state.time).0;
        let share = if seen.contains(cursor) { seen.share(cursor) } else { 0.5 };
        match action {
            Action::GoPeak => shared.cursor = At::Peak,
            Action::GoEnd => shared.cursor = At::Live,
            Action::GoListed => answer.nearest_listed().into_iter().for_each(|time| shared.cursor = At::Time(time)),
            Action::GoOom => {
                if let Some(gravest) = &answer.gravest {
                    (shared.cursor, shared.target) = out_of_memory(&answer, gravest);
                }
            }
            Action::StepBack | Action::StepForward => {
                if let Some(next) = answer.step_beside(shared.cursor, action == Action::StepForward) {
                    shared.cursor = next;
                }
            }
            Action::CursorBack => {
                let by = (seen.length() as f64 * NUDGE).ceil() as u64;
                shared.cursor = At::Time(Nanoseconds(cursor.saturating_sub(by)));
            }
            Action::CursorForward => {
                let by = (seen.length() as f64 * NUDGE).ceil() as u64;
                shared.cursor = At::Time(Nanoseconds(cursor.saturating_add(by).min(whole.end)));
            }
            Action::ZoomIn => shared.zoom.show(seen.scaled(share, ZOOM, whole), whole, now),
            Action::ZoomOut => shared.zoom.show(seen.scaled(share, 1.0 / ZOOM, whole), whole, now),
            Action::ZoomAll => shared.zoom.show_all(now),
            Action::ZoomRange => {
                if let Some(range) = shared.range {
                    shared.zoom.show(range, whole, now);
                }
            }
            Action::PanBack => shared.zoom.show(seen.moved(-PAN, whole), whole, now),
            Action::PanForward => shared.zoom.show(seen.moved(PAN, whole), whole, now),
            Action::UndoZoom => drop(shared.zoom.undo()),
            Action::RedoZoom => drop(shared.zoom.redo()),
            Action::ClearRange => shared.range = None,
            Action::ClearSelection => shared.selection = Selection::None,
            Action::Search => {
                if let Some(view) = self.pane.and_then(|pane| self.below.get_mut(pane)) {
                    view.search();
                }
            }
            // Host memory is all that there is.
            Action::NextTarget if answer.of_host && shared.target == Target::All => {}
            Action::NextTarget => {
                let (devices, processes) = (answer.devices.len(), answer.processes.len());
                shared.target = next_target(shared.target, devices, processes, answer.has_host);
            }
            Action::Pane(pane) => {
                self.pane = usize::from(pane).checked_sub(1).filter(|pane| *pane < self.below.len());
            }
            _ => {}
        }
    }
}

/// All, then each device, then each process, then host memory beside device memory; one alone is all.
fn next_target(target: Target, devices: usize, processes: usize, host: bool) -> Target {
    let process = |position: usize| match processes {
        2.. if position < processes => Target::Process(position as u32),
        _ if host => Target::Host,
        _ => Target::All,
    };
    let device = |position: usize| match devices {
        2.. if position < devices => Target::Device(position as u16),
        _ => process(0),
    };
    match target {
        Target::All => device(0),
        Target::Device(position) => device(usize::from(position) + 1),
        Target::Process(position) => process(position as usize + 1),
        Target::Host => Target::All,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_come_one_after_the_other() {
        let mut seen = vec![Target::All];
        loop {
            let next = next_target(seen[seen.len() - 1], 2, 2, true);
            if next == Target::All {
                break;
            }
            seen.push(next);
        }
        let (device, process) = (Target::Device, Target::Process);
        assert_eq!(seen, [Target::All, device(0), device(1), process(0), process(1), Target::Host]);
        assert_eq!(next_target(Target::All, 1, 1, false), Target::All);
    }
}
