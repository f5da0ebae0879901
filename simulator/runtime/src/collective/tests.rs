//! Ranks of one process with memories of their own, that meet in a folder.

use super::arithmetic::{Kind, Operation};
use super::meeting::Meeting;
use super::*;
use std::cell::RefCell;
use std::collections::BTreeMap;

const FLOAT: Kind = Kind(7);
const SUM: Operation = Operation(0);

/// Bytes that are known, one by one.
#[derive(Default)]
struct Known(RefCell<BTreeMap<u64, u8>>);

impl Memory for Known {
    fn look(&self, address: u64, bytes: usize) -> Option<Vec<u8>> {
        (address..address + bytes as u64).map(|at| self.0.borrow().get(&at).copied()).collect()
    }
    fn note(&self, address: u64, bytes: &[u8]) {
        self.0.borrow_mut().extend((address..).zip(bytes.iter().copied()));
    }
    fn forget(&self, address: u64, bytes: usize) {
        self.0.borrow_mut().retain(|at, _| !(address..address + bytes as u64).contains(at));
    }
}

struct Rank {
    desk: Desk,
    group: &'static Group,
    memory: Known,
}

impl Rank {
    fn call(&self, call: Call, send: u64, receive: u64, bytes: usize) -> Mark {
        self.desk.call(self.group, call, Buffers { send, receive, bytes }, &self.memory)
    }

    /// What the program reads.
    fn read(&self, address: u64, bytes: usize) -> Option<Vec<u8>> {
        self.desk.settle(&[(address, bytes)], &self.memory);
        self.memory.look(address, bytes)
    }

    fn write(&self, address: u64, bytes: &[u8]) {
        self.desk.settle(&[(address, bytes.len())], &self.memory);
        self.memory.note(address, bytes);
    }
}

/// So many ranks, whose folder is that of a session of this test's.
fn ranks<const N: usize>(name: u64) -> [Rank; N] {
    let folder = std::env::temp_dir().join(format!("memscope-collectives-{}-{name}", std::process::id()));
    std::array::from_fn(|rank| {
        let meeting = (N > 1).then(|| Meeting::join_in(folder.clone(), name, N, rank).unwrap());
        let group = Box::leak(Box::new(Group { ranks: N, rank, name, meeting }));
        Rank { desk: Desk::new(), group, memory: Known::default() }
    })
}

fn floats(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_ne_bytes()).collect()
}

#[test]
fn a_sum_of_what_the_ranks_know_is_known() {
    let all = ranks::<3>(11);
    for (rank, value) in all.iter().zip([1.0, 2.0, 4.0]) {
        rank.write(100, &floats(&[value, -value]));
        rank.call(Call::AllReduce(FLOAT, SUM), 100, 100, 8);
    }
    for rank in &all {
        assert_eq!(rank.read(100, 8), Some(floats(&[7.0, -7.0])));
    }
}

#[test]
fn each_collective_gives_each_rank_its_own() {
    let [one, other] = ranks::<2>(12);
    let both = [(&one, [1, 2]), (&other, [3, 4])];
    for (rank, bytes) in both {
        rank.write(0, &bytes);
    }
    let bytes = Kind(1);
    let table: [(Call, usize, [&[u8]; 2]); 7] = [
        (Call::AllGather, 2, [&[1, 2, 3, 4], &[1, 2, 3, 4]]),
        (Call::AllToAll, 1, [&[1, 3], &[2, 4]]),
        (Call::ReduceScatter(bytes, SUM), 1, [&[4], &[6]]),
        (Call::Broadcast(1), 2, [&[3, 4], &[3, 4]]),
        (Call::Gather(0), 2, [&[1, 2, 3, 4], &[]]),
        (Call::Scatter(0), 1, [&[1], &[2]]),
        (Call::Reduce(bytes, Operation(2), 1), 2, [&[], &[3, 4]]),
    ];
    for (call, share, expected) in table {
        for (rank, _) in both {
            rank.write(50, &[9, 9, 9, 9]);
            rank.call(call, 0, 50, share);
        }
        for ((rank, _), expected) in both.into_iter().zip(expected) {
            let expected = [expected, &[9, 9, 9, 9][expected.len()..]].concat();
            assert_eq!(rank.read(50, 4), Some(expected), "{call:?}");
        }
    }
}

#[test]
fn what_one_does_not_know_nobody_does_and_nobody_waits() {
    let [one, other] = ranks::<2>(13);
    one.write(0, &[1]);
    one.write(8, &[7]);
    // The other has not called yet: this returns.
    other.call(Call::AllReduce(Kind(1), SUM), 0, 0, 1);
    assert_eq!(other.read(0, 1), None);
    one.call(Call::AllReduce(Kind(1), SUM), 0, 0, 1);
    assert_eq!(one.read(0, 1), None);
    assert_eq!(one.read(8, 1), Some(vec![7]), "what lies beside is still known");
    let large = vec![1; LARGEST + 1];
    one.write(1000, &large);
    one.call(Call::Broadcast(0), 1000, 1000, large.len());
    other.call(Call::Broadcast(0), 1000, 1000, large.len());
    assert_eq!(other.read(1000, large.len()), None);
}

