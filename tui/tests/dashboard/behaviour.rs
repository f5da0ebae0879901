//! What keys and the mouse do.

use std::collections::HashSet;

use crossterm::event::{Event, KeyCode, KeyEvent, KeyModifiers, MouseButton, MouseEventKind};
use memscope_tui::app::{Action, Left, Screen};
use memscope_tui::keys::{BINDINGS, Binding, Command, MOUSE, Place};
use memscope_tui::output::Output;
use memscope_tui::program::End;

use crate::sessions;
use crate::view::View;

const SIZE: (u16, u16) = (120, 40);

fn control(char: char) -> Event {
    Event::Key(KeyEvent::new(KeyCode::Char(char), KeyModifiers::CONTROL))
}

/// A program's output of more lines than the screen has; every seventh says `hit`.
fn output() -> Output {
    let output = Output::new(20, 80);
    for line in 0..200 {
        let _ = output.feed(format!("line {line}{}\r\n", if line % 7 == 0 { " hit" } else { "" }).as_bytes());
    }
    output
}

/// A state in which a binding has something to do.
fn ready_for(binding: &Binding) -> View {
    let program = !matches!(binding.command, Command::Suspend);
    let trace = match binding.place {
        Place::Everywhere | Place::Lists => sessions::leaking(),
        _ => sessions::training(),
    };
    let mut view = match (program, binding.command) {
        (false, _) => View::new(&trace, (100, 20)),
        (true, Command::NextTarget | Command::PreviousTarget | Command::Total | Command::Device) => {
            View::of_program(&sessions::eight_gpus(), (100, 20), Some(output()))
        }
        (true, _) => View::of_program(&trace, (100, 20), Some(output())),
    };
    view.press(match binding.place {
        Place::Everywhere => "",
        Place::Lists => "t",
        Place::Allocations => "a",
        Place::Scopes => "s",
        Place::Steps => "t",
        Place::Output => "u",
        Place::Reading => "?",
        Place::Leaving => "q",
        Place::Entry => "a/two words",
        Place::Typing => "i",
    });
    view.press(match (binding.place, binding.command) {
        (_, Command::Show(Screen::Overview)) => "a",
        (_, Command::Later | Command::MuchLater | Command::NextStep | Command::Live) => "p[[[",
        (_, Command::Total) => "3",
        (_, Command::ZoomOut) => "++",
        (Place::Lists, Command::Up | Command::PageUp | Command::Home) => "jjj",
        (Place::Reading, Command::Up | Command::PageUp | Command::Home) => "jjj",
        (Place::Allocations, Command::SortLeft) => ">>>",
        (Place::Allocations, Command::Open) => "bb",
        (Place::Scopes, Command::NextHit | Command::PreviousHit) => "/h.",
        (Place::Output, Command::NextHit | Command::PreviousHit) => "/hit",
        _ => "",
    });
    if matches!(binding.command, Command::NextHit | Command::PreviousHit) {
        view.key(KeyCode::Enter);
    }
    if let (Place::Allocations | Place::Scopes | Place::Output, Command::Clear) = (binding.place, binding.command) {
        view.press("/h");
        view.key(KeyCode::Enter);
    }
    view
}

#[test]
fn every_key_of_the_table_does_something() {
    for binding in BINDINGS {
        for key in binding.keys {
            let mut view = ready_for(binding);
            if binding.command == Command::Device && key.code == KeyCode::Char('9') {
                continue; // the session has eight
            }
            let before = (view.styled(), format!("{:?}", view.app.query()));
            let action = view.event(&Event::Key(key.event()));
            let after = (view.styled(), format!("{:?}", view.app.query()));
            assert!(action.is_some() || before != after, "{} ({:?}) does nothing", key.name(false), binding.command);
        }
    }
}

#[test]
fn the_help_lists_every_key() {
    let mut view = View::new(&sessions::training(), (120, 200));
    let text = view.press("?").text();
    for binding in BINDINGS {
        let names = binding.names(false);
        let listed = text
            .lines()
            .any(|line| line.contains(&names) && line.contains(&binding.help[..binding.help.len().min(40)]));
        assert!(listed, "{names}: {}", binding.help);
    }
    for (gesture, _) in MOUSE {
        assert!(text.contains(gesture), "{gesture}");
    }
    insta::assert_snapshot!("help", text.trim_end());
}

