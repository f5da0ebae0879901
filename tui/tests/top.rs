//! `top` as a whole: what is drawn of fixed views at three sizes, and what keys and mouse do.

use std::sync::Arc;

use crossterm::event::{Event, KeyCode, KeyEvent, KeyModifiers, MouseButton, MouseEvent, MouseEventKind};
use memscope_core::monitor::{Kind, MonitorDevice, MonitorInstance, MonitorProcess, MonitorView};
use memscope_core::report::{ByCategory, Rows};
use memscope_tui::glyphs::{ASCII, Glyphs, UNICODE};
use memscope_tui::palette::{Depth, Palette, Scheme};
use memscope_tui::top::{Action, Request, Signal, TopApp, draw};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::layout::Rect;

const GIB: u64 = 1 << 30;
const MIB: u64 = 1 << 20;

fn device(index: u32) -> MonitorDevice {
    MonitorDevice {
        index,
        uuid: Some(format!("GPU-{index}")),
        name: Some("NVIDIA H100 80GB HBM3".into()),
        age_ms: Some(3),
        memory_total: Some(80 * GIB),
        memory_used: Some((5 + 10 * u64::from(index)) * GIB),
        memory_reserved: Some(600 * MIB),
        utilization_percent: Some(100 - 10 * index),
        temperature_celsius: Some(40 + index),
        fan_percent: Some(30),
        power_milliwatts: Some(100_000 + 70_000 * index),
        power_limit_milliwatts: Some(700_000),
        clock_megahertz: Some(1980),
        memory_clock_megahertz: Some(2619),
        pcie_generation: Some(5),
        pcie_width: Some(16),
        pcie_receive: Some(12 * MIB),
        pcie_send: Some(3 * GIB),
        processes_known: true,
        ..MonitorDevice::default()
    }
}

fn process(number: u32) -> MonitorProcess {
    MonitorProcess {
        pid: 4000 + number,
        start_time: Some(77_000 + u64::from(number)),
        // The small one has none.
        device: if number % 8 == 3 { 2 } else { number % 8 },
        kind: Kind::Compute,
        memory_used: Some(u64::from(number + 1) * 300 * MIB),
        user: Some(if number.is_multiple_of(3) { "ada" } else { "grace" }.into()),
        cpu_percent: Some(f64::from(number) * 2.5),
        host_memory: Some(u64::from(number + 1) * 100 * MIB),
        command: Some(format!("python train.py --rank {number}")),
        ..MonitorProcess::default()
    }
}

/// A training process under memscope.
fn ledger() -> Rows {
    let by_category = ByCategory {
        weights: 2 * GIB,
        gradients: 2 * GIB,
        activations: 3 * GIB,
        optimizer: 4 * GIB,
        inputs: 40 * MIB,
        ..ByCategory::default()
    };
    let live = 11 * GIB + 40 * MIB;
    Rows { reserved: 12 * GIB, live, by_category, rounding: 24 * MIB, cached: GIB - 64 * MIB, pools: 0 }
}

/// Eight GPUs, one of them without sensors, one late, one divided; forty processes, some of which are hardly known.
fn machine(round: u64) -> MonitorView {
    let mut devices: Vec<MonitorDevice> = (0..8).map(device).collect();
    for device in &mut devices {
        // The past differs from round to round.
        device.utilization_percent = Some((u64::from(device.index) * 13 + round * 7) as u32 % 101);
    }
    devices[3] = MonitorDevice {
        index: 3,
        name: Some("NVIDIA T400".into()),
        age_ms: Some(2),
        memory_total: Some(4 * GIB),
        memory_used: Some(GIB / 2),
        processes_known: true,
        ..MonitorDevice::default()
    };
    devices[5].age_ms = Some(4_200);
    devices[7].utilization_percent = None;
    devices[7].instances = [0, 4]
        .map(|index| MonitorInstance {
            index,
            uuid: Some(format!("MIG-{index}")),
            name: Some("NVIDIA H100 80GB HBM3 MIG 1g.10gb".into()),
            memory_total: Some(10 * GIB),
            memory_used: Some((1 + u64::from(index)) * GIB),
        })
        .to_vec();
    let mut processes: Vec<MonitorProcess> = (0..40).map(process).collect();
    processes[39].ledger = Some(ledger());
    processes[38].kind = Kind::Both;
    processes[36] =
        MonitorProcess { pid: 990_001, device: 4, memory_used: Some(11 * GIB), ..MonitorProcess::default() };
    processes[31].instance = Some(4);
    processes[5].memory_used = None;
    MonitorView {
        schema_version: 1,
        round,
        interval_ms: 1000,
        driver: Some("580.00".into()),
        devices,
        processes,
        ..MonitorView::default()
    }
}

