//! The table of allocations and the table of steps: figures of the report, what a click and keys do, and what is asked for.

use eframe::egui::{Key, vec2};
use egui_kittest::kittest::Queryable;
use memscope_core::Category;
use memscope_core::explorer::{At, Column, Grouping, Pick, RowsView};
use memscope_core::journal::entry::Nanoseconds;
use memscope_core::report::{Instant, units};
use memscope_gui::app::App;
use memscope_gui::document::Document;
use memscope_gui::shared::{Selection, Shared};
use memscope_gui::views::allocations::Allocations;

use crate::figures::report;
use crate::sessions::{leaking, one_allocation, out_of_memory};
use crate::trace::Trace;
use crate::window::{self, Window, click, heard, press};

const MIB: u64 = 1 << 20;

fn sized(trace: &Trace, size: [f32; 2]) -> Window {
    let mut app = App::with_views(|| vec![Box::new(Allocations::default())]);
    app.add(Document::of_explorer("train.mscope", trace.explorer()));
    let mut window = window::with(app, size, 1.0);
    press(&mut window, Key::Num2);
    window.run();
    window
}

fn of(trace: &Trace) -> Window {
    sized(trace, [1100.0, 720.0])
}

fn document(window: &Window) -> &Document {
    window.state().document().expect("it is open")
}

fn shared(window: &mut Window) -> &mut Shared {
    &mut window.state_mut().document_mut().expect("it is open").shared
}

fn view(window: &Window) -> RowsView {
    (**document(window).answer().rows.as_ref().expect("it was asked for")).clone()
}

fn says(window: &Window, text: &str) {
    let heard = heard(window);
    assert!(heard.iter().any(|heard| heard.contains(text)), "{text} is not among {heard:#?}");
}

fn type_filter(window: &mut Window, text: &str) {
    press(window, Key::Slash);
    window.get_by_label("Filter").type_text(text);
    window.run();
    window.run();
}

/// Totals and the largest groups are those of the report at the same moment.
#[test]
fn the_list_has_the_figures_of_the_report() {
    let trace = leaking();
    let mut window = of(&trace);
    let moments = [
        (At::Peak, Instant::Peak),
        (At::Live, Instant::End),
        (At::Step(3), Instant::Step(3)),
        (At::Time(Nanoseconds(1_234_567_890)), Instant::Time(Nanoseconds(1_234_567_890))),
    ];
    window.get_by_label("Groups").click();
    window.run();
    click(&mut window, "by name");
    for (at, instant) in moments {
        shared(&mut window).cursor = at;
        window.run();
        window.run();
        let report = report(&trace, instant);
        let snapshot = if report["at"].is_null() { &report["peak"] } else { &report["at"] };
        let view = view(&window);
        // The list has pinned memory, too; the report has that apart.
        let host = document(&window).answer().now.host.live_bytes();
        assert_eq!(view.total_bytes - host, snapshot["bytes"].as_u64().expect("bytes"), "{at:?}");
        let heard = heard(&window);
        let groups = snapshot["top_groups"].as_array().expect("groups");
        assert!(!groups.is_empty());
        for group in groups {
            let text = |field: &str| group[field].as_str().expect("text").to_owned();
            let number = |field: &str| group[field].as_u64().expect("a number");
            let count = units::count(number("allocations"), "allocation", "allocations");
            let row = format!("{}: {}, {count}", text("name"), units::bytes(number("bytes")));
            assert!(heard.contains(&row), "{row} is not among {heard:#?}");
        }
    }
}

#[test]
fn steps_have_the_figures_of_the_report() {
    let trace = leaking();
    let mut window = of(&trace);
    click(&mut window, "Steps");
    window.run();
    let report = report(&trace, Instant::Peak);
    let steps = report["steps"].as_array().expect("steps");
    let answer = document(&window).answer();
    assert_eq!(answer.steps_total, steps.len());
    let mut seen = 0;
    for (step, told) in answer.steps.iter().zip(&steps[answer.steps_first..]) {
        assert_eq!(Some(step.number), told["step"].as_u64());
        assert_eq!(Some(step.peak), told["peak"]["bytes"].as_u64());
        assert_eq!(step.at_end, told["live_at_end"].as_u64());
        for (name, bytes) in memscope_core::report::ByCategory::from_numbers(step.at_peak).named() {
            assert_eq!(Some(bytes), told["by_category"][name].as_u64(), "{name} in step {}", step.number);
        }
        seen += 1;
    }
    assert!(seen > 10, "{seen}");
    // The step at the cursor is in sight. A click goes to the largest moment of another, and lights it.
    let row = step_row(&window, 38);
    click(&mut window, &row);
    assert_eq!(shared(&mut window).cursor, At::Step(38));
    window.run();
    let live = document(&window).answer().now.state.rows.live_bytes();
    assert_eq!(Some(live), steps[37]["peak"]["bytes"].as_u64());
    press(&mut window, Key::ArrowDown);
    assert_eq!(shared(&mut window).cursor, At::Step(39), "keys go from step to step");
    press(&mut window, Key::Home);
    assert_eq!(shared(&mut window).cursor, At::Step(1));
    window.run();
    let row = step_row(&window, 1);
    assert!(window.query_by_label(&row).is_some(), "it is in sight");
    says(&window, "leak");
}

