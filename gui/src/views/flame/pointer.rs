//! What pointer and keys do in the tree.
//!
//! Owns: the node that is marked, and how one goes in and out. Refuses: arrows while the tree has no keyboard: they are those of time.

use std::cmp::Reverse;

use eframe::egui::{EventFilter, Key, Response, Ui};

use super::scene::{Mark, Scene};
use super::{Flame, words};
use crate::panels;
use crate::shared::{Selection, Shared};
use crate::theme::Theme;
use crate::view::{OwnKey, ViewContext};

/// What keys do.
pub const KEYS: &[OwnKey] = &[
    OwnKey { key: Key::ArrowUp, says: "marks the node around; at the uppermost, looks at what is around that" },
    OwnKey { key: Key::ArrowDown, says: "marks the largest node inside" },
    OwnKey { key: Key::ArrowLeft, says: "marks the node before" },
    OwnKey { key: Key::ArrowRight, says: "marks the next node" },
    OwnKey { key: Key::Enter, says: "looks at the marked node alone" },
    OwnKey { key: Key::Space, says: "selects the scope of the marked node everywhere" },
    OwnKey { key: Key::Backspace, says: "looks at the node around, without the keyboard too" },
    OwnKey { key: Key::Escape, says: "looks at the node around; at the root, selects nothing and leaves the tree" },
];

impl Flame {
    /// A click marks a node and selects its scope everywhere; a double click looks at it alone.
    pub(super) fn act(&mut self, ui: &Ui, response: &Response, shared: &mut Shared, scene: &Scene, position: usize) {
        if response.double_clicked() {
            // Looking closer is no selection: that of the first click is taken back.
            shared.selection = std::mem::take(&mut self.before);
            self.look_at(scene, position);
        } else if response.clicked() && !response.triple_clicked() {
            self.before = shared.selection.clone();
            self.mark = Some(scene.mark(position));
            select(shared, scene, position);
            if let Some(canvas) = self.canvas {
                ui.memory_mut(|memory| memory.request_focus(canvas));
            }
        }
    }

    /// Looks at a node alone; at the one around it, where it is looked at already.
    fn look_at(&mut self, scene: &Scene, position: usize) {
        if position == scene.view.zoomed {
            return self.out();
        }
        self.zoom = scene.view.zoom_to(position);
        self.mark = Some(Mark { path: self.zoom.clone(), together: false });
    }

    /// Acts on keys: those of the tree while it has the keyboard, the others while no text is typed.
    pub(super) fn read_keys(&mut self, ui: &Ui, response: &Response, shared: &mut Shared, scene: &Scene) {
        self.canvas = Some(response.id);
        let filter = EventFilter { horizontal_arrows: true, vertical_arrows: true, escape: true, tab: false };
        ui.memory_mut(|memory| memory.set_focus_lock_filter(response.id, filter));
        if ui.ctx().text_edit_focused() {
            return;
        }
        let pressed = |key| ui.input(|input| input.modifiers.is_none() && input.key_pressed(key));
        if pressed(Key::Backspace) {
            self.out();
        }
        if response.has_focus() {
            self.walk(ui, response, shared, scene);
        }
    }

    /// Looks at the node around.
    fn out(&mut self) {
        if let Some(inner) = self.zoom.pop() {
            // Where one was stays marked.
            let path = self.zoom.iter().copied().chain([inner]).collect();
            self.mark = Some(Mark { path, together: false });
        }
    }

    fn walk(&mut self, ui: &Ui, response: &Response, shared: &mut Shared, scene: &Scene) {
        let pressed = |key| ui.input(|input| input.modifiers.is_none() && input.key_pressed(key));
        let at = self.mark.as_ref().and_then(|mark| scene.find(mark));
        let here = at.unwrap_or(scene.view.zoomed);
        let (before, after) = scene.beside(here);
        let moves = [
            (Key::ArrowUp, Some(scene.parent(here)).filter(|_| here != scene.view.zoomed)),
            (Key::ArrowDown, at.map_or(Some(here), |at| scene.view.children(at).next())),
            (Key::ArrowLeft, before),
            (Key::ArrowRight, after),
        ];
        for (_, to) in moves.into_iter().filter(|(key, _)| pressed(*key)) {
            self.mark = Some(scene.mark(to.unwrap_or(here)));
            self.follow = true;
        }
        if pressed(Key::ArrowUp) && here == scene.view.zoomed {
            self.out();
        }
        if pressed(Key::Enter) {
            self.look_at(scene, here);
        }
        if pressed(Key::Space) && at.is_some() {
            select(shared, scene, here);
        }
        if pressed(Key::Escape) {
            if self.zoom.is_empty() {
                shared.selection = Selection::None;
                response.surrender_focus();
            }
            self.out();
        }
    }

    /// Enter in the field marks the largest node that is found.
    pub(super) fn go_to_found(&mut self, ui: &Ui, scene: &Scene) {
        if !std::mem::take(&mut self.to_found) {
            return;
        }
        let view = &scene.view;
        let matching = (view.zoomed..view.nodes.len()).filter(|position| view.nodes[*position].matches);
        if let Some(found) = matching.min_by_key(|position| Reverse(view.nodes[*position].bytes())) {
            self.mark = Some(scene.mark(found));
            self.follow = true;
            if let Some(canvas) = self.canvas {
                ui.memory_mut(|memory| memory.request_focus(canvas));
            }
        }
    }
}

/// Selects the scope of a node everywhere; a node that is not one scope alone selects nothing.
fn select(shared: &mut Shared, scene: &Scene, position: usize) {
    if let Some(path) = &scene.view.nodes[position].scope {
        shared.toggle(Selection::Scope(path.clone()));
    }
}

/// Says what is under the pointer.
pub fn hover(response: &Response, context: &ViewContext<'_>, scene: &Scene, position: usize) {
    let theme: &Theme = &context.theme;
    response.clone().on_hover_ui_at_pointer(|ui| {
        ui.strong(words::name(scene, position));
        for fact in words::facts(scene, position) {
            ui.label(fact);
        }
        panels::categories(ui, theme, &scene.view.nodes[position].live);
        let selects = if scene.view.nodes[position].scope.is_some() { "click selects it; " } else { "" };
        ui.weak(match position == scene.view.zoomed {
            true if position == 0 => "double click on a node looks at it alone".to_owned(),
            true => format!("{selects}double click goes back to what is around it"),
            false => format!("{selects}double click looks at it alone"),
        });
    });
}
