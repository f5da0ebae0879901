//! Tests of the output: what a terminal would show.

use proptest::prelude::*;
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::style::{Color, Modifier, Style};

use super::*;

fn output(rows: u16, columns: u16, bytes: &[u8]) -> Output {
    let output = Output::new(rows, columns);
    output.feed(bytes);
    output
}

fn drawn(output: &Output, width: u16, height: u16, dress: &Dress) -> (Buffer, Option<Position>) {
    let mut buffer = Buffer::empty(Rect::new(0, 0, width, height));
    let cursor = output.draw(buffer.area, &mut buffer, dress);
    (buffer, cursor)
}

fn row(buffer: &Buffer, y: u16) -> String {
    (0..buffer.area.width).map(|x| buffer[(x, y)].symbol()).collect::<String>().trim_end().to_owned()
}

#[test]
fn a_progress_bar_stays_in_its_line() {
    let output = output(4, 20, b"begin\r\n 10%|#    |\r 20%|##   |\r 30%|###  |");
    assert_eq!(output.text(), ["begin", " 30%|###  |", "", ""]);
}

#[test]
fn colours_and_attributes_are_kept_and_can_be_left_out() {
    let output = output(2, 20, b"\x1b[1;31mred\x1b[0m \x1b[38;2;1;2;3mtrue\x1b[0m \x1b[44mb\x1b[0m");
    let (buffer, cursor) = drawn(&output, 20, 2, &Dress::default());
    assert_eq!(row(&buffer, 0), "red true b");
    assert_eq!((buffer[(0, 0)].fg, buffer[(0, 0)].modifier), (Color::Indexed(1), Modifier::BOLD));
    assert_eq!(buffer[(4, 0)].fg, Color::Rgb(1, 2, 3));
    assert_eq!(buffer[(9, 0)].bg, Color::Indexed(4));
    assert_eq!(cursor, Some(Position::new(10, 0)));
    let (buffer, _) = drawn(&output, 20, 2, &Dress { colours: false, ..Dress::default() });
    assert!(buffer.content.iter().all(|cell| cell.fg == Color::Reset && cell.bg == Color::Reset));
    assert_eq!(buffer[(0, 0)].modifier, Modifier::BOLD);
}

#[test]
fn only_ascii_is_drawn_where_only_ascii_can_be() {
    let output = output(3, 20, "│ 30%|████▌ | é 漢 “x”".as_bytes());
    let (buffer, _) = drawn(&output, 20, 3, &Dress { ascii: true, ..Dress::default() });
    assert!(buffer.content.iter().all(|cell| cell.symbol().is_ascii()));
    assert_eq!(row(&buffer, 0), "| 30%|##### | ? ?  \"");
}

#[test]
fn an_area_that_is_smaller_or_larger_than_the_screen_is_no_matter() {
    let output = output(3, 10, "0123456漢9\r\nsecond".as_bytes());
    assert_eq!(row(&drawn(&output, 8, 1, &Dress::default()).0, 0), "0123456"); // half of a wide character does not fit
    assert_eq!(row(&drawn(&output, 30, 9, &Dress::default()).0, 1), "second");
    let mut small = Buffer::empty(Rect::new(0, 0, 1, 1));
    output.draw(Rect::new(5, 5, 80, 24), &mut small, &Dress::default());
}

#[test]
fn the_view_stays_where_it_is_while_output_comes() {
    let output = Output::new(3, 10);
    for number in 0..10 {
        output.feed(format!("{number}\r\n").as_bytes());
    }
    assert_eq!(output.text(), ["8", "9", ""]);
    output.scroll(2);
    assert_eq!(output.text(), ["6", "7", "8"]);
    output.feed(b"10\r\n11\r\n");
    assert_eq!(output.text(), ["6", "7", "8"]);
    assert_eq!(output.place().back, 4);
    output.page(1);
    assert_eq!(output.text(), ["4", "5", "6"]);
    output.to_begin();
    assert_eq!(output.text(), ["0", "1", "2"]);
    output.scroll(-1);
    assert_eq!(output.text(), ["1", "2", "3"]);
    output.to_end();
    assert_eq!(output.text(), ["10", "11", ""]);
}

