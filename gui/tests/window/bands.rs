//! Memory over time: figures of the report, bands by name, the selection, filters, and what is merged.

use std::sync::Arc;

use eframe::egui::{
    CentralPanel, Event, Key, Modifiers, MouseWheelSource, MouseWheelUnit, PointerButton, TouchPhase, Ui, vec2,
};
use egui_kittest::kittest::Queryable;
use memscope_core::Category;
use memscope_core::colours::{Background, Palette};
use memscope_core::explorer::{Answer, At, BandOrder, BandsView, Query, Target, WindowQuery};
use memscope_core::journal::entry::Nanoseconds;
use memscope_core::report::{ByCategory, Instant};
use memscope_gui::app::App;
use memscope_gui::document::Document;
use memscope_gui::export::Picture;
use memscope_gui::shared::{Selection, Shared, Span};
use memscope_gui::theme::{Look, Theme, Wish};
use memscope_gui::view::{View, ViewContext, whole};
use memscope_gui::views::bands::Bands;

use crate::figures::report;
use crate::sessions::{eight_gpus, leaking, nothing_yet, out_of_memory};
use crate::trace::Trace;
use crate::window::{self, Window, click, heard, press};

const CANVAS: &str = "Memory over time: allocations as bands";

/// A window with this view alone below the timeline.
fn of(trace: &Trace) -> Window {
    let mut app = App::with_views(|| vec![Box::<Bands>::default()]);
    app.add(Document::of_explorer("train.mscope", trace.explorer()));
    let mut window = window::with(app, [960.0, 640.0], 1.0);
    press(&mut window, Key::Num2);
    window.run();
    window
}

fn document(window: &Window) -> &Document {
    window.state().document().expect("it is open")
}

fn shared(window: &Window) -> &Shared {
    &document(window).shared
}

fn shared_mut(window: &mut Window) -> &mut Shared {
    &mut window.state_mut().document_mut().expect("it is open").shared
}

fn view(window: &Window) -> Arc<BandsView> {
    document(window).answer().bands.clone().expect("it was asked for")
}

fn seen(window: &Window) -> Span {
    shared(window).zoom.seen(whole(document(window).answer()))
}

/// Shows a part of the whole time.
fn zoom(window: &mut Window, from: f64, until: f64) {
    let whole = whole(document(window).answer());
    let span = Span::between(whole.at(from), whole.at(until));
    shared_mut(window).zoom.show(span, whole, 0.0);
    window.run();
}

/// Fills in a field.
fn write(window: &mut Window, field: &str, text: &str) {
    window.get_by_label(field).focus();
    window.run();
    window.get_by_label(field).type_text(text);
    window.run();
    window.run();
}

/// The line that begins so, of all that is heard.
fn line(window: &Window, part: &str) -> String {
    let texts = heard(window);
    texts.iter().find(|text| text.contains(part)).unwrap_or_else(|| panic!("no {part} in {texts:#?}")).clone()
}

/// What is drawn and what is merged at a moment, by category.
fn live_at(view: &BandsView, time: u64) -> [u64; 7] {
    let mut live = view.rest_at(Nanoseconds(time)).expect("told from the beginning on").live;
    for band in view.bands.iter().filter(|band| view.offset(band, Nanoseconds(time)).is_some()) {
        live[band.category as usize] += band.bytes;
    }
    live
}

fn compare(view: &BandsView, trace: &Trace, time: u64, instant: Instant) {
    let report = report(trace, instant);
    let snapshot = if report["at"].is_null() { &report["peak"] } else { &report["at"] };
    for (name, bytes) in ByCategory::from_numbers(live_at(view, time)).named() {
        assert_eq!(snapshot["by_category"][name].as_u64(), Some(bytes), "{name} at {time}");
    }
}

