//! What holds memory as a tree: an icicle by scope, or by lines of the program where those were recorded.
//!
//! Owns: which tree is asked for, and which part of it is looked at. Refuses: figures; they are core's.
//!
//! | file | what it does |
//! | --- | --- |
//! | choose | which tree, what it weighs, filter, search; the nodes around what is seen |
//! | scene | nodes as they lie, and which of them the selection is about |
//! | icicle | draws them |
//! | pointer | clicks, keys, hover |
//! | words | nodes and the tree in words |

mod choose;
mod icicle;
mod pointer;
mod scene;
mod words;

use eframe::egui::accesskit::Role;
use eframe::egui::{Id, Rect, ScrollArea, Sense, Ui, UiBuilder, WidgetInfo, vec2};
use memscope_core::explorer::{FlameBy, FlameQuery, FlameView, FlameWeight, Frame, Query};

use crate::shared::{Selection, Shared};
use crate::view::{OwnKey, View, ViewContext};

use icicle::{Icicle, ROW};
use scene::{Mark, Scene};

/// A node that is narrower than this, in points, is told together with its like.
const NARROW: f32 = 3.0;

/// What nodes weigh, as it is chosen: the range is the one that all views follow.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Weight {
    #[default]
    Cursor,
    Peak,
    Range,
}

/// The view.
#[derive(Default)]
pub struct Flame {
    by: FlameBy,
    weight: Weight,
    invert: bool,
    filter: String,
    search: String,
    zoom: Vec<Frame>,
    /// Where keys are.
    mark: Option<Mark>,
    /// How many nodes have room side by side.
    parts: usize,
    scene: Option<Scene>,
    /// What was selected before the last click.
    before: Selection,
    /// The tree, for the keyboard.
    canvas: Option<Id>,
    /// To be done in the next frame: focus the search, go to what it found, scroll to what is marked.
    to_search: bool,
    to_found: bool,
    follow: bool,
}

impl Flame {
    /// What is asked; `None` where a range is to be weighed and none is chosen.
    fn query(&self, shared: &Shared) -> Option<FlameQuery> {
        let weight = match self.weight {
            Weight::Cursor => FlameWeight::Cursor,
            Weight::Peak => FlameWeight::Peak,
            Weight::Range => shared.range.map(|range| FlameWeight::AllocatedIn(range.from()..range.until()))?,
        };
        Some(FlameQuery {
            by: self.by,
            weight,
            filter: self.filter.clone(),
            invert: self.invert,
            zoom: self.zoom.clone(),
            parts: self.parts.max(1),
            search: self.search.clone(),
        })
    }

    fn body(&mut self, ui: &mut Ui, context: &mut ViewContext<'_>) {
        let wanted = self.query(context.shared);
        let view = context.answer.flame.clone();
        let stale =
            |view: &FlameView| wanted.as_ref() != Some(&FlameQuery { parts: self.parts.max(1), ..view.query.clone() });
        self.choose(ui, context, wanted.is_some() && view.as_deref().is_none_or(stale));
        if wanted.is_none() {
            self.scene = None;
            ui.label("No range is chosen: drag over the timeline, or click one of its steps or phases.");
            return;
        }
        // Of another tree there is nothing that could be clicked.
        let same = |view: &FlameView| (view.query.by, view.query.invert) == (self.by, self.invert);
        let Some(view) = view.filter(|view| same(view)) else {
            self.scene = None;
            ui.weak("…");
            return;
        };
        let scene = Scene::of(self.scene.take(), context, &view);
        self.say(ui, context, &scene);
        self.parents(ui, &view);
        if let Some(reason) = words::without(&view) {
            ui.label(reason);
        }
        self.tree(ui, context, &scene);
        // Afterwards: the key that ends the search is not the tree's.
        self.go_to_found(ui, &scene);
        self.scene = Some(scene);
    }