struct Screen {
    app: TopApp,
    terminal: Terminal<TestBackend>,
}

impl Screen {
    fn new(width: u16, height: u16) -> Screen {
        Screen::with(width, height, Palette::new(Scheme::Default, Depth::True), &UNICODE)
    }

    fn with(width: u16, height: u16, palette: Palette, glyphs: &'static Glyphs) -> Screen {
        let app = TopApp::new(palette, glyphs, Rect::new(0, 0, width, height));
        Screen { app, terminal: Terminal::new(TestBackend::new(width, height)).expect("a terminal") }
    }

    /// Shows the machine after so many rounds.
    fn after(mut self, rounds: u64) -> Screen {
        (1..=rounds).for_each(|round| assert!(self.app.receive(Arc::new(machine(round)))));
        self
    }

    fn text(&mut self) -> String {
        self.terminal.draw(|frame| draw(&self.app, frame)).expect("drawn");
        let text = self.terminal.backend().to_string();
        text.lines().map(|line| format!("{}\n", line.trim_matches('"').trim_end())).collect()
    }

    fn press(&mut self, code: KeyCode) -> Option<Action> {
        self.app.handle(&Event::Key(KeyEvent::new(code, KeyModifiers::NONE)))
    }

    fn keys(&mut self, keys: &str) -> Option<Action> {
        keys.chars().map(|char| self.press(KeyCode::Char(char))).last().flatten()
    }

    fn click(&mut self, column: u16, row: u16) -> Option<Action> {
        let kind = MouseEventKind::Down(MouseButton::Left);
        self.app.handle(&Event::Mouse(MouseEvent { kind, column, row, modifiers: KeyModifiers::NONE }))
    }

    /// Row and column where a text stands.
    #[track_caller]
    fn find(&mut self, wanted: &str) -> (u16, u16) {
        let text = self.text();
        let found = text.lines().enumerate().find_map(|(row, line)| Some((row, line.split_once(wanted)?.0)));
        let (row, before) = found.unwrap_or_else(|| panic!("{wanted} is not on the screen:\n{text}"));
        (before.chars().count() as u16, row as u16)
    }

    /// The pids on the screen, from top to bottom.
    fn pids(&mut self) -> Vec<u32> {
        let text = self.text();
        let lines = text.lines().skip_while(|line| !line.contains("COMMAND")).skip(1);
        lines.map_while(|line| line.split_whitespace().next()?.parse().ok()).collect()
    }
}

#[test]
fn at_80_by_24() {
    insta::assert_snapshot!(Screen::new(80, 24).after(30).text());
}

#[test]
fn at_120_by_40() {
    insta::assert_snapshot!(Screen::new(120, 40).after(70).text());
}

#[test]
fn at_200_by_60() {
    insta::assert_snapshot!(Screen::new(200, 60).after(200).text());
}

#[test]
fn in_ascii() {
    let mut screen = Screen::with(120, 40, Palette::new(Scheme::Default, Depth::Ansi), &ASCII).after(70);
    let text = screen.text();
    assert!(text.is_ascii());
    insta::assert_snapshot!(text);
}

#[test]
fn without_colours() {
    let mut screen = Screen::with(120, 40, Palette::new(Scheme::Default, Depth::None), &UNICODE).after(70);
    insta::assert_snapshot!(screen.text());
    let cells = &screen.terminal.backend().buffer().content;
    let colours = |cell: &ratatui::buffer::Cell| cell.fg != ratatui::style::Color::Reset;
    assert!(!cells.iter().any(colours), "NO_COLOR means none");
}

#[test]
fn before_the_first_answer() {
    insta::assert_snapshot!(Screen::new(80, 24).text());
}

#[test]
fn one_gpu_has_two_lines_on_a_narrow_screen() {
    let mut screen = Screen::new(80, 24);
    let view = MonitorView { round: 1, interval_ms: 1000, devices: vec![device(1)], ..MonitorView::default() };
    screen.app.receive(Arc::new(view));
    insta::assert_snapshot!(screen.text());
}