#[test]
fn the_documentation_has_the_table() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/dashboard.md");
    let page = std::fs::read_to_string(path).expect("docs/dashboard.md");
    let (begin, end) = ("<!-- keys -->", "<!-- /keys -->");
    let (before, rest) = page.split_once(begin).expect("the mark where the keys begin");
    let (_, after) = rest.split_once(end).expect("the mark where they end");
    let wanted = format!("{before}{begin}\n{}{end}{after}", memscope_tui::keys::markdown());
    if std::env::var_os("MEMSCOPE_UPDATE_DOCS").is_some() {
        std::fs::write(path, &wanted).expect("written");
    } else if wanted != page {
        panic!("docs/dashboard.md is behind keys.rs: run this test with MEMSCOPE_UPDATE_DOCS=1");
    }
}

#[test]
fn the_cursor_walks_through_time_by_columns_and_back_to_live() {
    let mut view = View::new(&sessions::training(), SIZE);
    assert!(view.line("LIVE").contains("step 17, forward"));
    view.key(KeyCode::Left);
    // 14.9 s in 111 columns: the last but nothing.
    assert!(view.line("AT 14.").contains("step 16"), "{}", view.text());
    view.key(KeyCode::Right);
    assert!(view.line("LIVE").contains("step 17"));
    for _ in 0..500 {
        view.key(KeyCode::Left);
    }
    assert!(view.text().contains("AT 0.000 s"), "it stays at the begin");
    view.press("p");
    // Worked out by hand: model 5.0625 GiB, 5.625 GiB of blocks less 12 × 100 B, 48 and 700 MiB.
    assert!(view.text().contains("PEAK OF LIVE 0.800 s, step 1, forward"));
    assert!(view.line("activations").contains("5.62 GiB"));
    view.press("]");
    assert!(view.text().contains("STEP'S LIVE PEAK 1.700 s, step 2, forward"), "{}", view.text());
    view.press("]]][");
    assert!(view.text().contains("step 4,"));
    view.press("l");
    assert!(view.text().contains("LIVE"));
}

#[test]
fn zooming_keeps_the_cursor_in_sight() {
    let mut view = View::new(&sessions::training(), SIZE);
    view.press("p");
    for _ in 0..12 {
        view.press("+");
        assert!(view.text().lines().filter(|line| line.contains('│')).count() > 5, "{}", view.text());
    }
    for _ in 0..20 {
        view.press("-");
    }
    assert!(view.text().contains("14.9 s"), "the whole session again");
}

