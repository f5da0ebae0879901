//! Nodes and the tree in words: for labels, for the pointer, for whoever hears the window, and as text.
//!
//! Owns: the words. Refuses: to name what has no name of its own.

use std::fmt::Write as _;

use memscope_core::explorer::{FlameBy, FlameView, FlameWeight};
use memscope_core::report::units;

use super::scene::Scene;
use crate::panels;
use crate::view::ViewContext;

/// A tree that is older than this, in nanoseconds, says so.
const LATE: u64 = 1_000_000_000;

/// A node in a word or two, as it stands in the tree.
pub fn short(view: &FlameView, position: usize) -> String {
    let node = &view.nodes[position];
    match (node.merged, position) {
        (0, 0) => "all".to_owned(),
        (0, _) => node.label.clone(),
        (merged, _) => format!("{} smaller", units::grouped(merged)),
    }
}

/// A line of the program without the folders of its file, where its name has some.
pub fn brief(view: &FlameView, position: usize) -> Option<String> {
    let label = &view.nodes[position].label;
    let place = label.split(" in ").next().filter(|_| view.query.by == FlameBy::Stack)?;
    place.rfind('/').map(|slash| label[slash + 1..].to_owned())
}

/// Its full name.
pub fn name(scene: &Scene, position: usize) -> String {
    let view = &scene.view;
    let node = &view.nodes[position];
    let parent = || match scene.parent(position) {
        0 => String::new(),
        around => format!(" in {}", name(scene, around)),
    };
    match (node.merged, &node.scope) {
        (0, Some(path)) => path.clone(),
        (0, None) => short(view, position),
        _ => format!("{}{}", short(view, position), parent()),
    }
}

fn share(part: u64, whole: u64) -> String {
    format!("{:.1} %", units::share(part, whole))
}

/// A node in a line.
pub fn line(scene: &Scene, position: usize) -> String {
    let (view, node) = (&scene.view, &scene.view.nodes[position]);
    let of_all = share(node.bytes(), view.whole());
    format!("{}, {}, {of_all} of all", name(scene, position), units::bytes(node.bytes()))
}

/// What is known of a node, line by line, its name apart.
pub fn facts(scene: &Scene, position: usize) -> Vec<String> {
    let (view, node) = (&scene.view, &scene.view.nodes[position]);
    let parent = &view.nodes[scene.parent(position)];
    let mut facts = vec![format!(
        "{} in {}",
        units::exact(node.bytes()),
        units::count(node.allocations, "allocation", "allocations")
    )];
    if position > 0 {
        let mut shares = format!("{} of all", share(node.bytes(), view.whole()));
        if scene.parent(position) > 0 {
            let around = name(scene, scene.parent(position));
            let _ = write!(shares, ", {} of {around}", share(node.bytes(), parent.bytes()));
        }
        facts.push(shares);
    }
    if node.merged > 0 {
        facts.push("each too narrow here: zoom in, or filter".to_owned());
    } else {
        facts.push(format!("{} {}", units::exact(node.own), own(view, position)));
    }
    if !view.query.search.trim().is_empty() {
        facts.push(format!("{} of it found", units::exact(node.found)));
    }
    facts
}

/// What a node's own bytes are.
fn own(view: &FlameView, position: usize) -> &'static str {
    match (view.query.by, position, view.query.invert) {
        (FlameBy::Scope, 0, _) => "outside all scopes",
        (FlameBy::Stack, 0, _) => "without a line that is known",
        (FlameBy::Scope, _, false) => "of its own, outside the scopes in it",
        (FlameBy::Stack, _, false) => "made at this line itself",
        (_, _, true) => "with nothing further out",
    }
}