#[test]
fn what_a_kernel_ran_over_is_forgotten() {
    let [one, other] = ranks::<2>(14);
    one.call(Call::Broadcast(1), 0, 0, 1);
    // A kernel: on its rank the result is stale, and nobody is waited for.
    one.desk.forget();
    assert_eq!(one.read(0, 1), None);
    other.write(0, &[5]);
    other.call(Call::Broadcast(1), 0, 0, 1);
    assert_eq!(other.read(0, 1), Some(vec![5]));
}

#[test]
fn results_go_on_into_the_next_collective_and_under_later_writes() {
    let [one, other] = ranks::<2>(15);
    for (rank, value) in [(&one, 1), (&other, 2)] {
        rank.write(0, &[value]);
        rank.call(Call::AllReduce(Kind(1), SUM), 0, 0, 1);
    }
    one.call(Call::AllReduce(Kind(1), SUM), 0, 4, 1);
    other.call(Call::AllReduce(Kind(1), SUM), 0, 4, 1);
    other.write(4, &[77]);
    assert_eq!((one.read(4, 1), other.read(4, 1)), (Some(vec![6]), Some(vec![77])));
}

#[test]
fn messages_come_in_the_order_in_which_they_were_sent() {
    let [one, other] = ranks::<2>(16);
    other.desk.receive(other.group, 0, (0, 1), &other.memory);
    other.desk.receive(other.group, 0, (8, 1), &other.memory);
    for (at, value) in [(0, 3), (1, 4)] {
        one.write(at, &[value]);
        one.desk.send(one.group, 1, (at, 1), &one.memory);
    }
    assert_eq!((other.read(8, 1), other.read(0, 1)), (Some(vec![4]), Some(vec![3])));
}

#[test]
fn one_rank_alone_needs_nobody() {
    let [alone] = ranks::<1>(17);
    alone.write(0, &floats(&[3.0]));
    alone.call(Call::AllReduce(FLOAT, Operation(4)), 0, 0, 4);
    alone.call(Call::AllGather, 0, 8, 4);
    assert_eq!(alone.read(8, 4), Some(floats(&[3.0])));
}

#[test]
fn a_communicator_is_split_by_colour_and_ordered_by_key() {
    let all = ranks::<3>(18);
    let split = std::thread::scope(|scope| {
        let of = |rank: usize, colour, key| {
            let group = all[rank].group;
            scope.spawn(move || group.split(colour, key).map(|group| (group.name, group.ranks, group.rank)))
        };
        [of(0, 5, 9), of(1, 6, 0), of(2, 5, 1)].map(|one| one.join().unwrap())
    });
    let [Some(first), Some(second), Some(third)] = split else { panic!("{split:?}") };
    assert_eq!([(first.1, first.2), (second.1, second.2), (third.1, third.2)], [(2, 1), (1, 0), (2, 0)]);
    assert!(first.0 == third.0 && first.0 != second.0);
}

#[test]
fn streams_and_events_come_after_what_was_put_on_them() {
    let [one, other] = ranks::<2>(19);
    // The other is of another process, which is there: init's.
    one.group.meeting.as_ref().unwrap().stands_for(1, 1);
    let order = Order::new();
    let [compute, communication, beside] = [1, 2, 3].map(Place::Stream);
    let [before, after, late] = [11, 12, 13].map(Place::Event);
    order.record(before, communication);
    order.put(communication, one.call(Call::AllReduce(FLOAT, SUM), 0, 0, 4));
    order.record(after, communication);
    order.record(late, compute);
    assert!(order.is_done(before) && !order.is_done(after) && !order.is_done(communication));
    assert!(order.is_done(compute) && order.is_done(late), "nothing was put there");
    order.wait(before);
    order.wait(compute);
    order.follow(compute, after);
    order.record(late, compute);
    assert!(!order.is_done(compute) && !order.is_done(late) && order.is_done(beside));
    order.record(after, beside);
    assert!(order.is_done(after), "it was recorded anew");
    // A second one, to which nobody has come when the first is done.
    order.put(communication, one.call(Call::Broadcast(0), 0, 0, 4));
    other.call(Call::AllReduce(FLOAT, SUM), 0, 0, 4);
    order.wait(compute);
    assert!(order.is_done(late) && !order.is_done(communication));
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| order.wait_for_all());
        std::thread::sleep(std::time::Duration::from_millis(20));
        assert!(!waiting.is_finished());
        other.call(Call::Broadcast(0), 0, 0, 4);
    });
    assert!(order.is_done(communication) && !order.any(), "nothing is kept of what is done");
}

#[test]
fn who_receives_comes_after_who_sends() {
    let [one, other] = ranks::<2>(20);
    one.group.meeting.as_ref().unwrap().stands_for(1, 1);
    let (order, stream) = (Order::new(), Place::Stream(0));
    for at in [0, 8] {
        order.put(stream, one.desk.receive(one.group, 1, (at, 1), &one.memory));
    }
    other.desk.send(other.group, 0, (0, 1), &other.memory);
    assert!(!order.is_done(stream), "one of two");
    other.desk.send(other.group, 0, (0, 1), &other.memory);
    assert!(order.is_done(stream));
}
