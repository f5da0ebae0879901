//! The flame view: figures of the report, the selected allocation's node, zoom, search, keys, and how it looks.

use std::sync::Arc;

use eframe::egui::accesskit::{Role, Toggled};
use eframe::egui::{Event, Key, Modifiers, PointerButton, vec2};
use egui_kittest::kittest::{NodeT, Queryable};
use memscope_core::Category;
use memscope_core::colours::Background;
use memscope_core::explorer::{At, FlameQuery, FlameView, FlameWeight, Pick, Query, Row, RowsQuery};
use memscope_core::report::{ByCategory, Instant, units};
use memscope_gui::app::App;
use memscope_gui::document::Document;
use memscope_gui::export::Picture;
use memscope_gui::shared::{Selection, Shared, Span};
use memscope_gui::theme::{Look, Theme, Wish};
use memscope_gui::view::ViewContext;
use memscope_gui::views::flame::Flame;
use memscope_gui::views::segments::Segments;

use crate::figures::report;
use crate::sessions::{GIB, MIB, leaking, one_allocation, out_of_memory};
use crate::trace::Trace;
use crate::window::{self, Window, click, heard, press};

/// A window whose one view below the timeline, or first of two, is this one.
fn of(trace: &Trace) -> Window {
    sized(trace, [960.0, 720.0], 1.0)
}

fn sized(trace: &Trace, size: [f32; 2], pixels_per_point: f32) -> Window {
    let mut app = App::with_views(|| vec![Box::<Flame>::default(), Box::<Segments>::default()]);
    app.add(Document::of_explorer("train.mscope", trace.explorer()));
    let mut window = window::with(app, size, pixels_per_point);
    click(&mut window, "Flame");
    window
}

fn view(window: &Window) -> Arc<FlameView> {
    window.state().document().expect("it is open").answer().flame.clone().expect("it was asked for")
}

fn asked(window: &Window) -> FlameQuery {
    window.state().document().expect("it is open").asked().flame.clone().expect("it was asked for")
}

fn says(window: &Window, text: &str) -> bool {
    heard(window).iter().any(|heard| heard.contains(text))
}

fn text(window: &mut Window) -> String {
    let context = window.ctx.clone();
    window.state_mut().text(&context).expect("text")
}

/// The node with a path.
fn node(view: &FlameView, path: &str) -> usize {
    view.nodes.iter().position(|node| node.scope.as_deref() == Some(path)).unwrap_or_else(|| panic!("no {path}"))
}

/// Types into a field with this name.
fn write(window: &mut Window, field: &str, words: &str) {
    let field = window.get_by_role_and_label(Role::TextInput, field);
    field.focus();
    field.type_text(words);
    window.run();
    window.run();
}

/// Clicks twice in quick succession.
fn double_click(window: &mut Window, label: &str) {
    let pos = window.get_by_label(label).rect().center();
    for _ in 0..2 {
        let pressed =
            |pressed| Event::PointerButton { pos, button: PointerButton::Primary, pressed, modifiers: Modifiers::NONE };
        window.input_mut().events.extend([Event::PointerMoved(pos), pressed(true), pressed(false)]);
        window.step();
    }
    window.run();
}

/// What the Python program of [`with_lines`] does, in MiB: (file, line, function) from the outermost on.
const MAIN: ((u64, u64), (&str, u32, &str)) = ((1, 0), ("/home/me/train.py", 90, "<module>"));
const FORWARD: ((u64, u64), (&str, u32, &str)) = ((2, 1), ("/home/me/net.py", 20, "Net.forward"));
const ATTENTION: ((u64, u64), (&str, u32, &str)) = ((3, 2), ("/home/me/net.py", 41, "Attention.forward"));
const LOSS: ((u64, u64), (&str, u32, &str)) = ((4, 1), ("/home/me/train.py", 33, "loss"));