#[test]
fn a_paused_view_stands_still_while_the_session_goes_on() {
    let mut trace = sessions::training();
    let mut explorer = trace.explorer();
    let mut view = View::new(&trace, SIZE);
    view.press(" ");
    let before = view.text();
    assert!(before.contains("PAUSED") && before.contains("AT 14."), "{before}");
    let from = trace.entries.len();
    trace.now += 3_000_000_000;
    trace.tagged(0x7000_0000_0000, 5 << 30, memscope_core::Category::Inputs, "late");
    trace.entries[from..].iter().for_each(|entry| explorer.apply(entry));
    let query = view.app.query();
    view.app.receive(std::sync::Arc::new(explorer.answer(&query)));
    let paused = view.text();
    let ledger = |text: &str| {
        text.lines()
            .filter(|line| line.contains("inputs") || line.contains("Ledger"))
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    assert_eq!(ledger(&paused), ledger(&before));
    view.app.handle(&Event::Key(KeyEvent::new(KeyCode::Char(' '), KeyModifiers::NONE)));
    let query = view.app.query();
    view.app.receive(std::sync::Arc::new(explorer.answer(&query)));
    assert!(view.line("inputs").contains("5.00 GiB"), "{}", view.text());
}

#[test]
fn a_paused_peak_stays_where_it_is() {
    let mut trace = sessions::training();
    let mut explorer = trace.explorer();
    let mut view = View::new(&trace, SIZE);
    view.press(" p");
    assert!(view.text().contains("AT 0.800 s, step 1"), "{}", view.text());
    let from = trace.entries.len();
    trace.now += 1_000_000_000;
    trace.tagged(0x7000_0000_0000, 50 << 30, memscope_core::Category::Inputs, "late");
    trace.entries[from..].iter().for_each(|entry| explorer.apply(entry));
    let query = view.app.query();
    view.app.receive(std::sync::Arc::new(explorer.answer(&query)));
    assert!(view.text().contains("AT 0.800 s, step 1"), "{}", view.text());
    assert!(!view.line("activations").contains("0 B"), "{}", view.text());
}

#[test]
fn the_last_step_is_followed_until_another_one_is_selected() {
    let mut trace = sessions::training();
    let mut explorer = trace.explorer();
    let mut view = View::new(&trace, (80, 20));
    view.press("t");
    let mut go_on = |view: &mut View, number: u64| {
        let from = trace.entries.len();
        trace.now += 1_000_000_000;
        trace.step(number);
        trace.entries[from..].iter().for_each(|entry| explorer.apply(entry));
        for _ in 0..2 {
            let query = view.app.query();
            view.app.receive(std::sync::Arc::new(explorer.answer(&query)));
        }
        view.text().lines().any(|line| line.trim_start().starts_with(&format!("{number} ")))
    };
    assert!(go_on(&mut view, 18) && go_on(&mut view, 19));
    for key in "kkkkkkkkkkkkkkkkkk".chars() {
        view.app.handle(&Event::Key(KeyEvent::new(KeyCode::Char(key), KeyModifiers::NONE)));
    }
    assert!(!go_on(&mut view, 22), "{}", view.text());
    view.app.handle(&Event::Key(KeyEvent::new(KeyCode::End, KeyModifiers::NONE)));
    assert!(go_on(&mut view, 23), "{}", view.text());
}

#[test]
fn a_filter_holds_while_it_is_typed() {
    let mut view = View::new(&sessions::training(), SIZE);
    view.press("a/h.3");
    assert!(view.text().contains("Live allocations / h.3"));
    assert!(view.line("Live allocations").contains("4 of 23"), "{}", view.text());
    view.press(" category:act");
    assert!(view.line("Live allocations").contains("1 of 23"));
    view.event(&control('w'));
    assert!(view.line("Live allocations").contains("4 of 23"));
    view.key(KeyCode::Enter);
    assert!(view.press("q").app.query().rows.is_some_and(|rows| rows.filter.trim() == "h.3"), "q is a key again");
    view.key(KeyCode::Esc);
    assert!(view.line("Live allocations").contains("23 allocations"));
    view.press("/>huge");
    assert!(view.text().contains("needs a size"), "what is wrong with a filter is said");
}

#[test]
fn a_group_opens_into_what_it_holds() {
    let mut view = View::new(&sessions::training(), SIZE);
    view.press("apbb");
    // Six allocations of 576 MiB each: 3.38 GiB of 11.67.
    assert!(view.line("28.9 %").contains("optimizer"), "{}", view.text());
    view.key(KeyCode::Enter);
    assert!(view.line("Live allocations").contains("scope=optimizer"), "{}", view.text());
    assert!(view.line("Live allocations").contains("6 of 33"), "{}", view.text());
}

#[test]
fn lines_of_the_program_are_shown_and_grouped() {
    let mut trace = sessions::training();
    let main = ("/home/me/train.py", 40, "<module>");
    let linear = "/opt/lib/python3.11/site-packages/torch/nn/linear.py";
    trace.at_line((1, 0), main);
    trace.at_line((2, 1), ("/home/me/net.py", 7, "Net.forward"));
    trace.at_line((3, 2), (linear, 125, "Linear.forward"));
    trace.tagged(0x7000_0000_0000, 3 << 40, memscope_core::Category::Inputs, "deep");
    trace.at_line((4, 0), ("/home/me/train.py", 44, "main"));
    trace.tagged(0x7800_0000_0000, 2 << 40, memscope_core::Category::Inputs, "other");
    let mut view = View::new(&trace, SIZE);
    view.press("a");
    let lines = ["me/net.py:7 in Net.forward", "me/train.py:40", "torch/nn/linear.py:125 in Linear.forward"];
    let text = view.text();
    // The first place is the list's column, where there is room for it; the stack stands below.
    let places: Vec<usize> = lines.iter().map(|line| text.rfind(line).expect("a line of the stack")).collect();
    assert!(places.is_sorted(), "the program's own first: {text}");
    view.press("bbb");
    assert!(view.text().contains("Live allocations by line"), "{}", view.text());
    assert!(view.line("3.00 TiB").contains("me/net.py:7 in Net.forward"), "{}", view.text());
    assert!(view.text().contains("(no line is known)"), "{}", view.text());
    view.key(KeyCode::Enter);
    let heading = view.line("Live allocations");
    assert!(heading.contains("line=\"me/net.py:7 in Net.forward\"") && heading.contains("1 of "), "{heading}");
    // A small screen has room for the line that counts.
    let mut small = View::new(&trace, (80, 20));
    assert!(small.press("a").text().contains("me/net.py:7 in Net.forward"), "{}", small.text());
    assert!(!small.text().contains("linear.py"), "{}", small.text());
}

#[test]
fn a_group_of_one_name_opens_and_one_of_several_says_why_not() {
    let mut trace = sessions::training();
    trace.tagged(0x7000_0000_0000, 3 << 40, memscope_core::Category::Inputs, "my batch");
    trace.tagged(0x7800_0000_0000, 2 << 40, memscope_core::Category::Inputs, "part.1");
    trace.tagged(0x7c00_0000_0000, 2 << 40, memscope_core::Category::Inputs, "part.2");
    let mut view = View::new(&trace, SIZE);
    view.press("ab");
    assert!(view.text().contains("Live allocations by name"), "{}", view.text());
    // 4 TiB of two parts come before 3 TiB of one batch.
    assert!(view.line("4.00 TiB").contains("part.*"), "{}", view.text());
    view.key(KeyCode::Enter);
    assert!(view.line("No filter says").contains("its names differ"), "{}", view.text());
    assert!(view.text().contains("Live allocations by name"), "and nothing has changed");
    view.press("j");
    assert!(!view.text().contains("No filter says"), "until the next key");
    view.key(KeyCode::Enter);
    let heading = view.line("Live allocations");
    assert!(heading.contains("name=\"my batch\" category=inputs") && heading.contains("1 of "), "{heading}");
}

#[test]
fn refused_allocations_are_walked_through() {
    let mut trace = sessions::out_of_memory();
    let mut view = View::new(&trace, (80, 24));
    assert!(view.text().lines().last().is_some_and(|line| line.contains("x refused")), "{}", view.text());
    view.press("px");
    // Worked out by hand: 3 steps of 0.9 s after 0.5 s, and 0.1 s of the fourth.
    assert!(view.line(" AT ").contains("AT 3.300 s, step 4, forward"), "{}", view.text());
    assert!(view.line("activations").contains("43.30 GiB"), "{}", view.text());
    // A second refusal, later: `x` goes from one to the other and round again.
    trace.entries.pop();
    trace.now += 1_000_000_000;
    trace.refuse(7 << 30, 1 << 30, 80 << 30);
    trace.now += 1_000_000_000;
    let mut view = View::new(&trace, (80, 24));
    for (at, said) in [("AT 3.300 s", "1 of 2."), ("AT 4.500 s", "2 of 2."), ("AT 3.300 s", "1 of 2.")] {
        view.press("x");
        assert!(view.text().contains(at) && view.line("Refused allocation").contains(said), "{}", view.text());
    }
    let mut view = View::new(&sessions::training(), SIZE);
    assert!(!view.text().contains("x refused"));
    let before = view.app.query();
    view.press("x");
    assert!(view.text().contains("has refused no allocation"), "{}", view.text());
    assert_eq!(view.app.query(), before);
    view.press("p");
    assert!(!view.text().contains("has refused no allocation"), "until the next key");
}

/// PyTorch's own message names the segment; the program asked for a tensor.
#[test]
fn a_tensor_is_told_with_the_segment_that_was_refused() {
    let mut trace = sessions::training();
    trace.give_up(8 << 20, 20 << 20, 4 << 20, 80 << 30);
    trace.end(1);
    let mut view = View::new(&trace, SIZE);
    view.press("f");
    let text = view.text();
    for part in ["(a segment of 20.00 MiB from the driver)", "8.00 MiB for the tensor; PyTorch asked the driver"] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn where_there_is_no_other_step_it_is_said() {
    let mut view = View::new(&sessions::leaking(), SIZE);
    view.press("p]");
    assert!(view.line("step").contains("step") && view.text().contains("This is the last step"), "{}", view.text());
    view.press("[");
    assert!(!view.text().contains("This is the last step"));
    for _ in 0..100 {
        view.press("[");
    }
    assert!(view.text().contains("no step before"), "{}", view.text());
    let mut view = View::new(&sessions::one_allocation(), SIZE);
    view.press("]");
    assert!(view.text().contains("has begun no step"), "{}", view.text());
}

#[test]
fn leaving_asks_only_while_a_program_runs() {
    let trace = sessions::training();
    let mut view = View::new(&trace, SIZE);
    assert_eq!(view.key(KeyCode::Char('q')), Some(Action::Leave(Left::Quit)));
    assert_eq!(view.event(&control('c')), Some(Action::Leave(Left::Quit)));
    let mut view = View::of_program(&trace, SIZE, Some(output()));
    assert_eq!(view.key(KeyCode::Char('q')), None);
    assert!(view.text().contains("The program is still running."));
    assert_eq!(view.key(KeyCode::Esc), None);
    assert!(!view.text().contains("still running"));
    view.press("q");
    assert_eq!(view.key(KeyCode::Char('g')), Some(Action::Leave(Left::GoOn)));
    // Each time harder.
    for how in [End::Interrupt, End::Terminate, End::Kill, End::Kill] {
        assert_eq!(view.key(KeyCode::Char('e')), Some(Action::End(how)));
    }
    assert!(view.text().contains("SIGKILL was sent"));
    let (news, action) = view.app.program_status(Some(137));
    assert_eq!((news, action), (true, Some(Action::Leave(Left::Ended))));
    assert!(view.text().contains("ended, status 137"));
}

#[test]
fn a_program_that_ends_by_itself_is_told_and_left_at_once() {
    let mut view = View::of_program(&sessions::training(), SIZE, Some(output()));
    view.press("i");
    assert_eq!(view.app.program_status(None), (false, None));
    assert_eq!(view.app.program_status(Some(3)), (true, None));
    assert!(view.text().contains("ended, status 3"));
    assert!(!view.text().contains("TYPING"));
    assert_eq!(view.key(KeyCode::Char('q')), Some(Action::Leave(Left::Quit)));
    view.press("i");
    assert!(!view.text().contains("TYPING"), "there is nobody to type to");
}

#[test]
fn typed_keys_go_to_the_program_until_escape() {
    let mut view = View::of_program(&sessions::training(), SIZE, Some(output()));
    view.press("i");
    assert!(view.text().contains("TYPING") && view.text().contains("line 199"), "{}", view.text());
    let typed = |view: &mut View, code| match view.key(code) {
        Some(Action::TypeIn(bytes)) => String::from_utf8(bytes).expect("text"),
        other => panic!("{other:?}"),
    };
    assert_eq!(typed(&mut view, KeyCode::Char('q')), "q");
    assert_eq!(typed(&mut view, KeyCode::Up), "\x1b[A");
    assert_eq!(view.event(&control('c')), Some(Action::TypeIn(vec![3])));
    assert_eq!(view.event(&Event::Paste("a\nb".into())), Some(Action::TypeIn(b"a\rb".to_vec())));
    assert_eq!(view.key(KeyCode::Esc), None);
    assert!(!view.text().contains("TYPING"));
    assert_eq!(typed(&mut view, KeyCode::Esc), "\x1b", "twice: the program's");
    assert!(view.text().contains("TYPING"));
    view.key(KeyCode::Esc);
    view.press("o");
    assert_eq!(view.app.screen(), Screen::Overview, "the dashboard's again");
    view.press("i");
    assert_eq!(view.event(&control('5')), None, "Ctrl-], as terminals send it");
    assert!(!view.text().contains("TYPING"));
    assert_eq!(view.key(KeyCode::Esc), None, "and no Esc is owed");
}

#[test]
fn the_mouse_does_what_keys_do() {
    let mut view = View::new(&sessions::leaking(), SIZE);
    let tabs: Vec<char> = view.text().lines().nth(1).expect("tabs").chars().collect();
    let column = tabs.windows(5).position(|name| name.iter().collect::<String>() == "Steps").expect("a tab") as u16;
    view.click(column, 1);
    assert_eq!(view.app.screen(), Screen::Steps);
    view.mouse(MouseEventKind::ScrollDown, 50, 25);
    // Three rows down: step 4 is the first.
    let rows = view.text();
    let titles = rows.lines().position(|line| line.contains("at its peak")).expect("titles");
    assert!(rows.lines().nth(titles + 1).expect("a row").trim_start().starts_with("4 "), "{rows}");
    view.click(20, titles as u16 + 3);
    view.click(20, titles as u16 + 3);
    assert!(view.text().contains("STEP'S LIVE PEAK"), "the second click opens");
    assert!(view.line("STEP'S LIVE PEAK").contains("step 6,"), "{}", view.text());
    view.press("o");
    view.click(60, 15);
    assert!(view.text().contains(" AT "), "a click on the chart");
    let there = view.line(" AT ");
    view.mouse(MouseEventKind::Drag(MouseButton::Left), 90, 15);
    assert_ne!(view.line(" AT "), there);
    view.press("a");
    let text = view.text();
    let titles = text.lines().position(|line| line.contains("size ▼")).expect("titles") as u16;
    let column = text.lines().nth(titles.into()).expect("titles").chars().collect::<String>();
    let name = column.chars().collect::<Vec<_>>().windows(4).position(|word| word.iter().collect::<String>() == "name");
    view.click(name.expect("a title") as u16, titles);
    assert!(view.text().contains("name ▲"), "{}", view.text());
    view.click(name.expect("a title") as u16, titles);
    assert!(view.text().contains("name ▼"));
}

#[test]
fn targets_are_walked_through_and_chosen_by_digit() {
    let mut view = View::new(&sessions::eight_gpus(), SIZE);
    let mut seen = HashSet::new();
    for _ in 0..11 {
        seen.insert(format!("{:?}", view.app.query().target));
        view.key(KeyCode::Tab);
    }
    assert_eq!(seen.len(), 11, "all, eight devices, two processes");
    assert!(view.text().contains("8 GPUs in use"));
    view.press("8");
    assert!(view.text().contains("Ledger of GPU 7"));
    // Device 7 is the one with the most weights: 8 GiB.
    assert!(view.line("weights").contains("4.00 GiB") || view.line("weights").contains("8.00 GiB"), "{}", view.text());
    view.press("9");
    assert!(view.text().contains("Ledger of GPU 7"), "there is no ninth device");
    view.key(KeyCode::BackTab);
    // The first rank named 0, 2, 4 and 6, then the second one the others.
    assert!(view.text().contains("Ledger of GPU 5"));
    view.press("0");
    assert!(view.text().contains("8 GPUs in use"));
}

#[test]
fn a_frame_of_another_size_than_was_told_is_no_matter() {
    for size in [(50, 12), (41, 10), (3, 3), (250, 90)] {
        for keys in ["o", "ap", "apb", "sp", "spv", "mp", "t", "u", "?", "f"] {
            let mut view = View::new(&sessions::training(), SIZE);
            view.press(keys);
            let mut terminal =
                ratatui::Terminal::new(ratatui::backend::TestBackend::new(size.0, size.1)).expect("a terminal");
            terminal.draw(|frame| memscope_tui::screens::draw(&view.app, frame)).expect("drawn");
        }
    }
}

#[test]
fn an_answer_to_another_question_is_not_taken_for_the_awaited_one() {
    let trace = sessions::leaking();
    let mut explorer = trace.explorer();
    let mut view = View::new(&trace, (80, 20));
    view.press("t");
    assert!(view.app.is_answered());
    let press = |view: &mut View, key| view.app.handle(&Event::Key(KeyEvent::new(key, KeyModifiers::NONE)));
    let old = explorer.answer(&view.app.query());
    for key in [KeyCode::End, KeyCode::Char('p'), KeyCode::Char('1'), KeyCode::Char('m'), KeyCode::Char('s')] {
        press(&mut view, key);
        view.app.receive(std::sync::Arc::new(old.clone()));
        assert!(!view.app.is_answered(), "{key:?}");
        view.settle();
        assert!(view.app.is_answered(), "{key:?}");
    }
}

#[test]
fn resizing_keeps_the_selection_in_sight() {
    let mut view = View::new(&sessions::leaking(), (120, 60));
    view.press("t");
    view.key(KeyCode::End);
    view.event(&Event::Resize(80, 16));
    assert!(view.text().lines().any(|line| line.trim_start().starts_with("40 ")), "{}", view.text());
}