#[test]
fn drawn_and_merged_are_the_live_bytes_of_the_report() {
    for trace in [leaking(), out_of_memory()] {
        let mut window = of(&trace);
        press(&mut window, Key::Num0);
        write(&mut window, "filter", ">300MiB");
        let answer = Arc::clone(document(&window).answer());
        let peak = answer.peak.as_ref().expect("there is a peak").state.time.0;
        let view = view(&window);
        assert!(view.rest_exact && view.merged() > 0 && !view.bands.is_empty());
        compare(&view, &trace, peak, Instant::Peak);
        let second = 1_000_000_000;
        for time in [second, 3 * second / 2, 2 * second + 123_456_789, 3 * second] {
            compare(&view, &trace, time, Instant::Time(Nanoseconds(time)));
        }
    }
}

#[test]
fn the_largest_band_is_selected_by_name_and_the_panel_says_what_holds_it() {
    let mut window = of(&out_of_memory());
    let largest = view(&window).bands.iter().max_by_key(|band| band.bytes).expect("there are some").pick;
    let name = line(&window, "h.0.attn.out, 29.30 GiB, activations, made at 3.3");
    click(&mut window, &name);
    assert_eq!(shared(&window).selection, Selection::Allocation(largest));
    let texts = heard(&window);
    for fact in ["h.0.attn.out", "saved for backward (tagged)", "model/h.0"] {
        assert!(texts.iter().any(|text| text == fact), "{fact}: {texts:#?}");
    }
    click(&mut window, &name);
    assert_eq!(shared(&window).selection, Selection::None, "a second time takes it back");
}

/// Presses the first button at a part of the picture.
fn click_at(window: &mut Window, share: [f32; 2]) {
    let at = window.get_by_label(CANVAS).rect().lerp_inside(share);
    window.drag_at(at);
    window.run();
    window.drop_at(at);
    window.run();
}

#[test]
fn what_lies_under_the_pointer_is_selected_and_what_is_merged_is_a_category() {
    let mut window = of(&leaking());
    zoom(&mut window, 0.0, 0.12);
    click_at(&mut window, [0.7, 0.95]);
    let Selection::Allocation(pick) = shared(&window).selection else { panic!("{:?}", shared(&window).selection) };
    let view = view(&window);
    let band = view.bands.iter().find(|band| band.pick == pick).expect("it is drawn");
    assert_eq!(
        (band.category, view.scope(band).map(|scope| scope.alike.as_str())),
        (Category::Weights, Some("model/h.*/attn"))
    );
    // Before the first allocation there is nothing: the cursor.
    click_at(&mut window, [0.2, 0.5]);
    let At::Time(time) = shared(&window).cursor else { panic!("{:?}", shared(&window).cursor) };
    assert!(seen(&window).contains(time.0));
    write(&mut window, "filter", "optimizer");
    click_at(&mut window, [0.7, 0.7]);
    assert_eq!(
        shared(&window).selection,
        Selection::Category(Category::Weights),
        "merged, above the optimizer's states"
    );
}

#[test]
fn a_drag_chooses_a_range_and_a_double_click_shows_a_life() {
    let mut window = of(&leaking());
    zoom(&mut window, 0.0, 0.12);
    let rect = window.get_by_label(CANVAS).rect();
    window.drag_at(rect.lerp_inside([0.3, 0.6]));
    window.run();
    window.hover_at(rect.lerp_inside([0.5, 0.6]));
    window.run();
    window.drop_at(rect.lerp_inside([0.5, 0.6]));
    window.run();
    assert!(shared(&window).range.is_some_and(|range| range.length() > seen(&window).length() / 8));
    assert_eq!(shared(&window).selection, Selection::None, "a drag is no click");
    let name = line(&window, "softmax, 700.0 MiB, workspace, made at 0.8");
    let pos = window.get_by_label(&name).rect().center();
    let press = |pressed| {
        let (button, modifiers) = (PointerButton::Primary, Modifiers::NONE);
        Event::PointerButton { pos, button, pressed, modifiers }
    };
    // Both clicks in one frame: those of the harness are too far from each other.
    window.hover_at(pos);
    window.run();
    window.input_mut().events.extend([true, false, true, false].map(press));
    window.run();
    let Selection::Allocation(softmax) = shared(&window).selection else { panic!("{:?}", shared(&window).selection) };
    // By hand: it lives for a twentieth of a second.
    let life = seen(&window);
    assert!(life.begin < softmax.birth.0 && life.end > softmax.birth.0 + 50_000_000, "{life:?}");
    assert!(life.length() < 60_000_000, "{life:?}");
}