/// A program whose lines were recorded: 6 GiB at the attention, 1 GiB in the forward pass itself, 500 MiB in the loss.
pub fn with_lines() -> Trace {
    let mut trace = Trace::new(Trace::session(&["python", "train.py"], None));
    trace.add_process(77, None);
    trace.add_device(0, 16 * GIB);
    trace.now = 1_000_000;
    let mut number = 0;
    for (lines, bytes, category, name) in [
        (vec![MAIN, FORWARD], GIB, Category::Weights, "weight"),
        (vec![MAIN, FORWARD, ATTENTION], 6 * GIB, Category::Activations, "scores"),
        (vec![MAIN, LOSS], 500 * MIB, Category::Workspace, "softmax"),
    ] {
        for (node, line) in lines {
            trace.at_line(node, line);
        }
        trace.push(name);
        number += 1;
        trace.now += 1_000_000_000;
        trace.tagged(number << 36, bytes, category, name);
        trace.pop();
    }
    trace.now += 1_000_000_000;
    trace.end(0);
    trace
}

/// Nodes that the selection is about, as they are heard.
fn lit(window: &Window) -> Vec<String> {
    let nodes = window.query_all_by_label_contains("of all").map(|node| node.accesskit_node());
    nodes.filter(|node| node.toggled() == Some(Toggled::True)).filter_map(|node| node.label()).collect()
}

/// What is heard and begins like this.
fn heard_node(window: &Window, start: &str) -> String {
    let texts = heard(window);
    texts.iter().find(|text| text.starts_with(start)).unwrap_or_else(|| panic!("no {start} in {texts:#?}")).clone()
}

#[test]
fn scopes_have_the_bytes_of_the_report() {
    let trace = leaking();
    let mut window = of(&trace);
    for (at, instant) in [(At::Peak, Instant::Peak), (At::Step(3), Instant::Step(3)), (At::Live, Instant::End)] {
        window.state_mut().document_mut().expect("it is open").shared.cursor = at;
        window.run();
        let report = report(&trace, instant);
        let snapshot = if report["at"].is_null() { &report["peak"] } else { &report["at"] };
        let view = view(&window);
        assert_eq!(view.nodes[0].bytes(), snapshot["ledger"]["live"].as_u64().expect("bytes"), "{at:?}");
        for (name, bytes) in ByCategory::from_numbers(view.nodes[0].live).named() {
            assert_eq!(snapshot["by_category"][name].as_u64(), Some(bytes), "{name} at {at:?}");
        }
    }
}

#[test]
fn the_selected_block_lights_up_its_node() {
    let mut window = of(&out_of_memory());
    // The largest block at the error: 30,000 MiB that the first layer made for its attention.
    click(&mut window, "Segments");
    window.run();
    let largest = heard_node(&window, "h.0.attn.out, 29.30 GiB");
    click(&mut window, &largest);
    click(&mut window, "Flame");
    window.run();
    let view = view(&window);
    let position = node(&view, "model/h.0");
    let lit = lit(&window);
    assert_eq!(lit.len(), 1, "{lit:?}");
    assert!(lit[0].starts_with("model/h.0, 44.42 GiB, "), "{lit:?}: {}", view.nodes[position].bytes());
    window.snapshot("flame");
}

#[test]
fn a_scope_is_selected_by_a_click_and_layers_that_are_alike_light_up_together() {
    let mut window = of(&leaking());
    let layer = heard_node(&window, "model/h.2, ");
    click(&mut window, &layer);
    let selection = |window: &Window| window.state().document().expect("it is open").shared.selection.clone();
    assert_eq!(selection(&window), Selection::Scope("model/h.2".into()));
    click(&mut window, &layer);
    assert_eq!(selection(&window), Selection::None);
    // As the differences between two profiles select them.
    window.state_mut().document_mut().expect("it is open").shared.selection = Selection::Scope("model/h.*".into());
    window.run();
    assert_eq!(lit(&window).len(), 6, "all layers");
}