    fn tree(&mut self, ui: &mut Ui, context: &mut ViewContext<'_>, scene: &Scene) {
        let marked = self.mark.as_ref().and_then(|mark| scene.find(mark));
        ScrollArea::vertical().id_salt("flame").auto_shrink(false).show(ui, |ui| {
            let size = vec2(ui.available_width(), (scene.rows() as f32 * ROW).max(ui.available_height()));
            let (rect, _) = ui.allocate_exact_size(size, Sense::hover());
            // Its own name: lines above it come and go, and it keeps the focus.
            let response = ui.interact(rect, ui.scope_id().with("tree"), Sense::click());
            response.widget_info(|| {
                let value = marked.map(|position| words::line(scene, position));
                let label = "Flame: what holds memory, as a tree";
                WidgetInfo { current_text_value: value, ..WidgetInfo::labeled(Role::Canvas, true, label) }
            });
            self.read_keys(ui, &response, context.shared, scene);
            self.parts = (rect.width() / NARROW).max(1.0) as usize;
            let icicle = Icicle { scene, rect };
            if std::mem::take(&mut self.follow)
                && let Some(marked) = marked
            {
                ui.scroll_to_rect(icicle.node(marked), None);
            }
            let pointer = ui.input(|input| input.pointer.hover_pos()).filter(|_| ui.rect_contains_pointer(rect));
            let pointed = pointer.and_then(|pointer| icicle.at(pointer.x, pointer.y));
            icicle.paint(ui.painter(), context, marked, pointed);
            self.pointer(ui, context, &response, &icicle, pointed);
            self.named(ui, context, &icicle, marked);
        });
    }

    fn pointer(
        &mut self,
        ui: &Ui,
        context: &mut ViewContext<'_>,
        response: &eframe::egui::Response,
        icicle: &Icicle<'_>,
        pointed: Option<usize>,
    ) {
        if let Some(position) = pointed.filter(|_| response.hovered()) {
            pointer::hover(response, context, icicle.scene, position);
        }
        let clicked = response.interact_pointer_pos().and_then(|pointer| icicle.at(pointer.x, pointer.y));
        if let Some(position) = clicked {
            self.act(ui, response, context.shared, icicle.scene, position);
        }
    }

    /// Gives names to the largest nodes, to the marked and to the selected ones.
    fn named(&mut self, ui: &Ui, context: &mut ViewContext<'_>, icicle: &Icicle<'_>, marked: Option<usize>) {
        let scene = icicle.scene;
        for position in scene.named(marked) {
            let mark = scene.mark(position);
            let id = ui.scope_id().with(("node", &mark.path, mark.together));
            // Reached with arrows, not one after the other with Tab.
            let response = ui.interact(icicle.node(position), id, Sense::CLICK);
            response.widget_info(|| {
                let selected = matches!(&scene.chosen, scene::Chosen::Nodes(nodes) if nodes.contains(&position));
                let line = words::line(scene, position);
                WidgetInfo { selected: Some(selected), ..WidgetInfo::labeled(Role::Button, true, line) }
            });
            self.act(ui, &response, context.shared, scene, position);
            if response.hovered() {
                pointer::hover(&response, context, scene, position);
            }
        }
    }
}

impl View for Flame {
    fn title(&self) -> &'static str {
        "Flame"
    }

    fn ask(&self, shared: &Shared, query: &mut Query) {
        query.flame = self.query(shared);
    }

    fn ui(&mut self, ui: &mut Ui, context: &mut ViewContext<'_>) {
        let rect = Rect::from_min_size(ui.cursor().min, ui.available_size().max(vec2(200.0, 120.0)));
        ui.painter().rect_filled(rect, 0.0, context.theme.ground());
        let inner = rect.shrink2(vec2(6.0, 2.0));
        ui.scope_builder(UiBuilder::new().max_rect(inner), |ui| self.body(ui, context));
        ui.advance_cursor_after_rect(rect);
    }

    fn text(&self, context: &ViewContext<'_>) -> String {
        match &context.answer.flame {
            Some(view) => words::text(context, view),
            None if self.query(context.shared).is_none() => "Flame: no range is chosen\n".to_owned(),
            None => "Flame: not known yet\n".to_owned(),
        }
    }

    fn search(&mut self) {
        self.to_search = true;
    }

    fn keys(&self) -> &'static [OwnKey] {
        pointer::KEYS
    }

    fn keyboard(&self) -> Option<Id> {
        self.canvas
    }
}
