//! The stacked area: categories, above them rounding and cached, and above those what the device holds besides.
//!
//! Owns: the order and colours of the layers. Refuses: the choice of figures (`columns`).

use eframe::egui::{Color32, Mesh, Painter, Rect, Shape, pos2};
use memscope_core::colours::Foreign;
use memscope_core::explorer::STACKED;

use super::columns::Run;
use super::{Chart, Scale};
use crate::view::ViewContext;

const FOREIGN: [Foreign; 4] = [Foreign::Unexplained, Foreign::Others, Foreign::Firmware, Foreign::Unowned];

/// Draws it: a mesh a layer, so that a picture has one path for each.
pub fn draw(painter: &Painter, context: &ViewContext<'_>, chart: &Chart, scale: &Scale, runs: &[Run]) {
    let painter = painter.with_clip_rect(chart.rect);
    for mesh in layers(context, chart, scale, runs) {
        painter.add(Shape::mesh(mesh));
    }
}

fn layers(context: &ViewContext<'_>, chart: &Chart, scale: &Scale, runs: &[Run]) -> Vec<Mesh> {
    let theme = &context.theme;
    let mut colours: Vec<Color32> = Vec::new();
    for category in STACKED {
        let colour = theme.category(category);
        colours.push(if context.shared.dims(category) { theme.dimmed(colour) } else { colour });
    }
    colours.extend([theme.rounding(), theme.cached()]);
    // Fainter: none of the program's allocations.
    colours.extend(FOREIGN.map(|what| theme.foreign(what).lerp_to_gamma(theme.ground(), 0.45)));
    let mut meshes: Vec<Mesh> = colours.iter().map(|_| Mesh::default()).collect();
    for run in runs {
        let (mut below, mut bottom) = (0u64, chart.rect.bottom());
        let rows = &run.column.rows;
        let idle =
            run.column.reserved.max(rows.reserved).saturating_sub(rows.live_bytes()).saturating_sub(rows.rounding);
        let live = STACKED.iter().map(|category| rows.live[*category as usize]);
        let layers = live.chain([rows.rounding, idle]).chain(run.column.foreign);
        for ((bytes, colour), mesh) in layers.zip(&colours).zip(&mut meshes) {
            if bytes == 0 {
                continue;
            }
            below = below.saturating_add(bytes);
            let top = scale.y(chart, below as f64);
            mesh.add_colored_rect(Rect::from_min_max(pos2(run.left, top), pos2(run.right, bottom)), *colour);
            bottom = top;
        }
    }
    meshes.retain(|mesh| !mesh.is_empty());
    meshes
}
