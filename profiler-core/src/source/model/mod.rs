//! The log between its writers and its reader, in every order of their steps that a weak memory allows (loom).
//!
//! Owns: what must hold. The writer's steps ([`memscope_wire::protocol`]) and the reader's ([`super::drain`], [`super::growth`]) run as
//! they are, on a log in the memory of the model checker (memory.rs, reader.rs). Refuses: a copy of either. What the kernel does is modelled as
//! little ordered as can be: a read of the file is relaxed loads, an allocation a relaxed store.
//!
//! Each claim has its counterpart, in which one ordering is weakened and the model must find what goes wrong.

mod memory;
mod reader;

use std::sync::atomic::Ordering::Relaxed;

use loom::sync::Arc;
use loom::thread;
use memory::{CHUNK, Log, MOST_UNREAD, SLOTS, Weak, Writer};
use reader::Reader;

/// Goes through every order in which a thread that could go on is stopped at most so many times: 1 or 2 find all that has been
/// found with more. `MEMSCOPE_TEST_SWITCHES` allows that many more in all tests, which takes minutes.
fn check(stops: usize, body: impl Fn() + Sync + Send + 'static) {
    let more = std::env::var("MEMSCOPE_TEST_SWITCHES").map_or(0, |text| text.parse().expect("a number"));
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(stops + more);
    builder.check(body);
}

/// What a writer does: events, and after how many steps it is killed.
type Work = (u64, Option<u32>);

/// Writers, and a reader that looks while they write. `meanwhile` is what else it does.
fn run<const N: usize>(weak: Weak, room: u64, writers: [Work; N], meanwhile: impl FnOnce(Reader) -> Reader) -> Reader {
    let log = Log::new(weak, room);
    let mut reader = Reader::new(&log, 0, Vec::new());
    let writers = writers.map(|(events, steps)| {
        let log = Arc::clone(&log);
        thread::spawn(move || Writer::new(&log, steps).work(events))
    });
    reader = meanwhile(reader);
    reader.look(false);
    reader.finish(writers.map(|writer| writer.join().expect("it ended")).into())
}

/// All is recorded.
fn assert_whole(reader: &Reader, events: usize) {
    assert_eq!((reader.records.len(), reader.drain.uncommitted), (events, 0));
    assert_eq!(reader.log.dropped.load(Relaxed), 0);
}

#[test]
fn what_is_committed_is_read_once_and_whole() {
    check(2, || assert_whole(&run(Weak::Nothing, 3, [(1, None); 2], |reader| reader), 2));
    check(2, || assert_whole(&run(Weak::Nothing, 3, [(3, None)], |reader| reader), 3));
    check(1, || assert_whole(&run(Weak::Nothing, 3, [(2, None); 2], |reader| reader), 4));
}

#[test]
#[should_panic(expected = "is torn")]
fn a_commit_without_its_order_is_found() {
    check(1, || drop(run(Weak::Commit, 3, [(1, None)], |reader| reader)));
}

#[test]
#[should_panic(expected = "is torn")]
fn a_second_look_without_its_order_is_found() {
    check(1, || drop(run(Weak::SecondLook, 3, [(1, None)], |reader| reader)));
}

#[test]
fn writers_and_memscope_may_grow_the_log_at_once() {
    let grow = |reader: Reader| {
        reader.grow(2 * CHUNK);
        reader
    };
    check(1, move || assert_whole(&run(Weak::Nothing, 3, [(2, None), (1, None)], grow), 3));
    check(2, move || assert_whole(&run(Weak::Nothing, 3, [(3, None)], grow), 3));
}

#[test]
#[should_panic(expected = "has no space")]
fn space_that_is_told_of_without_its_order_is_found() {
    let grow = |reader: Reader| {
        reader.grow(2 * CHUNK);
        reader
    };
    check(2, move || drop(run(Weak::Raise, 3, [(3, None)], grow)));
}

#[test]
fn what_finds_no_room_is_counted() {
    check(1, || {
        let reader = run(Weak::Nothing, 1, [(2, None), (1, None)], |reader| reader);
        assert_eq!((reader.records.len(), reader.log.dropped.load(Relaxed)), (2, 1));
    });
}

/// Writers of a log without a reader, until one comes and does what `meanwhile` does. Everything is read or counted. How many were
/// read.
fn forsaken<const N: usize>(writers: [Work; N], meanwhile: impl FnOnce(&mut Reader)) -> usize {
    let log = Log::new(Weak::Nothing, 3);
    log.reader.store(0, Relaxed);
    let mut reader = Reader::new(&log, 0, Vec::new());
    let events: u64 = writers.iter().map(|(events, _)| events).sum();
    let writers = writers.map(|(events, steps)| {
        let log = Arc::clone(&log);
        thread::spawn(move || Writer::new(&log, steps).work(events))
    });
    meanwhile(&mut reader);
    let reader = reader.finish(writers.map(|writer| writer.join().expect("it ended")).into());
    let read = reader.records.iter().filter(|record| record.head != 0).count();
    assert_eq!(read as u64 + reader.log.dropped.load(Relaxed), events);
    read
}

