//! Views below the timeline: which is shown, and what is asked for it. The views here are made for that.

use eframe::egui::{Key, Modifiers, Ui};
use egui_kittest::kittest::Queryable;
use memscope_core::explorer::{At, Query, RowsQuery};
use memscope_gui::app::App;
use memscope_gui::document::Document;
use memscope_gui::shared::Shared;
use memscope_gui::view::{View, ViewContext};

use crate::sessions::{leaking, out_of_memory};
use crate::window::{self, Window, click, press, press_with};

/// Says how many allocations are live.
struct Counting;

impl View for Counting {
    fn title(&self) -> &'static str {
        "Counting"
    }

    fn ask(&self, _shared: &Shared, query: &mut Query) {
        query.rows = Some(RowsQuery::default());
    }

    fn ui(&mut self, ui: &mut Ui, context: &mut ViewContext<'_>) {
        ui.label(self.text(context));
    }

    fn text(&self, context: &ViewContext<'_>) -> String {
        context.answer.rows.as_ref().map_or("…".to_owned(), |rows| format!("{} are live", rows.total))
    }
}

/// Says how much the other document's second step needs.
struct Comparing;

impl View for Comparing {
    fn title(&self) -> &'static str {
        "Comparing"
    }

    fn ask_other(&self, _shared: &Shared, other: usize, query: &mut Query) {
        assert_eq!(other, 0);
        query.at = At::Step(2);
    }

    fn ui(&mut self, ui: &mut Ui, context: &mut ViewContext<'_>) {
        ui.label(self.text(context));
    }

    fn text(&self, context: &ViewContext<'_>) -> String {
        let other = context.others.first().filter(|(_, answer)| answer.at == At::Step(2));
        other.map_or("nothing to compare".to_owned(), |(name, answer)| {
            format!("{name} needs {} bytes", answer.now.state.rows.live_bytes())
        })
    }
}

fn window() -> Window {
    let mut app = App::with_views(|| vec![Box::new(Counting), Box::new(Comparing)]);
    app.add(Document::of_explorer("a.mscope", leaking().explorer()));
    app.add(Document::of_explorer("b.mscope", out_of_memory().explorer()));
    window::with(app, [960.0, 640.0], 1.0)
}

#[test]
fn a_view_is_shown_by_key_tab_and_menu_and_only_then_asks() {
    let mut window = window();
    let asked = |window: &Window| window.state().document().expect("it is open").asked().clone();
    assert_eq!(asked(&window).rows, None);
    let alone = window.get_by_label("Timeline: live bytes by category over time").rect().height();
    press(&mut window, Key::Num2);
    // By hand: 12 weights, 6 states of the optimizer, two blocks of activations at the refusal, and pinned memory.
    assert!(window.query_by_label("21 are live").is_some(), "{:#?}", window::heard(&window));
    assert!(asked(&window).rows.is_some());
    assert!(window.get_by_label("Timeline: live bytes by category over time").rect().height() < alone / 1.5);
    click(&mut window, "Comparing");
    assert_eq!(asked(&window).rows, None);
    press(&mut window, Key::Num1);
    assert_eq!(window.get_by_label("Timeline: live bytes by category over time").rect().height(), alone);
    // There is no third one.
    press(&mut window, Key::Num4);
    assert_eq!(window.get_by_label("Timeline: live bytes by category over time").rect().height(), alone);
}

#[test]
fn a_view_that_compares_asks_the_other_document_and_leaves_it_as_it_was() {
    let mut window = window();
    press(&mut window, Key::Num3);
    window.run();
    // By hand, the most of a step: weights 1,728 MiB, optimizer 3,456 MiB, batch 48 MiB, activations of six layers 5,760 MiB, softmax
    // 700 MiB, of the history two times 24 MiB; blocks less 100 bytes each.
    let most = (1728 + 3456 + 48 + 5760 + 700 + 24) * (1u64 << 20) - 14 * 100;
    assert!(window.query_by_label(&format!("a.mscope needs {most} bytes")).is_some(), "{:#?}", window::heard(&window));
    press_with(&mut window, Modifiers::CTRL, Key::Tab);
    let document = window.state().document().expect("it is open");
    assert_eq!((document.shared.cursor, document.answer().at), (At::Peak, At::Peak));
}
