//! The tree: a row a depth, the root above, a node as wide as its bytes.
//!
//! Owns: where a node is drawn, its colour, its label. Refuses: labels that would overlap: a name that does not fit is cut, and left
//! away where nothing of it could be read.

use std::sync::Arc;

use eframe::egui::text::LayoutJob;
use eframe::egui::{Color32, FontId, Galley, Mesh, Painter, Rect, Shape, Stroke, StrokeKind, pos2, vec2};
use memscope_core::explorer::STACKED;
use memscope_core::report::units;

use super::scene::{Chosen, Scene};
use super::words;
use crate::panels;
use crate::view::ViewContext;

/// Height of a row.
pub const ROW: f32 = 21.0;
/// Of that, what shows the categories of a node that has several.
const MIX: f32 = 4.0;
/// A node that is narrower than this has no label.
const LABELLED: f32 = 30.0;
/// Space around a label.
const PAD: f32 = 4.0;

/// The tree on the screen.
pub struct Icicle<'a> {
    pub scene: &'a Scene,
    /// All of it, also what is scrolled out of sight.
    pub rect: Rect,
}

impl Icicle<'_> {
    /// Where a node is; at least a pixel wide.
    pub fn node(&self, position: usize) -> Rect {
        let (left, right) = self.scene.sides(position);
        let x = |share: f64| self.rect.left() + (share * f64::from(self.rect.width())) as f32;
        let top = self.rect.top() + self.scene.row(position) as f32 * ROW;
        Rect::from_min_max(pos2(x(left), top), pos2(x(right).max(x(left) + 1.0), top + ROW))
    }

    /// The node that is there.
    pub fn at(&self, x: f32, y: f32) -> Option<usize> {
        if !self.rect.contains(pos2(x, y)) {
            return None;
        }
        let share = f64::from(x - self.rect.left()) / f64::from(self.rect.width().max(1.0));
        self.scene.at(((y - self.rect.top()) / ROW) as usize, share)
    }

    /// Draws what is seen of it.
    pub fn paint(&self, painter: &Painter, context: &ViewContext<'_>, marked: Option<usize>, pointed: Option<usize>) {
        let (view, clip) = (&self.scene.view, painter.clip_rect());
        let seen = |position: &usize| self.node(*position).intersects(clip);
        let seen: Vec<usize> = (view.zoomed..view.nodes.len()).filter(seen).collect();
        let mut meshes = Meshes::default();
        let mut labels = Vec::new();
        for position in seen {
            let full = self.node(position);
            // A gap between neighbours, where there is room for one.
            let gap = if full.width() > 4.0 { 1.0 } else { 0.0 };
            let rect = full.with_max_x(full.right() - gap).with_max_y(full.bottom() - 1.0);
            let colour = self.colour(context, position);
            meshes.add(rect, colour);
            self.mix(&mut meshes, context, position, rect);
            if rect.width() >= LABELLED {
                labels.push((position, rect, context.theme.on(colour)));
            }
        }
        meshes.paint(painter);
        for (position, rect, ink) in labels {
            self.label(painter, context, position, rect, ink);
        }
        let frame = |position: usize, width: f32, colour: Color32| {
            let rect = self.node(position);
            let rect = Rect::from_center_size(rect.center(), vec2(rect.width().max(4.0), rect.height()));
            painter.rect_stroke(rect, 0.0, Stroke::new(width, colour), StrokeKind::Inside);
        };
        if let Some(pointed) = pointed {
            frame(pointed, 1.0, context.theme.text());
        }
        if let Some(marked) = marked {
            frame(marked, 2.0, context.theme.accent());
        }
        let drawn = |position: &&usize| **position >= view.zoomed;
        match &self.scene.chosen {
            Chosen::Nodes(nodes) => {
                nodes.iter().filter(drawn).for_each(|position| frame(*position, 2.0, context.theme.text()));
            }
            Chosen::Among(position) => frame(*position, 2.0, context.theme.text()),
            Chosen::Nothing | Chosen::Nowhere => {}
        }
    }

    /// The colour of the category that holds most of it; fainter where something else is meant.
    fn colour(&self, context: &ViewContext<'_>, position: usize) -> Color32 {
        let (theme, node) = (&context.theme, &self.scene.view.nodes[position]);
        let Some((category, _)) = panels::largest(&node.live) else { return theme.grid() };
        let colour = theme.category(category);
        let colour = if node.merged > 0 { colour.lerp_to_gamma(theme.ground(), 0.4) } else { colour };
        let meant = self.meant(position) && !context.shared.dims(category);
        if meant { colour } else { theme.dimmed(colour) }
    }

    /// True for what is looked for or, where nothing is, for what is selected.
    fn meant(&self, position: usize) -> bool {
        let view = &self.scene.view;
        let node = &view.nodes[position];
        match view.query.search.trim().is_empty() {
            // In and under a node that matches; what is around it holds other things, too.
            false => node.found > 0 && (node.matches || node.found == node.bytes()),
            true => self.scene.lit(position),
        }
    }

    /// The categories of a node that has several, by their shares, along its lower edge.
    fn mix(&self, meshes: &mut Meshes, context: &ViewContext<'_>, position: usize, rect: Rect) {
        let node = &self.scene.view.nodes[position];
        let held = STACKED.iter().map(|category| (*category, node.live[*category as usize]));
        let held: Vec<_> = held.filter(|(_, bytes)| *bytes > 0).collect();
        if held.len() < 2 || rect.width() < 6.0 {
            return;
        }
        let theme = &context.theme;
        let (whole, meant) = (node.bytes().max(1) as f32, self.meant(position));
        let line = rect.with_min_y(rect.bottom() - MIX);
        meshes.add(line.with_max_y(line.top() + 1.0), theme.ground());
        let mut left = line.left();
        for (category, bytes) in held {
            let right = (left + bytes as f32 / whole * line.width()).min(line.right());
            let colour = theme.category(category);
            let colour = if meant && !context.shared.dims(category) { colour } else { theme.dimmed(colour) };
            meshes.add(Rect::from_min_max(pos2(left, line.top() + 1.0), pos2(right, line.bottom())), colour);
            left = right;
        }
    }

    /// Name, and bytes where there is room for both.
    fn label(&self, painter: &Painter, context: &ViewContext<'_>, position: usize, rect: Rect, ink: Color32) {
        let view = &self.scene.view;
        let text = match position {
            0 => panels::moment::part(context.answer),
            _ => words::short(view, position),
        };
        // What is scrolled sideways or cut by the window keeps its name.
        let room = rect.width() - 2.0 * PAD;
        let mut name = cut(painter, text, room, ink);
        if let Some(brief) = words::brief(view, position).filter(|_| name.elided) {
            name = cut(painter, brief, room, ink);
        }
        let y = |galley: &Galley| rect.top() + (ROW - MIX - galley.size().y) / 2.0;
        let used = name.size().x;
        if !name.elided {
            let bytes = painter.layout_no_wrap(
                units::bytes(view.nodes[position].bytes()),
                FontId::proportional(11.0),
                ink.gamma_multiply(0.85),
            );
            if used + bytes.size().x + 3.0 * PAD <= room {
                let at = pos2(rect.right() - PAD - bytes.size().x, y(&bytes));
                painter.galley(at, bytes, ink);
            }
        }
        let at = pos2(rect.left() + PAD, y(&name));
        painter.galley(at, name, ink);
    }
}

/// A name in one line, with an ellipsis where it is too long.
fn cut(painter: &Painter, text: String, room: f32, ink: Color32) -> Arc<Galley> {
    let mut job = LayoutJob::simple_singleline(text, FontId::proportional(12.0), ink);
    job.wrap.max_width = room;
    job.wrap.max_rows = 1;
    job.wrap.break_anywhere = true;
    painter.layout_job(job)
}

/// One mesh a colour: each becomes one path of an SVG.
#[derive(Default)]
struct Meshes(Vec<(Color32, Mesh)>);

impl Meshes {
    fn add(&mut self, rect: Rect, colour: Color32) {
        let mesh = match self.0.iter_mut().find(|(known, _)| *known == colour) {
            Some((_, mesh)) => mesh,
            None => {
                self.0.push((colour, Mesh::default()));
                let last = self.0.len() - 1;
                &mut self.0[last].1
            }
        };
        mesh.add_colored_rect(rect, colour);
    }

    fn paint(self, painter: &Painter) {
        painter.extend(self.0.into_iter().map(|(_, mesh)| Shape::mesh(mesh)));
    }
}