#[test]
fn a_log_without_a_reader_ends_at_its_bound_and_counts_what_comes_later() {
    check(1, || assert_eq!(forsaken([(3, None), (2, None)], |_| {}), MOST_UNREAD as usize));
}

#[test]
fn a_log_without_a_reader_goes_on_when_one_comes() {
    // The most that was read of five events, and the least: a reader that comes late finds what the bound allows.
    for writers in [vec![5], vec![3, 2]] {
        let seen = std::sync::Arc::new(std::sync::Mutex::new(std::collections::BTreeSet::new()));
        let read = std::sync::Arc::clone(&seen);
        check(1, move || {
            let come = |reader: &mut Reader| {
                reader.log.reader.store(1, Relaxed);
                reader.look(false);
            };
            let count = match writers[..] {
                [one] => forsaken([(one, None)], come),
                _ => forsaken([(writers[0], None), (writers[1], None)], come),
            };
            read.lock().expect("whole").insert(count);
        });
        let seen = seen.lock().expect("whole");
        assert_eq!((seen.first(), seen.last()), (Some(&(MOST_UNREAD as usize)), Some(&5)), "{seen:?}");
    }
}

#[test]
fn what_was_read_makes_room_though_the_reader_is_gone_again() {
    let seen = std::sync::Arc::new(std::sync::Mutex::new(std::collections::BTreeSet::new()));
    let read = std::sync::Arc::clone(&seen);
    check(2, move || {
        let count = forsaken([(5, None)], |reader| reader.look(false));
        read.lock().expect("whole").insert(count);
    });
    let seen = seen.lock().expect("whole");
    assert_eq!(
        (seen.first(), seen.last()),
        (Some(&(MOST_UNREAD as usize)), Some(&(2 * MOST_UNREAD as usize))),
        "{seen:?}"
    );
}

/// Steps of a writer of one event, and of one of two that grows the log.
const LAST_STEPS: [u32; 2] = [8, 20];

#[test]
fn a_process_may_be_killed_at_any_step() {
    for first in 0..=LAST_STEPS[0] {
        for second in 0..=LAST_STEPS[0] {
            check(1, move || drop(run(Weak::Nothing, 3, [(1, Some(first)), (1, Some(second))], |reader| reader)));
        }
    }
    for steps in 0..=LAST_STEPS[1] {
        check(2, move || drop(run(Weak::Nothing, 3, [(2, Some(steps))], |reader| reader)));
    }
}

#[test]
fn kills_come_at_every_step() {
    // With no step nothing is committed, with these many everything.
    for (events, last) in [1, 2].into_iter().zip(LAST_STEPS) {
        let committed = |steps| {
            let most = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
            let seen = std::sync::Arc::clone(&most);
            check(0, move || {
                let reader = run(Weak::Nothing, 3, [(events, Some(steps))], |reader| reader);
                let committed = reader.records.iter().filter(|record| record.head != 0).count();
                seen.fetch_max(committed, Relaxed);
            });
            most.load(Relaxed) as u64
        };
        assert_eq!((committed(0), committed(last)), (0, events), "{events} events");
    }
}

#[test]
fn another_memscope_goes_on_where_the_first_was_killed() {
    let kill = |mut reader: Reader| {
        reader.look(false);
        Reader::new(&reader.log, reader.records.len() as u64, reader.records)
    };
    check(1, move || assert_whole(&run(Weak::Nothing, 3, [(3, None)], kill), 3));
    check(1, move || assert_whole(&run(Weak::Nothing, 3, [(1, None); 2], kill), 2));
}

/// A writer that stops for long after its claim, while another fills the log.
fn overtake(is_thought_gone: bool) {
    check(1, move || {
        let log = Log::new(Weak::Nothing, 3);
        let slow = Arc::clone(&log);
        let slow = thread::spawn(move || Writer::new(&slow, None).work(1));
        let fast = Writer::new(&log, None).work(SLOTS as u64 - 1);
        let mut reader = Reader::new(&log, 0, Vec::new());
        for _ in 0..2 {
            reader.look(is_thought_gone);
        }
        let slow = slow.join().expect("it ended");
        let given_up = reader.records.iter().filter(|record| record.head == 0).count();
        assert!(given_up <= slow.0.len(), "what the fast one has committed is read");
        assert_eq!(fast.0.len(), SLOTS - 1);
    });
}

#[test]
fn memory_in_which_a_slow_writer_may_still_write_is_not_given_back() {
    overtake(false);
}

#[test]
#[should_panic(expected = "Causality violation")]
fn memory_that_is_given_back_too_early_is_found() {
    overtake(true);
}
