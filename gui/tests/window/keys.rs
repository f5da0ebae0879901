//! What keys, menu and pointer do.

use eframe::egui::{Key, Modifiers};
use egui_kittest::kittest::Queryable;
use memscope_core::Category;
use memscope_core::explorer::{At, Target};
use memscope_gui::action::TABLE;
use memscope_gui::document::Document;
use memscope_gui::shared::{Selection, Shared, Span};
use memscope_gui::view::whole;

use crate::sessions::{eight_gpus, leaking, out_of_memory, training};
use crate::window::{self, Window, click, heard, press, press_with};

fn document(window: &Window) -> &Document {
    window.state().document().expect("one is open")
}

fn shared(window: &Window) -> &Shared {
    &document(window).shared
}

fn seen(window: &Window) -> Span {
    shared(window).zoom.seen(whole(document(window).answer()))
}

#[test]
fn the_shortcut_sheet_is_the_table() {
    let mut window = window::of(&training());
    press(&mut window, Key::F1);
    let heard = heard(&window);
    for row in TABLE {
        assert!(heard.contains(row.name) && heard.contains(row.says), "{} is missing", row.name);
    }
    press(&mut window, Key::Escape);
    assert!(window.query_by_label("Shortcuts").is_none());
}

#[test]
fn marks_and_keys_put_the_cursor() {
    let mut window = window::of(&out_of_memory());
    let oom = shared(&window).cursor;
    press(&mut window, Key::P);
    assert_eq!(shared(&window).cursor, At::Peak);
    click(&mut window, "Out of memory: 6.00 GiB asked for");
    assert_eq!(shared(&window).cursor, oom);
    press(&mut window, Key::E);
    assert_eq!(shared(&window).cursor, At::Live);
    press(&mut window, Key::O);
    assert_eq!(shared(&window).cursor, oom);
    press(&mut window, Key::OpenBracket);
    assert_eq!(shared(&window).cursor, At::Step(3));
    press(&mut window, Key::CloseBracket);
    assert_eq!(shared(&window).cursor, At::Step(4));
    press(&mut window, Key::CloseBracket);
    assert_eq!(shared(&window).cursor, At::Step(4), "there is no fifth");
}

#[test]
fn zoom_is_undone_and_done_again() {
    let mut window = window::of(&leaking());
    let all = seen(&window);
    press(&mut window, Key::W);
    let near = seen(&window);
    assert!(near.length() < all.length());
    window.run_steps(20);
    press(&mut window, Key::ArrowLeft);
    assert!(seen(&window).begin < near.begin);
    press_with(&mut window, Modifiers::COMMAND, Key::Z);
    press_with(&mut window, Modifiers::COMMAND, Key::Z);
    assert_eq!(seen(&window), all);
    press_with(&mut window, Modifiers::COMMAND, Key::Y);
    assert_eq!(seen(&window), near);
    press(&mut window, Key::Home);
    assert_eq!(seen(&window), all);
}

#[test]
fn a_drag_chooses_a_range_and_a_click_the_moment() {
    let mut window = window::of(&leaking());
    let rect = window.get_by_label("Timeline: live bytes by category over time").rect();
    let at = |share: f32| rect.lerp_inside([share, 0.6]);
    window.drag_at(at(0.3));
    window.run();
    window.hover_at(at(0.5));
    window.run();
    window.drop_at(at(0.5));
    window.run();
    let range = shared(&window).range.expect("a range");
    assert!(range.length() > seen(&window).length() / 8, "{range:?}");
    assert_eq!(shared(&window).cursor, At::Peak, "a drag is no click");
    press(&mut window, Key::R);
    assert_eq!(seen(&window), range);
    press(&mut window, Key::X);
    assert_eq!(shared(&window).range, None);
    window.drag_at(at(0.4));
    window.run();
    window.drop_at(at(0.4));
    window.run();
    let At::Time(time) = shared(&window).cursor else { panic!("{:?}", shared(&window).cursor) };
    assert!(seen(&window).contains(time.0));
}

#[test]
fn a_category_is_selected_and_taken_back() {
    let mut window = window::of(&leaking());
    let label = heard(&window).into_iter().find(|text| text.starts_with("weights: ")).expect("a row of the ledger");
    click(&mut window, &label);
    assert_eq!(shared(&window).selection, Selection::Category(Category::Weights));
    press(&mut window, Key::Escape);
    assert_eq!(shared(&window).selection, Selection::None);
}

#[test]
fn a_finding_is_shown_where_it_is_seen() {
    let mut window = window::of(&leaking());
    let buttons: Vec<_> = window.query_all_by_label("Show me").collect();
    assert!(!buttons.is_empty());
    buttons[0].click();
    window.run();
    let shared = shared(&window);
    assert!(matches!(shared.cursor, At::Step(_)) && shared.range.is_some(), "{shared:?}");
    assert_eq!(shared.selection, Selection::Category(Category::Unknown), "what grows");
}

#[test]
fn each_device_and_process_can_be_looked_at() {
    let mut window = window::of(&eight_gpus());
    let mut targets = Vec::new();
    for _ in 0..11 {
        targets.push(shared(&window).target);
        press(&mut window, Key::D);
        assert_eq!(document(&window).answer().target, shared(&window).target, "the answer follows");
    }
    assert_eq!(targets[0], Target::All);
    assert_eq!(targets[1..9], [0, 1, 2, 3, 4, 5, 6, 7].map(Target::Device));
    assert_eq!(targets[9..], [0, 1].map(Target::Process));
    assert_eq!(shared(&window).target, Target::All);
}

#[test]
fn a_lane_is_looked_at_alone_and_all_again() {
    let mut window = window::of(&eight_gpus());
    for target in [Target::Device(1), Target::All] {
        // The second device in the order in which they were named.
        click(&mut window, "Lane of GPU 2");
        assert_eq!(shared(&window).target, target);
    }
    click(&mut window, "Lane of rank 1");
    assert_eq!(shared(&window).target, Target::Process(1));
    assert!(heard(&window).contains("rank 1, process 4243"));
}

#[test]
fn documents_are_tabs() {
    let (first, second) = (training(), out_of_memory());
    let mut window = window::sized(&[("a.mscope", &first), ("b.mscope", &second)], [960.0, 640.0], 1.0);
    assert_eq!(document(&window).name, "b.mscope");
    press_with(&mut window, Modifiers::CTRL, Key::Tab);
    assert_eq!(document(&window).name, "a.mscope");
    click(&mut window, "b.mscope");
    assert_eq!(document(&window).name, "b.mscope");
    click(&mut window, "Close b.mscope");
    assert_eq!(document(&window).name, "a.mscope");
    press_with(&mut window, Modifiers::COMMAND, Key::W);
    assert!(window.state().document().is_none());
    assert!(window.query_by_label_contains("Drop a profile").is_some());
}

#[test]
fn keys_are_text_where_text_is_typed() {
    let mut window = window::of(&leaking());
    press_with(&mut window, Modifiers::COMMAND, Key::O);
    window.get_by_label("Path").type_text("p");
    press(&mut window, Key::P);
    assert_eq!(shared(&window).cursor, At::Peak, "it was there before");
    press(&mut window, Key::E);
    assert_eq!(shared(&window).cursor, At::Peak, "E is a letter here");
    click(&mut window, "Cancel");
    press(&mut window, Key::E);
    assert_eq!(shared(&window).cursor, At::Live);
}