#[test]
fn one_looks_at_a_node_alone_and_goes_back() {
    let mut window = of(&leaking());
    let whole = view(&window).nodes[0].bytes();
    let layer = heard_node(&window, "model/h.2, ");
    double_click(&mut window, &layer);
    let near = view(&window);
    let seen = &near.nodes[near.zoomed];
    assert_eq!((seen.scope.as_deref(), near.zoomed), (Some("model/h.2"), 2));
    assert_eq!(
        window.state().document().expect("it is open").shared.selection,
        Selection::None,
        "that is no selection"
    );
    assert_eq!(near.nodes[0].bytes(), whole);
    // The nodes around it are links.
    click(&mut window, "model");
    assert_eq!(view(&window).zoomed, 1);
    press(&mut window, Key::Backspace);
    assert_eq!(view(&window).zoomed, 0);
    assert!(asked(&window).zoom.is_empty());
}

#[test]
fn keys_walk_through_the_tree() {
    let mut window = of(&leaking());
    let model = heard_node(&window, "model, ");
    click(&mut window, &model);
    let selected = |window: &Window| window.state().document().expect("it is open").shared.clone();
    assert_eq!(selected(&window).selection, Selection::Scope("model".into()));
    let before = selected(&window).zoom;
    press(&mut window, Key::ArrowDown);
    press(&mut window, Key::ArrowRight);
    press(&mut window, Key::Enter);
    let near = view(&window);
    // Layers are alike in bytes: they come in the order of their names.
    assert_eq!(near.nodes[near.zoomed].scope.as_deref(), Some("model/h.1"));
    press(&mut window, Key::ArrowDown);
    press(&mut window, Key::Space);
    assert_eq!(selected(&window).selection, Selection::Scope("model/h.1/mlp".into()), "the larger one first");
    press(&mut window, Key::ArrowUp);
    press(&mut window, Key::ArrowUp);
    assert_eq!(view(&window).zoomed, 1, "out of the node that is seen");
    assert_eq!(selected(&window).zoom, before, "arrows are the tree's, not those of time");
    press(&mut window, Key::Escape);
    assert_eq!(view(&window).zoomed, 0);
    assert_ne!(selected(&window).selection, Selection::None, "Escape went back, and did nothing else");
    press(&mut window, Key::Escape);
    assert_eq!(selected(&window).selection, Selection::None);
    press(&mut window, Key::Slash);
    window.run();
    assert!(window.ctx.text_edit_focused(), "the search");
}

#[test]
fn a_search_says_what_it_found() {
    let trace = leaking();
    let mut window = of(&trace);
    write(&mut window, "Search", "ATTN");
    // By hand, at the peak: each of six layers has 96 MiB of weights there, and a block of 320 MiB of which 100 bytes were not asked
    // for.
    let bytes = 6 * (96 + 320) * MIB - 6 * 100;
    let view = view(&window);
    assert_eq!((view.found, view.found_allocations), (bytes, 12));
    let all = units::bytes(view.nodes[0].bytes());
    assert!(says(&window, &format!("found 2.44 GiB of {all}, 12 allocations")), "{:#?}", heard(&window));
    window.key_press(Key::Enter);
    window.run();
    press(&mut window, Key::Enter);
    assert_eq!(view_path(&window), "model/h.0/attn", "the largest that is found, and it alone");
}

fn view_path(window: &Window) -> String {
    let view = view(window);
    view.nodes[view.zoomed].scope.clone().unwrap_or_default()
}

#[test]
fn a_filter_lets_through_what_it_says_and_tells_what_it_cannot_read() {
    let mut window = of(&leaking());
    write(&mut window, "Filter", "category:weights scope:h.3");
    assert_eq!(view(&window).nodes[0].bytes(), 288 * MIB);
    write(&mut window, "Filter", " a:b");
    assert!(says(&window, "everything is let through"), "{:#?}", heard(&window));
}