fn step_row(window: &Window, number: u64) -> String {
    let begin = format!("Step {number}: live peak");
    let heard = heard(window);
    heard.iter().find(|text| text.starts_with(&begin)).unwrap_or_else(|| panic!("{begin} in {heard:#?}")).clone()
}

#[test]
fn a_filter_is_typed_and_a_wrong_one_is_told() {
    let mut window = of(&leaking());
    // By hand, at the peak in step 40: weights and optimizer of six layers, 12 activations, the batch, softmax, pinned memory, and the
    // history of 39 steps.
    says(&window, "72 allocations, ");
    type_filter(&mut window, "category:act >400M");
    // 640 MiB of each of six layers, of which 100 bytes each were not asked for.
    says(&window, "6 of 72 allocations, 3.75 GiB of ");
    type_filter(&mut window, " >x");
    says(&window, "The filter lets everything through: `>x` needs a size");
    press(&mut window, Key::Enter);
    // The field has let go of the keys.
    press(&mut window, Key::E);
    assert_eq!(shared(&mut window).cursor, At::Live);
    click(&mut window, "Clear the filter");
    assert_eq!(document(&window).asked().rows.as_ref().map(|rows| rows.filter.as_str()), Some(""));
    click(&mut window, "Terms of a filter");
    click(&mut window, "inside=model/h.1");
    window.get_by_label("Filter").type_text("model/h.*");
    window.run();
    window.run();
    assert_eq!(document(&window).asked().rows.as_ref().map(|rows| rows.filter.as_str()), Some("inside=model/h.*"));
}

#[test]
fn titles_sort_and_turn() {
    let mut window = of(&leaking());
    let asked = |window: &Window| {
        let rows = document(window).asked().rows.clone().expect("asked");
        (rows.sort, rows.descending)
    };
    assert_eq!(asked(&window), (Column::Size, true));
    click(&mut window, "Sort by size");
    assert_eq!(asked(&window), (Column::Size, false));
    click(&mut window, "Sort by name");
    assert_eq!(asked(&window), (Column::Name, false), "from A on");
    let first = view(&window).rows;
    click(&mut window, "Sort by name");
    assert_eq!(asked(&window), (Column::Name, true));
    assert_ne!(view(&window).rows, first);
}

#[test]
fn a_group_is_opened_and_one_goes_back() {
    let mut window = of(&leaking());
    window.get_by_label("Groups").click();
    window.run();
    click(&mut window, "by scope");
    let group =
        heard(&window).into_iter().find(|text| text.starts_with("optimizer: 3.38 GiB, 6 alloc")).expect("the group");
    click(&mut window, &group);
    assert_eq!(shared(&mut window).selection, Selection::Scope("optimizer".into()), "it is lit everywhere");
    press(&mut window, Key::Enter);
    window.run();
    let asked = document(&window).asked().rows.clone().expect("asked");
    assert_eq!((asked.filter.as_str(), asked.group), ("scope=optimizer", None));
    says(&window, "6 of 72 allocations, 3.38 GiB of ");
    assert!(window.query_by_label("h.0.exp_avg, 576.0 MiB, optimizer").is_some(), "{:#?}", heard(&window));
    click(&mut window, "Back to groups");
    let asked = document(&window).asked().rows.clone().expect("asked");
    assert_eq!((asked.filter.as_str(), asked.group), ("", Some(Grouping::Scope)));
}

#[test]
fn what_is_selected_elsewhere_is_offered_as_a_filter() {
    let mut window = of(&leaking());
    shared(&mut window).selection = Selection::Scope("model/h.*".into());
    window.run();
    click(&mut window, "Only in model/h.*");
    // By hand: two weights and two activations of each of six layers, 6 × 288 MiB and 5,760 MiB.
    says(&window, "24 of 72 allocations, 7.31 GiB of ");
    assert!(window.query_by_label("Only in model/h.*").is_none());
    shared(&mut window).selection = Selection::Category(Category::Activations);
    window.run();
    click(&mut window, "Only activations");
    let asked = document(&window).asked().rows.clone().expect("asked");
    assert_eq!(asked.filter, "inside=model/h.* category=activations");
}