#[test]
fn keys_lead_from_band_to_band_while_the_view_has_the_keyboard() {
    let mut window = of(&leaking());
    let before = seen(&window);
    press(&mut window, Key::W);
    press(&mut window, Key::ArrowRight);
    assert_ne!(seen(&window), before, "it has not: arrows move");
    press(&mut window, Key::Num0);
    window.get_by_label(CANVAS).focus();
    window.run();
    press(&mut window, Key::ArrowRight);
    let marked = |window: &Window| {
        let node = window.get_by_label(CANVAS);
        node.value().unwrap_or_else(|| panic!("nothing is marked"))
    };
    assert_eq!(
        marked(&window),
        "softmax, 700.0 MiB, workspace, made at 0.800000 s",
        "the largest, the oldest of those"
    );
    press(&mut window, Key::ArrowRight);
    assert_eq!(marked(&window), "h.5.grad, 288.0 MiB, gradients, made at 0.900000 s");
    press(&mut window, Key::ArrowLeft);
    press(&mut window, Key::ArrowLeft);
    assert_eq!(marked(&window), "h.5.mlp.out, 640.0 MiB, activations, made at 0.800000 s");
    press(&mut window, Key::ArrowDown);
    assert_eq!(marked(&window), "h.0.mlp.out, 640.0 MiB, activations, made at 1.450000 s", "as large, and newer");
    assert_eq!(seen(&window), before, "arrows are the view's");
    press(&mut window, Key::Enter);
    let Selection::Allocation(pick) = shared(&window).selection else { panic!("{:?}", shared(&window).selection) };
    assert_eq!(pick.birth, Nanoseconds(1_450_000_000));
    press(&mut window, Key::Z);
    let life = seen(&window);
    assert!(life.contains(1_450_000_000) && life.length() < 700_000_000, "{life:?}");
    press(&mut window, Key::Escape);
    press(&mut window, Key::F1);
    let texts = heard(&window);
    assert!(texts.contains("marks the next larger allocation") && texts.contains("Memory over time"));
}

#[test]
fn filters_and_limits_merge_what_is_not_drawn_and_say_so() {
    let mut window = of(&leaking());
    // By hand: 12 weights, 6 states; in each of 40 steps a batch, 12 activations, a softmax, 6 gradients and the history.
    line(&window, &format!("{} allocations drawn", 18 + 40 * 21));
    write(&mut window, "filter", "softmax");
    line(&window, "40 that match drawn, of 858 in this time; the rest merged on top, striped");
    write(&mut window, "filter", " colour:red");
    let said = line(&window, "all are drawn");
    assert!(said.contains("colour"), "{said}");
    line(&window, "858 allocations drawn");

    let mut window = of(&leaking());
    window.get_by_label("bands").focus();
    window.run();
    window.get_by_label("bands").type_text("10");
    press(&mut window, Key::Enter);
    window.run();
    assert_eq!(view(&window).bands.len(), 10);
    line(&window, "10 of 858 drawn, the rest merged on top, striped");
    click(&mut window, "By address");
    line(&window, "10 of 858 drawn, the rest not in the picture: ");
    // What is selected elsewhere and has no band is looked for.
    let row = view(&window).bands[0].pick;
    let mut other = of(&leaking());
    write(&mut other, "filter", "softmax");
    shared_mut(&mut other).selection = Selection::Allocation(row);
    other.run();
    line(&other, "What is selected is among the merged: Z shows its life.");
}