#[test]
fn what_was_made_in_a_range_is_weighed_and_without_a_range_it_says_how_to_choose_one() {
    let mut window = of(&leaking());
    click(&mut window, "Allocated in the range");
    assert!(says(&window, "No range is chosen: drag over the timeline"), "{:#?}", heard(&window));
    let range = Span::between(0, 499_999_999);
    window.state_mut().document_mut().expect("it is open").shared.range = Some(range);
    window.run();
    window.run();
    assert_eq!(asked(&window).weight, FlameWeight::AllocatedIn(range.from()..range.until()));
    assert!(says(&window, "Nothing was allocated in this range"), "{:#?}", heard(&window));
    // From there on: weights and states, and the blocks of forty steps, freed or not.
    let whole = Span::between(500_000_000, 60_000_000_000);
    window.state_mut().document_mut().expect("it is open").shared.range = Some(whole);
    window.run();
    window.run();
    let step = (48 + 6 * (320 + 640) + 700) * MIB - 14 * 100 + (6 * 288 + 24) * MIB;
    assert_eq!(view(&window).nodes[0].bytes(), (6 * (288 + 576)) * MIB + 40 * step);
}

#[test]
fn lines_of_the_program_are_a_tree_from_both_ends_and_a_block_finds_its_own() {
    let mut window = of(&with_lines());
    click(&mut window, "Lines");
    assert!(says(&window, "me/net.py:41 in Attention.forward, 6.00 GiB, 80.1 % of all"), "{:#?}", heard(&window));
    let pick = {
        let rows = Some(RowsQuery { window: 0..1, ..Default::default() });
        let answer = with_lines().explorer().answer(&Query { at: At::Peak, rows, ..Default::default() });
        let Row::Allocation(row) = &answer.rows.as_ref().expect("asked for").rows[0] else { panic!("{answer:?}") };
        Pick { id: row.id, birth: row.birth }
    };
    window.state_mut().document_mut().expect("it is open").shared.selection = Selection::Allocation(pick);
    for _ in 0..3 {
        window.run();
    }
    assert_eq!(lit(&window), ["me/net.py:41 in Attention.forward, 6.00 GiB, 80.1 % of all"]);
    window.snapshot("flame_lines");
    click(&mut window, "Invert");
    window.run();
    // Its lines outwards: the last node of that chain.
    assert_eq!(lit(&window).len(), 1);
    let view = view(&window);
    assert_eq!(view.nodes[1].label, "me/net.py:41 in Attention.forward");
    assert!(lit(&window)[0].starts_with("me/train.py:90"), "{:?}", lit(&window));
}

#[test]
fn without_lines_or_scopes_it_says_what_to_do() {
    let mut window = of(&one_allocation());
    assert!(says(&window, "No scopes were recorded"), "{:#?}", heard(&window));
    assert!(window.get_by_label("Lines").accesskit_node().is_disabled());
    window.get_by_label("Lines").hover();
    window.run();
    let mut nothing = of(&crate::sessions::nothing_yet());
    assert!(says(&nothing, "Nothing lives at this moment"), "{:#?}", heard(&nothing));
    assert!(text(&mut nothing).contains("Flame by scope"));
}

#[test]
fn the_tree_is_copied_as_text_to_the_byte() {
    let mut window = of(&out_of_memory());
    let text = text(&mut window);
    assert!(text.contains("Flame by scope: "), "{text}");
    // By hand: 14 GiB and 30,000 MiB less 100 bytes each in the first layer, and there the weights of 4 · (96 + 192) MiB.
    let layer = 14 * GIB + 30_000 * MIB - 200 + 1152 * MIB;
    let line = text.lines().find(|line| line.ends_with("    h.0")).unwrap_or_else(|| panic!("{text}"));
    let figures: Vec<&str> = line.split_whitespace().collect();
    assert_eq!(figures[0].replace(',', ""), layer.to_string());
    assert_eq!(figures[3].replace(',', ""), (layer - 1152 * MIB).to_string(), "its own");
    assert_eq!(figures[4], "4");
}