#[test]
fn the_scroll_back_is_bounded() {
    let output = Output::new(4, 10);
    for number in 0..SCROLL_BACK + 50 {
        output.feed(format!("{number}\r\n").as_bytes());
    }
    assert_eq!(output.place().kept, SCROLL_BACK);
    output.to_begin();
    assert_eq!(output.text()[0], "47"); // 50 rows went, of which 3 are on the screen beside the empty one
}

#[test]
fn hits_are_found_shown_and_marked() {
    let output = Output::new(4, 20);
    for number in 0..100 {
        let what = if number % 10 == 3 { "loss Loss" } else { "-" };
        output.feed(format!("{number} {what}\r\n").as_bytes());
    }
    output.search("loss");
    assert_eq!(output.place().hit, Some((20, 20)));
    assert!(output.text().contains(&"93 loss Loss".to_owned()), "{:?}", output.text());
    let (buffer, _) = drawn(&output, 20, 4, &Dress::default());
    let line = (0..4).find(|y| row(&buffer, *y).starts_with("93")).unwrap();
    let marked = |x: u16| buffer[(x, line)].modifier.contains(Modifier::REVERSED);
    let marks: Vec<u16> = (0..20).filter(|x| marked(*x)).collect();
    assert_eq!(marks, [3, 4, 5, 6, 8, 9, 10, 11]);
    assert!(
        buffer[(8, line)].modifier.contains(Modifier::BOLD) && !buffer[(3, line)].modifier.contains(Modifier::BOLD)
    );

    output.previous_hit();
    assert_eq!(output.place().hit, Some((19, 20)));
    for _ in 0..2 {
        output.previous_hit();
    }
    assert!(output.text().contains(&"83 loss Loss".to_owned()), "{:?}", output.text());
    for _ in 0..3 {
        output.next_hit();
    }
    assert_eq!(output.place().hit, Some((20, 20)));
    output.next_hit(); // round to the first
    assert_eq!(output.place().hit, Some((1, 20)));
    assert!(output.text().contains(&"3 loss Loss".to_owned()), "{:?}", output.text());

    output.search("Loss");
    assert_eq!(output.place().hit.unwrap().1, 10);
    output.search("nowhere");
    assert_eq!(output.place().hit, Some((0, 0)));
    output.search("");
    assert_eq!(output.place().hit, None);
}

#[test]
fn a_hit_stays_the_current_one_while_rows_go() {
    let output = Output::new(4, 20);
    output.feed(b"needle\r\n");
    output.feed(&b"x\r\n".repeat(SCROLL_BACK - 10));
    output.feed(b"needle\r\n");
    output.search("needle");
    assert_eq!(output.place().hit, Some((2, 2)));
    output.feed(&b"y\r\n".repeat(100)); // the first needle goes
    output.previous_hit();
    assert_eq!(output.place().hit, Some((1, 1)));
    assert!(output.text().contains(&"needle".to_owned()));
}

#[test]
fn a_program_that_fills_the_screen_leaves_what_was_there() {
    let output = output(3, 20, b"before\r\n\x1b[?1049h\x1b[2J\x1b[2;5Hfull\x1b(0lqk\x1b(B");
    assert!(output.place().full_screen);
    assert_eq!(output.text(), ["", "    full┌─┐", ""]);
    output.feed(b"\x1b[?1049l");
    assert_eq!(output.text(), ["before", "", ""]);
}