#[test]
fn every_size_can_be_drawn() {
    for (width, height) in [(1, 1), (2, 30), (10, 3), (19, 7), (40, 12), (79, 9), (300, 4), (300, 100)] {
        for keys in ["", "g", "gg", "ggg", "?", "k", "/x"] {
            let mut screen = Screen::new(width, height).after(3);
            screen.keys(keys);
            screen.text();
        }
    }
}

#[test]
fn help_is_the_table() {
    let mut screen = Screen::new(100, 60).after(1);
    screen.press(KeyCode::F(1));
    insta::assert_snapshot!(screen.text());
    screen.press(KeyCode::Esc);
    assert!(screen.text().contains("COMMAND"));
}

#[test]
fn sorting_by_key_and_by_click() {
    let mut screen = Screen::new(120, 40).after(2);
    assert_eq!(screen.pids()[..3], [4039, 4038, 4037]);
    screen.keys("r");
    assert_eq!(screen.pids()[..3], [4000, 4001, 4002]);
    let (x, y) = screen.find("PID");
    screen.click(x, y);
    assert_eq!(screen.pids()[..2], [4000, 4001]);
    screen.click(x, y);
    assert_eq!(screen.pids()[..2], [990_001, 4039]);
    let (x, y) = screen.find("COMMAND");
    screen.click(x, y);
    assert_eq!(screen.pids()[..3], [4000, 4001, 4010], "in the order of the alphabet");
    // From the last column on, the next is the first.
    screen.press(KeyCode::F(6));
    assert_eq!(screen.pids()[..2], [4000, 4001]);
    screen.keys("<");
    assert_eq!(screen.pids()[2], 4010);
}

#[test]
fn the_filter_holds_while_it_is_typed() {
    let mut screen = Screen::new(120, 40).after(2);
    screen.keys("/ADA rank 1");
    // Of ada (every third) those with a 1 somewhere: in the rank or pid, or on GPU 1 (9 and 33).
    assert_eq!(screen.pids(), [4033, 4021, 4018, 4015, 4012, 4009]);
    assert!(screen.text().contains("filter: ADA rank 1"));
    screen.press(KeyCode::Backspace);
    assert_eq!(screen.pids().len(), 13, "every third, but the one that is not known");
    screen.press(KeyCode::Enter);
    assert!(screen.text().contains("filter: ADA rank  (13 pass)"));
    screen.press(KeyCode::Esc);
    assert!(screen.pids().len() > 13);
    screen.keys("/nothing at all");
    assert!(screen.text().contains("no process passes the filter"));
}

#[test]
fn the_selected_process_stays_selected_when_the_order_changes() {
    let mut screen = Screen::new(120, 40).after(2);
    screen.press(KeyCode::Down);
    screen.keys("k");
    assert!(screen.text().contains("signal for process 4038"));
    screen.press(KeyCode::Esc);
    let mut next = machine(3);
    next.processes[0].memory_used = Some(70 * GIB);
    next.processes.remove(39);
    screen.app.receive(Arc::new(next));
    assert_eq!(screen.pids()[..2], [4000, 4038]);
    screen.keys("k");
    assert!(screen.text().contains("signal for process 4038"));
    screen.press(KeyCode::Esc);
    // It vanishes: whoever stands in its row is selected.
    let mut next = machine(4);
    next.processes.retain(|process| process.pid < 4038);
    screen.app.receive(Arc::new(next));
    screen.keys("k");
    // 4036 is the one whose pid is another.
    assert!(screen.text().contains("signal for process 4035"));
}

#[test]
fn a_signal_needs_a_confirmation_and_names_the_process_that_was_shown() {
    let mut screen = Screen::new(80, 24).after(2);
    assert_eq!(screen.press(KeyCode::F(9)), None);
    insta::assert_snapshot!(screen.text());
    // While the question stands, the list goes on; the question is still about the same process.
    let mut next = machine(3);
    next.processes.remove(39);
    screen.app.receive(Arc::new(next));
    screen.press(KeyCode::Down);
    let request = Request { pid: 4039, start_time: 77_039, signal: Signal::Interrupt };
    assert_eq!(screen.press(KeyCode::Enter), Some(Action::Signal(request)));
    assert_eq!(screen.press(KeyCode::Enter), None, "once");
    screen.app.told(Err("process 4039 has ended".into()));
    assert!(screen.text().contains("process 4039 has ended"));
    screen.press(KeyCode::Down);
    assert!(!screen.text().contains("process 4039 has ended"), "it has been read");
}