#[test]
fn the_largest_block_is_selected_and_told_in_full() {
    let mut window = of(&leaking());
    click(&mut window, "softmax, 700.0 MiB, workspace");
    let Selection::Allocation(softmax) = shared(&mut window).selection.clone() else { panic!("nothing is selected") };
    let picks = &document(&window).answer().picks;
    assert_eq!(picks.iter().map(|pick| pick.row.granted).collect::<Vec<_>>(), [700 * MIB]);
    assert_eq!((picks[0].row.id, picks[0].row.birth), (softmax.id, softmax.birth));
    says(&window, "Selected allocation");
    says(&window, "model/loss");
    // Keys move on from it.
    press(&mut window, Key::ArrowDown);
    let Selection::Allocation(next) = shared(&mut window).selection.clone() else { panic!("nothing is selected") };
    assert_ne!(next, softmax);
    press(&mut window, Key::ArrowUp);
    assert_eq!(shared(&mut window).selection, Selection::Allocation(softmax));
    // The timeline's own keys are as they were once something else was clicked.
    let seen = shared(&mut window).zoom.clone();
    assert!(seen.is_whole());
}

/// All lines that led to the selected allocation are told, the program's own first; many lines of libraries are folded.
#[test]
fn lines_of_the_program_are_a_column_and_a_stack() {
    let mut trace = Trace::new(Trace::session(&["python", "train.py"], None));
    trace.add_process(77, None);
    trace.add_device(0, 80 << 30);
    trace.now = 1_000_000;
    trace.at_line((1, 0), ("/home/me/train.py", 40, "<module>"));
    trace.at_line((2, 1), ("/home/me/net.py", 7, "Net.forward"));
    trace.at_line((3, 2), ("/usr/lib/python3.11/site-packages/torch/nn/linear.py", 3, "Linear.forward"));
    trace.tagged(0x10_0000_0000, MIB, Category::Activations, "out");
    for (node, line) in (4..7).zip(120..) {
        let dropout = ("/usr/lib/python3.11/site-packages/torch/nn/dropout.py", line, "Dropout.forward");
        trace.at_line((node, node - 1), dropout);
    }
    trace.tagged(0x11_0000_0000, 2 * MIB, Category::Activations, "deep");
    trace.now = 2_000_000;
    let mut window = of(&trace);
    assert!(window.query_by_label("Sort by line").is_some());
    let library = "torch/nn/linear.py:3 in Linear.forward";
    let stack = ["me/net.py:7 in Net.forward", "me/train.py:40", library];
    click(&mut window, "out, 1.00 MiB, activations");
    window.run();
    stack.into_iter().for_each(|line| says(&window, line));
    let context = window.ctx.clone();
    let text = window.state_mut().text(&context).expect("text");
    let places: Vec<_> = ["by         me/net.py:7", "by         me/train.py:40", "through    torch/nn/linear.py:3"]
        .iter()
        .map(|line| text.find(line).expect("a line"))
        .collect();
    assert!(places.is_sorted(), "{text}");
    click(&mut window, "deep, 2.00 MiB, activations");
    window.run();
    stack[..2].iter().for_each(|line| says(&window, line));
    assert!(window.query_by_label(library).is_none(), "{:#?}", heard(&window));
    window.get_by_label("4 lines of libraries").scroll_to_me();
    window.run();
    click(&mut window, "4 lines of libraries");
    says(&window, library);
    window.get_by_label("Groups").click();
    window.run();
    click(&mut window, "by line");
    says(&window, "me/net.py:7 in Net.forward: 3.00 MiB, 2 allocations");
}

/// Where the selected allocation does not live, that is said, and the way to it is one click.
#[test]
fn what_does_not_live_here_is_gone_to() {
    let mut window = of(&leaking());
    click(&mut window, "softmax, 700.0 MiB, workspace");
    let Selection::Allocation(softmax) = shared(&mut window).selection.clone() else { panic!("nothing is selected") };
    press(&mut window, Key::E);
    window.run();
    says(&window, "The selected allocation does not live at this moment.");
    click(&mut window, "Go to when it was made");
    window.run();
    assert_eq!(shared(&mut window).cursor, At::Time(softmax.birth));
    assert!(window.query_by_label("softmax, 700.0 MiB, workspace").is_some());
}

/// Five thousand small allocations.
fn many() -> Trace {
    let mut trace = Trace::new(Trace::session(&["./many"], None));
    trace.add_process(77, None);
    trace.add_device(0, 80 << 30);
    trace.now = 1_000_000;
    for number in 0..5000 {
        trace.tagged(0x10_0000_0000 + number * MIB, MIB - number, Category::Activations, &format!("block.{number}"));
    }
    trace.now = 2_000_000;
    trace
}