/// All of the tree in a line: how much, and of when.
pub fn summary(context: &ViewContext<'_>, view: &FlameView) -> String {
    let (answer, all) = (context.answer, &view.nodes[0]);
    let bytes = view.partial.map_or_else(|| units::bytes(all.bytes()), |partial| partial.covers());
    let count = units::count(all.allocations, "allocation", "allocations");
    // A list of allocations has both.
    let count = format!("{count} of {} memory", if answer.of_host { "host" } else { "device" });
    match &view.query.weight {
        FlameWeight::Cursor => {
            // Of a running session a large tree is made anew less often than the figures beside it.
            let late = view.as_of.0 + LATE < answer.now.state.time.0;
            let as_of = if late { format!(" (the tree as at {})", panels::time(view.as_of.0)) } else { String::new() };
            format!("{bytes} live in {count}: {}{as_of}", panels::moment::place(answer))
        }
        FlameWeight::Peak => match &answer.peak {
            Some(peak) => format!("{bytes} live in {count}: peak, at {}", panels::time(peak.state.time.0)),
            None => "there is no peak yet".to_owned(),
        },
        FlameWeight::AllocatedIn(range) => format!(
            "{bytes} allocated in {count}, from {} to {} ({}), freed since or not",
            panels::time(range.start.0),
            panels::time(range.end.0),
            panels::length(range.end.0.saturating_sub(range.start.0))
        ),
    }
}

/// What a search found; `None` where nothing is looked for.
pub fn found(view: &FlameView) -> Option<String> {
    (!view.query.search.trim().is_empty()).then(|| {
        format!(
            "found {} of {}, {}",
            units::bytes(view.found),
            units::bytes(view.nodes[0].bytes()),
            units::count(view.found_allocations, "allocation", "allocations")
        )
    })
}

/// Why there is nothing to see, and what to do; `None` where there is something.
pub fn without(view: &FlameView) -> Option<&'static str> {
    let query = &view.query;
    match (view.nodes[0].allocations, &query.weight) {
        (0, _) if !query.filter.trim().is_empty() && view.filter_error.is_none() => {
            Some("No allocation passes the filter.")
        }
        (0, _) if view.partial.is_some() => Some("No allocation of this moment is kept."),
        (0, FlameWeight::AllocatedIn(_)) => Some("Nothing was allocated in this range: choose a longer one."),
        (0, _) => Some("Nothing lives at this moment: P goes to the peak."),
        _ if !view.recorded && query.by == FlameBy::Scope => Some(
            "No scopes were recorded, so that all is in one. Modules of PyTorch become scopes by themselves under memscope run; \
             other programs tell their own with memscope.h or the Rust client.",
        ),
        _ => None,
    }
}

/// The tree as text, to the byte.
pub fn text(context: &ViewContext<'_>, view: &FlameView) -> String {
    let query = &view.query;
    let by = if query.by == FlameBy::Scope { "scope" } else { "line of the program" };
    let inverted = if query.invert { ", the innermost first" } else { "" };
    let mut text = format!("Flame by {by}{inverted}: {}\n", summary(context, view));
    text.extend(
        view.partial
            .map(|partial| format!("{}\n", panels::partial::text(context.answer, panels::partial::LIST, partial))),
    );
    if !query.filter.trim().is_empty() {
        let _ = writeln!(text, "filter: {}", query.filter.trim());
    }
    text.extend(view.filter_error.iter().map(|error| format!("{error}\n")));
    text.extend(found(view).map(|found| format!("search {:?}: {found}\n", query.search.trim())));
    let _ = writeln!(text, "{:>20} {:>7} {:>20} {:>11}  node", "bytes", "share", "own", "allocations");
    for (position, node) in view.nodes.iter().enumerate() {
        let _ = writeln!(
            text,
            "{:>20} {:>7} {:>20} {:>11}  {:indent$}{}",
            units::grouped(node.bytes()),
            share(node.bytes(), view.whole()),
            units::grouped(node.own),
            units::grouped(node.allocations),
            "",
            short(view, position),
            indent = 2 * node.depth as usize,
        );
    }
    text
}