#[test]
fn every_signal_has_its_key_and_nothing_is_sent_without() {
    for (key, signal) in [('t', Signal::Terminate), ('i', Signal::Interrupt), ('k', Signal::Kill)] {
        let mut screen = Screen::new(80, 24).after(1);
        screen.keys("k");
        let sent = screen.keys(&key.to_string());
        assert_eq!(sent, Some(Action::Signal(Request { pid: 4039, start_time: 77_039, signal })));
    }
    for back in [KeyCode::Esc, KeyCode::Char('n'), KeyCode::Char('q')] {
        let mut screen = Screen::new(80, 24).after(1);
        screen.keys("k");
        assert_eq!((screen.press(back), screen.press(KeyCode::Enter)), (None, None));
    }
}

#[test]
fn a_process_that_cannot_be_told_from_another_gets_no_signal() {
    let mut screen = Screen::new(120, 24).after(1);
    screen.keys("/990001");
    // It passes no filter by its command, only by its pid.
    assert_eq!(screen.pids(), [990_001]);
    screen.press(KeyCode::Enter);
    assert_eq!(screen.keys("k"), None);
    assert!(screen.text().contains("process 990001 cannot be seen from here"));
    assert_eq!(screen.press(KeyCode::Enter), None);
}

#[test]
fn pausing_keeps_the_view() {
    let mut screen = Screen::new(120, 40).after(2);
    screen.keys(" ");
    let mut next = machine(3);
    next.processes.clear();
    let next = Arc::new(next);
    assert!(!screen.app.receive(Arc::clone(&next)));
    assert!(screen.text().contains("paused") && screen.pids().len() > 10);
    screen.keys(" ");
    assert!(screen.app.receive(next));
    assert!(screen.text().contains("no process uses a GPU"));
}

#[test]
fn rows_and_the_footer_can_be_clicked() {
    let mut screen = Screen::new(120, 40).after(1);
    let (x, y) = screen.find("4035");
    screen.click(x, y);
    let (x, y) = screen.find("F9 kill");
    screen.click(x + 3, y);
    assert!(screen.text().contains("signal for process 4035"));
    let (x, y) = screen.find("SIGKILL");
    screen.click(x, y);
    assert!(matches!(screen.press(KeyCode::Enter), Some(Action::Signal(Request { signal: Signal::Kill, .. }))));
    let (x, y) = screen.find("F10 quit");
    assert_eq!(screen.click(x, y), Some(Action::Leave));
}

#[test]
fn a_long_list_scrolls() {
    let mut screen = Screen::new(80, 24).after(1);
    let shown = screen.pids().len();
    screen.press(KeyCode::PageDown);
    screen.press(KeyCode::End);
    let last = screen.pids();
    assert_eq!((last.len(), last.last()), (shown, Some(&4005)), "what is not known comes last");
    screen.press(KeyCode::Home);
    assert_eq!(screen.pids()[0], 4039);
    // More devices than fit.
    let mut screen = Screen::new(80, 16).after(1);
    assert!(!screen.text().contains("7:4"));
    screen.keys("]]]]]]]]]]");
    let text = screen.text();
    assert!(text.contains("7:4"), "{text}");
}

#[test]
fn the_documentation_has_the_table() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/dashboard.md");
    let page = std::fs::read_to_string(path).expect("docs/dashboard.md");
    let (begin, end) = ("<!-- top keys -->", "<!-- /top keys -->");
    let (before, rest) = page.split_once(begin).expect("the mark where the keys begin");
    let (_, after) = rest.split_once(end).expect("the mark where they end");
    let wanted = format!("{before}{begin}\n{}{end}{after}", memscope_tui::top::markdown());
    if std::env::var_os("MEMSCOPE_UPDATE_DOCS").is_some() {
        std::fs::write(path, &wanted).expect("written");
    } else if wanted != page {
        panic!("docs/dashboard.md is behind top/keys.rs: run this test with MEMSCOPE_UPDATE_DOCS=1");
    }
}