#[test]
fn with_alt_the_wheel_looks_closer_at_bytes_and_time_stays() {
    let mut window = of(&leaking());
    zoom(&mut window, 0.9, 1.0);
    let (before, most) = (seen(&window), "mlp.out, 640.0 MiB, activations, made at ");
    let name = line(&window, most);
    let low = window.get_by_label(&name).rect();
    window.hover_at(low.center());
    window.run();
    window.input_mut().events.push(Event::ModifiersChanged(Modifiers::ALT));
    for _ in 0..4 {
        window.input_mut().events.push(Event::MouseWheel {
            source: MouseWheelSource::Wheel,
            unit: MouseWheelUnit::Point,
            delta: vec2(0.0, 120.0),
            phase: TouchPhase::Move,
            modifiers: Modifiers::ALT,
        });
        // What explains the pointer comes and goes meanwhile.
        window.run_steps(8);
    }
    window.input_mut().events.push(Event::ModifiersChanged(Modifiers::NONE));
    window.run();
    let near = window.get_by_label(&name).rect();
    assert!(near.height() > low.height() * 3.0, "{low:?} {near:?}");
    assert_eq!(near.width(), low.width());
    assert_eq!(seen(&window), before);
    click(&mut window, "All bytes");
    assert_eq!(window.get_by_label(&name).rect(), low);
}

#[test]
fn addresses_are_of_one_device_where_there_are_several() {
    let mut window = of(&eight_gpus());
    click(&mut window, "By address");
    let all = view(&window);
    assert_eq!((all.order, all.bands.len()), (BandOrder::Address, 8));
    click(&mut window, "device");
    click(&mut window, "GPU 5");
    let target = shared(&window).target;
    let Target::Device(device) = target else { panic!("{target:?}") };
    assert_eq!(document(&window).answer().devices[usize::from(device)].ordinal, 5);
    let one = view(&window);
    assert_eq!(one.bands.iter().map(|band| band.bytes).collect::<Vec<_>>(), [6 << 30]);
}

#[test]
fn scopes_that_are_alike_have_one_colour_and_lead_to_a_selection() {
    let mut window = of(&leaking());
    click(&mut window, "Scope");
    for scope in ["model/h.*/attn", "model/h.*/mlp", "optimizer", "outside all scopes", "model/loss", "metrics"] {
        line(&window, &format!("Colour of {scope}"));
    }
    click(&mut window, "Colour of optimizer");
    assert_eq!(shared(&window).selection, Selection::Scope("optimizer".to_owned()));
    click(&mut window, "Size");
    for size in ["16 to 256 MiB", "256 MiB to 4 GiB"] {
        line(&window, &format!("Colour of {size}"));
    }
    click(&mut window, "Category");
    click(&mut window, "Colour of gradients");
    assert_eq!(shared(&window).selection, Selection::Category(Category::Gradients));
}

#[test]
fn nothing_says_why() {
    let window = of(&nothing_yet());
    line(&window, "No device memory was live in this time.");
}

#[test]
fn what_is_shown_is_text_for_spreadsheets() {
    let mut window = of(&leaking());
    write(&mut window, "filter", "softmax");
    let context = window.ctx.clone();
    let text = window.state_mut().text(&context).expect("text");
    for part in [
        "Memory over time from 0.000000 s to 36.500000 s: 40 that match drawn, of 858 in this time",
        "0.800000000\t0.850000000\t734003100\t734003200\tworkspace\ttagged\tmodel/loss\tsoftmax\t0\t0x5040000000",
        "merged_at_s\tdrawn\tweights\toptimizer",
    ] {
        assert!(text.contains(part), "{part:?} is not in {text}");
    }
}

/// The view alone, without the rest of the window.
struct Alone {
    bands: Bands,
    document: Document,
    look: Look,
}

