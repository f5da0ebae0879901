//! The map of segments: figures of the report, blocks by name, selection to and from other views, and what pins a segment.

use egui_kittest::kittest::Queryable;
use memscope_core::Category;
use memscope_core::explorer::{At, SegmentOrder};
use memscope_core::report::Instant;
use memscope_gui::shared::Selection;
use memscope_wire::{Event, MemoryKind, Object};

use crate::figures::report;
use crate::sessions::{eight_gpus, leaking};
use crate::trace::Trace;
use crate::window::{self, Window, click, heard};

const MIB: u64 = 1 << 20;

fn of(trace: &Trace) -> Window {
    let mut window = window::of(trace);
    click(&mut window, "Segments");
    window.run();
    window
}

fn selection(window: &Window) -> Selection {
    window.state().document().expect("it is open").shared.selection.clone()
}

#[test]
fn the_map_has_the_figures_of_the_report() {
    let trace = leaking();
    let mut window = of(&trace);
    for (at, instant) in [(At::Peak, Instant::Peak), (At::Step(3), Instant::Step(3)), (At::Live, Instant::End)] {
        window.state_mut().document_mut().expect("it is open").shared.cursor = at;
        window.run();
        let answer = window.state().document().expect("it is open").answer();
        let view = answer.segments.as_ref().expect("it was asked for");
        let report = report(&trace, instant);
        let snapshot = if report["at"].is_null() { &report["peak"] } else { &report["at"] };
        assert_eq!(view.bytes - view.in_blocks, snapshot["ledger"]["cached"].as_u64().expect("bytes"), "{at:?}");
        // The chart's point at or before the cursor is the map at that moment.
        let fragmentation = answer.fragmentation.as_ref().expect("it was asked for");
        assert!(fragmentation.points.len() > 50);
        let last = fragmentation.points.iter().rfind(|point| point.time <= answer.now.state.time).expect("a point");
        assert_eq!(last.segments, view.total);
    }
}

#[test]
fn a_block_is_selected_by_its_name_and_survivors_are_named() {
    let mut window = of(&leaking());
    let texts = heard(&window);
    let says = |text: &str| texts.iter().any(|heard| heard.contains(text));
    // By hand: of 2 GiB the batch and the softmax take 48 and 700 MiB; of 8 GiB the activations take 5,760 MiB.
    assert!(says("2 segments, 10.00 GiB, of that 6.36 GiB in blocks"), "{texts:#?}");
    assert!(says("1 segment or piece mostly empty; 1.27 GiB would come free"), "{texts:#?}");
    assert!(says("kept by 2 blocks"), "{texts:#?}");
    let survivor = texts.iter().find(|text| text.starts_with("48.00 MiB: batch; input")).expect("the batch").clone();
    click(&mut window, &survivor);
    let Selection::Allocation(batch) = selection(&window) else { panic!("{:?}", selection(&window)) };
    click(&mut window, "batch, 48.00 MiB, inputs");
    assert_eq!(selection(&window), Selection::None, "it was the same one");
    click(&mut window, "softmax, 700.0 MiB, workspace");
    let Selection::Allocation(softmax) = selection(&window) else { panic!("{:?}", selection(&window)) };
    assert_ne!(softmax, batch);
    let picks = &window.state().document().expect("it is open").answer().picks;
    assert_eq!(picks.iter().map(|pick| pick.row.granted).collect::<Vec<_>>(), [700 * MIB]);
    let view = window.state().document().expect("it is open").answer().segments.clone().expect("asked for");
    assert_eq!(view.found, Some(1), "the smaller segment");
}

/// Three hundred segments of 2 MiB with a block of one MiB each.
fn many() -> Trace {
    let mut trace = Trace::new(Trace::session(&["./many"], None));
    trace.add_process(77, None);
    trace.add_device(0, 80 << 30);
    trace.now = 1_000_000;
    for number in 0..300 {
        let address = 0x10_0000_0000 + number * 0x100_0000;
        trace.allocate(address, 2 * MIB);
        trace.block(address, MIB, Category::Activations, &format!("block.{number}"));
    }
    trace.now = 2_000_000;
    trace
}

#[test]
fn only_rows_that_are_seen_are_asked_for_and_a_selection_scrolls_to_its_row() {
    let mut window = of(&many());
    let asked = |window: &Window| window.state().document().expect("it is open").asked().segments.clone();
    let rows = asked(&window).expect("asked").window;
    assert!(rows.start == 0 && rows.end < 40, "{rows:?}");
    click(&mut window, "By address");
    assert_eq!(asked(&window).expect("asked").order, SegmentOrder::Address);
    // As another view would select it.
    let view = window.state().document().expect("it is open").answer().segments.clone().expect("asked for");
    let block = view.segments[0].shown[0].pick;
    let mut explorer = many().explorer();
    let far = explorer.answer(&memscope_core::explorer::Query {
        segments: Some(memscope_core::explorer::SegmentsQuery {
            slices: 1,
            window: 200..201,
            order: SegmentOrder::Address,
            blocks: 1,
            ..Default::default()
        }),
        ..Default::default()
    });
    let far = far.segments.expect("asked for").segments[0].shown[0].pick;
    assert_ne!(block, far);
    window.state_mut().document_mut().expect("it is open").shared.selection = Selection::Allocation(far);
    for _ in 0..8 {
        window.run();
    }
    let rows = asked(&window).expect("asked").window;
    assert!(rows.contains(&200), "{rows:?}");
    assert!(window.query_by_label("block.200, 1.00 MiB, activations").is_some(), "{:#?}", heard(&window));
}

#[test]
fn a_program_without_segments_is_told_so() {
    let window = of(&eight_gpus());
    let texts = heard(&window);
    assert!(
        texts.iter().any(|text| text.starts_with("No segments at this moment. The program has 8 allocations")),
        "{texts:#?}"
    );
}

#[test]
fn what_pools_keep_is_told_by_name_though_it_has_no_map() {
    let mut trace = Trace::new(Trace::session(&["./pools"], None));
    trace.add_process(77, None);
    trace.add_device(0, 80 << 30);
    trace.now = 1_000_000;
    trace.event(Event::Object { object: Object::Pool, handle: 0xb0, device: 0, row: 1 });
    let (bytes, memory) = (24 * MIB, MemoryKind::Pool);
    trace.event(Event::Alloc { address: 1 << 32, bytes, requested: bytes, stream: 0, device: 0, row: 1, memory });
    for (pool, kept) in [(0xa0, 32 * MIB), (0xb0, 8 * MIB)] {
        trace.event(Event::PoolReserve { pool, bytes: kept, device: 0, row: 1 });
    }
    let mut window = of(&trace);
    let texts = heard(&window);
    for pool in ["pools keep 40.00 MiB, 24.00 MiB in use", "32.00 MiB", "pool 0xb0 8.00 MiB"] {
        assert!(texts.iter().any(|text| text.starts_with("pools keep") && text.contains(pool)), "{pool}: {texts:#?}");
    }
    let context = window.ctx.clone();
    let text = window.state_mut().text(&context).expect("text");
    assert!(text.contains("pools keep 40.00 MiB"), "{text}");
}

#[test]
fn the_map_as_it_looks() {
    let mut window = of(&leaking());
    click(&mut window, "softmax, 700.0 MiB, workspace");
    window.snapshot("segments");
}