#[test]
fn only_rows_that_are_seen_are_asked_for_and_the_selected_one_is_scrolled_to() {
    let trace = many();
    let mut window = of(&trace);
    let asked = |window: &Window| document(window).asked().rows.clone().expect("asked").window;
    assert!(asked(&window).start == 0 && asked(&window).end < 200, "{:?}", asked(&window));
    // As another view would select it.
    let mut explorer = trace.explorer();
    let far = explorer.answer(&memscope_core::explorer::Query {
        rows: Some(memscope_core::explorer::RowsQuery { window: 4321..4322, ..Default::default() }),
        ..Default::default()
    });
    let memscope_core::explorer::Row::Allocation(far) = far.rows.expect("asked").rows[0].clone() else { panic!() };
    shared(&mut window).selection = Selection::Allocation(Pick { id: far.id, birth: far.birth });
    for _ in 0..4 {
        window.run();
    }
    assert!(asked(&window).contains(&4321) && asked(&window).len() < 300, "{:?}", asked(&window));
    assert!(window.query_by_label("block.4321, 1019.8 KiB, activations").is_some(), "{:#?}", heard(&window));
    // To the end and back by keys.
    click(&mut window, "block.4321, 1019.8 KiB, activations");
    press(&mut window, Key::End);
    window.run();
    let last = window.query_by_label("block.4999, 1019.1 KiB, activations");
    assert!(last.is_some(), "{:#?}", heard(&window));
    let picks = &document(&window).answer().picks;
    assert_eq!(picks.first().map(|pick| pick.row.name.as_str()), Some("block.4999"), "it is selected");
    let context = window.ctx.clone();
    let text = window.state_mut().text(&context).expect("text");
    assert!(text.contains("\nleft out: 4,9") && text.contains(" rows above, 0 rows below"), "{text}");
    assert!(text.contains("1043577\t1043577\tactivations\ttagged\tblock.4999\t"), "{text}");
}

#[test]
fn empty_lists_say_what_to_do() {
    let mut window = of(&one_allocation());
    says(&window, "1 allocation, 1000 B live");
    shared(&mut window).cursor = At::Time(Nanoseconds(5));
    window.run();
    window.run();
    says(&window, "Nothing is live at this moment: P goes to the peak");
    click(&mut window, "Steps");
    says(&window, "The program has not said where its steps begin");
}

#[test]
fn the_tables_as_they_look() {
    let trace = leaking();
    let mut window = sized(&trace, [900.0, 600.0]);
    click(&mut window, "softmax, 700.0 MiB, workspace");
    window.snapshot("allocations");
    click(&mut window, "Both");
    window.run();
    press(&mut window, Key::T);
    window.snapshot("allocations_steps_light");
}

#[test]
fn groups_and_a_wrong_filter_as_they_look() {
    let mut window = sized(&out_of_memory(), [900.0, 640.0]);
    window.get_by_label("Groups").click();
    window.run();
    click(&mut window, "by scope");
    window.snapshot("allocations_by_scope");
    type_filter(&mut window, "scope:h. >12XB");
    press(&mut window, Key::Enter);
    window.snapshot("allocations_wrong_filter");
}

/// A picture has the rows that are seen, wherever that is in the list.
#[test]
fn a_picture_begins_where_one_is() {
    use memscope_gui::export::Picture;
    use memscope_gui::theme::{Look, Theme};
    use memscope_gui::view::{View, ViewContext};
    let trace = many();
    let mut explorer = trace.explorer();
    let (mut allocations, mut shared) = (Allocations::default(), Shared::default());
    let mut query = memscope_core::explorer::Query::default();
    allocations.ask(&shared, &mut query);
    let answer = explorer.answer(&query);
    let context = eframe::egui::Context::default();
    let look = Look::default();
    look.apply(&context);
    let theme = Theme::of(&context, look.palette());
    let context = ViewContext { name: "many.mscope", answer: &answer, shared: &mut shared, theme, others: &[] };
    let svg = Picture::of(&mut allocations, context, look, vec2(700.0, 400.0), 1.0).svg();
    let document = roxmltree::Document::parse(&svg).expect("XML");
    let words: Vec<&str> =
        document.descendants().filter(|node| node.has_tag_name("text")).filter_map(|node| node.text()).collect();
    for word in ["block.0", "1.00 MiB", "activations", "5,000 allocations, 4.87 GiB live"] {
        assert!(words.contains(&word), "{word} is not among {words:?}");
    }
}