fn alone(trace: &Trace, light: bool, size: [f32; 2], scale: f32) -> egui_kittest::Harness<'static, Alone> {
    let document = Document::of_explorer("train.mscope", trace.explorer());
    let ground = if light { Wish::Light } else { Wish::Dark };
    let state = Alone { bands: Bands::default(), document, look: Look { ground, colour_blind: false } };
    let builder = egui_kittest::Harness::builder()
        .with_size(size)
        .with_pixels_per_point(scale)
        .renderer(window::Painter::default());
    let frame = |ui: &mut Ui, alone: &mut Alone| {
        let theme = alone.look.apply(ui.ctx());
        let answer = Arc::clone(alone.document.answer());
        let shared = &mut alone.document.shared;
        let mut context = ViewContext { name: "a.mscope", answer: &answer, shared, theme, others: &[] };
        let seen = context.seen();
        CentralPanel::no_frame().show(ui, |ui| alone.bands.ui(ui, &mut context));
        alone.document.ask(|shared, query| {
            query.window = Some(WindowQuery { range: seen.from()..seen.until(), buckets: 600 });
            alone.bands.ask(shared, query);
        });
    };
    let mut window = builder.build_ui_state(frame, state);
    let document = &mut window.state_mut().document;
    let whole = whole(document.answer());
    document.shared.zoom.show(Span::between(whole.at(0.0), whole.at(0.09)), whole, 0.0);
    window.run();
    window
}

#[test]
fn stacked_with_one_selected() {
    let mut window = alone(&leaking(), false, [720.0, 360.0], 1.0);
    let node = window.query_all_by_label_contains("h.3.mlp.out, 640.0 MiB").next().expect("a band");
    node.click();
    window.run();
    window.remove_cursor();
    window.run();
    window.snapshot("bands_selected");
}

#[test]
fn by_address_in_light() {
    let mut window = alone(&leaking(), true, [720.0, 360.0], 1.0);
    window.get_by_label("By address").click();
    window.run();
    window.remove_cursor();
    window.run();
    window.snapshot("bands_address_light");
}

#[test]
fn by_scope_sharp() {
    let mut window = alone(&out_of_memory(), false, [560.0, 300.0], 2.0);
    window.state_mut().document.shared.zoom.show_all(9.0);
    window.get_by_label("Scope").click();
    window.run();
    window.remove_cursor();
    window.run();
    window.snapshot("bands_scope");
}

#[test]
fn filtered_with_the_rest_merged() {
    let mut window = alone(&leaking(), true, [720.0, 360.0], 1.0);
    window.get_by_label("filter").focus();
    window.run();
    window.get_by_label("filter").type_text("category:activations >500MiB");
    window.run();
    window.run();
    window.remove_cursor();
    window.run();
    window.snapshot("bands_filtered_light");
}

#[test]
fn it_is_exported() {
    let mut explorer = leaking().explorer();
    let mut bands = Bands::default();
    let mut shared = Shared::default();
    let context = eframe::egui::Context::default();
    let look = Look { ground: Wish::Light, colour_blind: true };
    look.apply(&context);
    let theme = Theme::of(&context, look.palette());
    let mut picture = |answer: &Answer, bands: &mut Bands| {
        let view = ViewContext { name: "a.mscope", answer, shared: &mut shared, theme, others: &[] };
        Picture::of(bands, view, look, vec2(700.0, 400.0), 1.0)
    };
    let mut query = Query::default();
    picture(&explorer.answer(&query), &mut bands);
    bands.ask(&Shared::default(), &mut query);
    let svg = picture(&explorer.answer(&query), &mut bands).svg();
    let document = roxmltree::Document::parse(&svg).expect("XML");
    let fills: Vec<&str> = document.descendants().filter_map(|node| node.attribute("fill")).collect();
    let colours = Palette::ColourBlind.on(Background::Light);
    for category in [Category::Weights, Category::Optimizer, Category::Gradients, Category::Activations] {
        let [red, green, blue] = colours.category(category);
        let colour = format!("#{red:02x}{green:02x}{blue:02x}");
        // The legend, and one path for all bands.
        assert_eq!(fills.iter().filter(|fill| **fill == colour).count(), 2, "{category:?} {fills:?}");
    }
    assert!(svg.contains("858 allocations drawn"));
}