#[test]
fn questions_are_answered() {
    let output = Output::new(5, 10);
    assert_eq!(output.feed(b"ab\r\nabc\x1b[6n"), b"\x1b[2;4R");
    assert_eq!(output.feed(b"\x1b[5n"), b"\x1b[0n");
    assert!(output.feed(b"\x1b[c").starts_with(b"\x1b[?"));
    assert!(output.feed(b"\x1b[1n\x1b[31mtext").is_empty());
}

/// What a second terminal shows after `bytes`.
fn replayed(bytes: &[u8]) -> Output {
    output(6, 20, bytes)
}

#[test]
fn another_terminal_takes_over_where_the_screen_is() {
    for program in [
        &b"one\r\n\x1b[32mtwo\x1b[0m\r\nthree"[..],
        b"one\r\n\r\n\x1b[1mbold",
        b"full\x1b[6;20H\x1b[2;3Hhere",
        b"x\x1b[?1049h\x1b[2J\x1b[3;3Hmenu\x1b[?25l\x1b[?1h\x1b[?2004h",
        b"",
    ] {
        let first = replayed(program);
        let second = replayed(&first.hand_over());
        for output in [&first, &second] {
            output.feed(b"!\x1b[6n");
        }
        let (left, right) = (drawn(&first, 20, 6, &Dress::default()), drawn(&second, 20, 6, &Dress::default()));
        assert_eq!(left, right, "{}", String::from_utf8_lossy(program));
        assert_eq!(first.place().full_screen, second.place().full_screen);
        second.feed(&second.clean_up());
        assert!(!second.place().full_screen);
        let up = second.encode(&KeyEvent::new(crossterm::event::KeyCode::Up, crossterm::event::KeyModifiers::NONE));
        assert_eq!((up, second.encode_paste("p")), (b"\x1b[A".to_vec(), b"p".to_vec()));
    }
}

#[test]
fn the_last_screen_is_printed_without_what_is_empty() {
    assert_eq!(Output::new(6, 20).last_screen(), b"");
    let screen = output(6, 20, b"\x1b[31mred\x1b[0m\r\n\r\nlast\r\n").last_screen();
    let shown = replayed(&screen);
    assert_eq!(shown.text()[..3], ["red", "", "last"]);
    assert_eq!(drawn(&shown, 20, 6, &Dress::default()).0[(0, 0)].fg, Color::Indexed(1));
    assert!(screen.ends_with(b"\x1b[m\r\n"));
}

#[test]
fn the_hit_styles_are_the_views() {
    let output = output(2, 20, b"\x1b[31mab ab\x1b[0m");
    output.search("ab");
    let dress =
        Dress { hit: Style::new().bg(Color::Green), current_hit: Style::new().bg(Color::Blue), ..Dress::default() };
    let (buffer, _) = drawn(&output, 20, 2, &dress);
    assert_eq!((buffer[(0, 0)].bg, buffer[(3, 0)].bg, buffer[(2, 0)].bg), (Color::Green, Color::Blue, Color::Reset));
}

proptest! {
    /// Whatever a program writes and however the terminal is resized: nothing panics, and the screen can be drawn.
    #[test]
    fn nothing_that_is_written_does_harm(
        steps in proptest::collection::vec(
            (
                prop_oneof![
                    proptest::collection::vec(any::<u8>(), 0..200),
                    "(\\x1b\\[[0-9;?]{0,6}[A-Za-z@`]|[ -~]{0,9}|\\x1b[()][0B]|[漢é\u{FE0F}\u{200D}😀☁]|\\r\\n|\\x1bM|\\t){0,40}".prop_map(String::into_bytes),
                ],
                1_u16..30,
                1_u16..30,
            ),
            1..12,
        )
    ) {
        let output = Output::new(24, 80);
        for (bytes, rows, columns) in steps {
            output.feed(&bytes);
            output.resize(rows, columns);
            output.search("a");
            output.scroll(3);
            output.previous_hit();
            drawn(&output, columns, rows, &Dress::default());
            output.hand_over();
            output.last_screen();
        }
    }
}
