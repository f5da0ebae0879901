//! The tree of scopes as an icicle: a node lies below the one that it is inside of, as wide as its bytes.
//!
//! Owns: where nodes lie. Refuses: which moment's bytes they are.

use memscope_core::explorer::{STACKED, ScopeNode};
use memscope_core::report::units;
use ratatui::layout::{Position, Rect};
use ratatui::style::{Color, Modifier, Style};

use crate::canvas::Canvas;
use crate::words::columns;

/// A node in its place: position among the nodes, and cells.
type Place = (usize, Rect);

fn bytes(node: &ScopeNode) -> u64 {
    node.now.iter().fold(0, |sum, bytes| sum.saturating_add(*bytes))
}

/// Where the nodes lie that are wide enough to be seen, parents first.
pub fn places(nodes: &[ScopeNode], area: Rect) -> Vec<Place> {
    let mut places: Vec<Place> = Vec::new();
    if area.is_empty() || nodes.first().is_none_or(|root| bytes(root) == 0) {
        return places;
    }
    // Levels are as high as all of them fit, and no higher than is pleasant.
    let levels = nodes.iter().map(|node| node.depth).max().unwrap_or(0) as u16;
    let high = (area.height / levels.saturating_add(1)).clamp(1, 3);
    places.push((0, Rect { height: high.min(area.height), ..area }));
    let mut done = 0;
    // Breadth first: what lies inside a node is laid out when the node has its place.
    while let Some((parent, place)) = places.get(done).copied() {
        done += 1;
        if place.bottom() + high > area.bottom() {
            continue;
        }
        let (whole, end) = (bytes(&nodes[parent]).max(1), parent + nodes[parent].inside);
        let (mut child, mut sum) = (parent + 1, 0u64);
        while child <= end && child < nodes.len() {
            let edge = |sum: u64| {
                (u128::from(sum) * u128::from(place.width) * 2 + u128::from(whole)) / (2 * u128::from(whole))
            };
            let (from, to) = (edge(sum) as u16, edge(sum.saturating_add(bytes(&nodes[child]))) as u16);
            sum = sum.saturating_add(bytes(&nodes[child]));
            let (from, to) = (from.min(place.width), to.min(place.width));
            if to > from {
                places.push((child, Rect::new(place.x + from, place.bottom(), to - from, high)));
            }
            child += nodes[child].inside + 1;
        }
    }
    places
}

/// The node that is drawn there.
pub fn node_at(nodes: &[ScopeNode], area: Rect, at: Position) -> Option<usize> {
    places(nodes, area).into_iter().find(|(_, place)| place.contains(at)).map(|(node, _)| node)
}

/// Draws the icicle; a node has the colour of the category that it holds most of.
pub fn draw(
    canvas: &mut Canvas,
    nodes: &[ScopeNode],
    area: Rect,
    selected: Option<usize>,
    hit: impl Fn(&ScopeNode) -> bool,
) {
    let coarse = canvas.glyphs.ascii || canvas.palette.mono();
    for (position, place) in places(nodes, area) {
        let node = &nodes[position];
        let most = STACKED.into_iter().max_by_key(|category| (node.now[*category as usize], *category as usize == 1));
        let most = most.unwrap_or_default();
        let colour = canvas.palette.category(most);
        let mut style = if coarse {
            Style::new().add_modifier(Modifier::REVERSED)
        } else {
            Style::new().fg(Color::Black).bg(colour)
        };
        if Some(position) == selected {
            style = if coarse { Style::new() } else { Style::new().fg(colour).bg(Color::Reset) };
            style =
                style.patch(if coarse { Style::new() } else { canvas.palette.selected() }).add_modifier(Modifier::BOLD);
        } else if hit(node) {
            style = style.add_modifier(Modifier::BOLD | Modifier::UNDERLINED);
        }
        // The last column stays free, so that neighbours can be told apart.
        let inner = if place.width > 1 { Rect { width: place.width - 1, ..place } } else { place };
        canvas.dress(inner, style);
        let name = if node.depth == 0 { "total" } else { &node.name };
        let figure = units::bytes(bytes(node));
        let room = usize::from(inner.width);
        if room >= columns(name) + columns(&figure) + 3 {
            let text = format!(" {name} {figure}");
            canvas.text(inner.x, inner.y, inner.width, &text, style);
        } else if room >= 3 {
            canvas.fitted(inner.x, inner.y, inner.width, name, style);
            if inner.height > 1 && columns(&figure) <= room {
                canvas.text(inner.x, inner.y + 1, inner.width, &figure, style);
            }
        } else if coarse {
            canvas.text(inner.x, inner.y, inner.width, "||", style);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(depth: u32, inside: usize, weights: u64) -> ScopeNode {
        let mut now = [0; 7];
        now[1] = weights;
        ScopeNode { depth, inside, now, ..ScopeNode::default() }
    }

    #[test]
    fn children_lie_below_and_are_as_wide_as_their_bytes() {
        let nodes = [node(0, 3, 100), node(1, 1, 50), node(2, 0, 25), node(1, 0, 40)];
        // Three levels in four lines: one line each.
        let area = Rect::new(2, 1, 20, 4);
        let places = places(&nodes, area);
        let flat: Vec<_> = places.iter().map(|(node, place)| (*node, place.x, place.y, place.width)).collect();
        assert_eq!(flat, [(0, 2, 1, 20), (1, 2, 2, 10), (3, 12, 2, 8), (2, 2, 3, 5)]);
        assert_eq!(node_at(&nodes, area, Position::new(13, 2)), Some(3));
        assert_eq!(node_at(&nodes, area, Position::new(21, 2)), None, "the root's own bytes");
    }

    #[test]
    fn what_is_too_narrow_or_too_deep_is_left_out() {
        let nodes = [node(0, 2, 1000), node(1, 1, 1), node(2, 0, 1)];
        assert_eq!(places(&nodes, Rect::new(0, 0, 20, 5)).len(), 1);
        assert_eq!(places(&nodes[..1], Rect::new(0, 0, 0, 0)).len(), 0);
        assert_eq!(places(&[], Rect::new(0, 0, 9, 9)).len(), 0);
    }
}