/// A thousand scopes of a MiB each beside one of 9 GiB.
fn with_many_scopes() -> Trace {
    let mut trace = Trace::new(Trace::session(&["./many"], None));
    trace.add_process(77, None);
    trace.add_device(0, 80 * GIB);
    trace.now = 1_000_000;
    trace.push("model");
    for number in 0..1000 {
        trace.push(&format!("small.{number}"));
        trace.tagged(0x10_0000_0000 + number * 2 * MIB, MIB, Category::Activations, "out");
        trace.pop();
    }
    trace.push("large");
    trace.tagged(0x80_0000_0000, 9 * GIB, Category::Weights, "weight");
    trace.pop();
    trace.pop();
    trace.now = 2_000_000;
    trace
}

#[test]
fn what_is_too_narrow_is_told_together_and_a_selected_one_is_said_to_be_among_them() {
    let trace = with_many_scopes();
    let mut window = of(&trace);
    assert!(says(&window, "1,000 smaller in model, 1000.0 MiB, "), "{:#?}", heard(&window));
    let pick = {
        let rows = Some(RowsQuery { filter: "scope:small.7".into(), window: 0..1, ..Default::default() });
        let answer = trace.explorer().answer(&Query { rows, ..Default::default() });
        let Row::Allocation(row) = &answer.rows.as_ref().expect("asked for").rows[0] else { panic!("{answer:?}") };
        Pick { id: row.id, birth: row.birth }
    };
    window.state_mut().document_mut().expect("it is open").shared.selection = Selection::Allocation(pick);
    for _ in 0..3 {
        window.run();
    }
    assert!(says(&window, "what is selected is among smaller ones"), "{:#?}", heard(&window));
    assert_eq!(lit(&window), Vec::<String>::new());
    // The filter brings it to sight.
    write(&mut window, "Filter", "scope:small.7");
    window.run();
    assert_eq!(lit(&window).len(), 1, "{:#?}", heard(&window));
    assert!(!says(&window, "among smaller ones"));
}

#[test]
fn a_picture_has_names_and_colours() {
    let trace = leaking();
    let flame = FlameQuery { parts: 200, ..FlameQuery::default() };
    let answer = trace.explorer().answer(&Query { at: At::Peak, flame: Some(flame), ..Query::default() });
    let (mut shared, look) = (Shared::default(), Look { ground: Wish::Light, colour_blind: false });
    let context = eframe::egui::Context::default();
    look.apply(&context);
    let theme = Theme::of(&context, look.palette());
    let view = ViewContext { name: "train", answer: &answer, shared: &mut shared, theme, others: &[] };
    let svg = Picture::of(&mut Flame::default(), view, look, vec2(700.0, 300.0), 1.0).svg();
    let document = roxmltree::Document::parse(&svg).expect("XML");
    let words: Vec<&str> =
        document.descendants().filter(|node| node.has_tag_name("text")).filter_map(|node| node.text()).collect();
    for word in ["whole session", "model", "h.5", "mlp", "optimizer"] {
        assert!(words.contains(&word), "{word} is not among {words:?}");
    }
    let [red, green, blue] = look.palette().on(Background::Light).category(Category::Optimizer);
    let colour = format!("#{red:02x}{green:02x}{blue:02x}");
    let paths = document.descendants().filter(|node| node.attribute("fill") == Some(&colour)).count();
    assert_eq!(paths, 1, "all nodes of a colour are one path");
}

#[test]
fn looks() {
    let mut window = of(&leaking());
    click(&mut window, "Invert");
    window.snapshot("flame_inverted");
    click(&mut window, "Invert");
    write(&mut window, "Search", "attn");
    window.snapshot("flame_search");
}

#[test]
fn looks_zoomed_and_light() {
    let mut window = sized(&leaking(), [800.0, 600.0], 1.0);
    press(&mut window, Key::T);
    let layer = heard_node(&window, "model, ");
    double_click(&mut window, &layer);
    window.snapshot("flame_zoomed_light");
}
