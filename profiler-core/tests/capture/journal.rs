//! The journal's file: round trip, torn ends, damage, versions.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;

use memscope_core::Error;
use memscope_core::journal::entry::*;
use memscope_core::journal::{Reader, Tail, Writer};
use memscope_wire::Record;
use proptest::prelude::*;

fn write(path: &Path, entries: &[Entry]) -> Vec<u64> {
    let mut writer = Writer::create(path).unwrap();
    let mut ends = vec![writer.written()];
    for entry in entries {
        writer.push(entry).unwrap();
        writer.flush().unwrap();
        ends.push(writer.written());
    }
    ends
}

fn open(path: &Path) -> File {
    OpenOptions::new().write(true).open(path).unwrap()
}

/// Everything that can be read, in order; how the file ends; what was damaged.
fn read(path: &Path) -> (Vec<Entry>, Tail, Vec<String>) {
    let mut reader = Reader::open(path).unwrap();
    let (mut entries, mut damage) = (Vec::new(), Vec::new());
    for item in reader.by_ref() {
        match item {
            Ok(entry) => entries.push(entry),
            Err(error) => damage.push(error.to_string()),
        }
    }
    (entries, reader.tail(), damage)
}

fn records(numbers: std::ops::Range<u64>) -> Entry {
    let first_slot = numbers.start;
    Entry::Records {
        process: ProcessIndex(3),
        first_slot,
        records: numbers.map(|number| crate::writer::record(7, number)).collect(),
    }
}

/// A journal with each kind of entry.
fn all_kinds() -> Vec<Entry> {
    let session =
        SessionInfo { command: vec!["a b".into(), "ü\"\n".into()], boot_id: [200; 16], ..SessionInfo::default() };
    let device = DeviceSample {
        uuid: "53494d55".into(),
        used: Some(u64::MAX - 1),
        processes: Some(vec![ProcessSample { pid: 1, used: None }]),
        ..DeviceSample::default()
    };
    vec![
        Entry::Session(session),
        Entry::Process(ProcessInfo {
            process: ProcessIndex(3),
            pid: 9,
            parent_pid: 8,
            start_time: u64::MAX,
            exec_count: 1,
            began_ns: Some(5),
            rank: Some(0),
            world_size: Some(2),
            local_rank: Some(0),
            name: Some("SpawnProcess-1".into()),
            executable: "/bin/x".into(),
            command: vec![String::new(); 3],
        }),
        Entry::Clock(
            ProcessIndex(3),
            Calibration { first_ticks: u64::MAX, first_ns: 0, last_ticks: 1, last_ns: 1 << 63 },
        ),
        records(0..6),
        Entry::Telemetry(TelemetrySample { begin: Nanoseconds(4), time: Nanoseconds(5), devices: vec![device] }),
        Entry::Counters(
            ProcessIndex(3),
            Counters { dropped: 1, unread_ns: Some(4), uncommitted: 2, faults: 3, ended: true, closed_ns: Some(6) },
        ),
        records(6..7),
        Entry::End(SessionEnd {
            time: Nanoseconds(77),
            exit_status: Some(139),
            refusals: vec![("room".to_owned(), 2)],
            without_logs: Some(WithoutLogs {
                loaded: true,
                signal: Some(11),
                seen: Seen {
                    driver: DriverSeen::In("./train".into()),
                    passed_over: Some(PassedOver { reason: "why".into(), advice: "what".into() }),
                },
                ..WithoutLogs::default()
            }),
            outlived: vec![Survivor { pid: 7, name: "sh".into() }],
        }),
    ]
}

#[test]
fn every_kind_of_entry_comes_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal");
    write(&path, &all_kinds());
    assert_eq!(read(&path), (all_kinds(), Tail::Whole, vec![]));
}

#[test]
fn a_journal_cut_at_any_byte_gives_its_whole_entries_and_says_where_it_is_torn() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal");
    let all = all_kinds();
    let ends = write(&path, &all);
    let file = open(&path);
    for length in (0..file.metadata().unwrap().len()).rev() {
        file.set_len(length).unwrap();
        let (entries, tail, damage) = read(&path);
        let whole = ends.iter().filter(|end| **end <= length).count();
        assert_eq!(entries, all[..whole.saturating_sub(1)], "cut at {length}");
        let begin = if whole == 0 { 0 } else { ends[whole - 1] };
        let expected = if begin == length { Tail::Whole } else { Tail::Truncated { offset: begin } };
        assert_eq!((tail, damage), (expected, vec![]), "cut at {length}");
    }
}

#[test]
fn a_flipped_bit_is_never_believed_and_costs_one_entry() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal");
    let all = all_kinds();
    let ends = write(&path, &all);
    let bytes = fs::read(&path).unwrap();
    let file = open(&path);
    for bit in ends[0] as usize * 8..bytes.len() * 8 {
        let at = bit / 8;
        file.write_all_at(&[bytes[at] ^ 1 << (bit % 8)], at as u64).unwrap();
        let hit = ends.iter().rposition(|end| *end <= bit as u64 / 8).unwrap();
        let mut expected = all.clone();
        expected.remove(hit);
        let (entries, tail, damage) = read(&path);
        file.write_all_at(&bytes[at..=at], at as u64).unwrap();
        assert_eq!(entries, expected, "bit {bit}");
        if hit + 1 == all.len() {
            assert_eq!((tail, damage), (Tail::Truncated { offset: ends[hit] }, vec![]), "bit {bit}");
        } else {
            assert_eq!(tail, Tail::Whole);
            assert_eq!(damage.len(), 1, "bit {bit}");
            assert!(damage[0].contains(&format!("damaged at offset {}:", ends[hit])), "bit {bit}: {}", damage[0]);
        }
    }
}

#[test]
fn a_flipped_bit_in_the_file_header_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal");
    write(&path, &all_kinds());
    let bytes = fs::read(&path).unwrap();
    for bit in 0..12 * 8 {
        let mut changed = bytes.clone();
        changed[bit / 8] ^= 1 << (bit % 8);
        fs::write(&path, &changed).unwrap();
        match Reader::open(&path).err() {
            Some(Error::Format { .. }) => assert!(bit < 64),
            Some(Error::Version { found, .. }) => assert!(bit >= 64 && found != 1),
            other => panic!("bit {bit}: {other:?}"),
        }
    }
}

#[test]
fn a_journal_that_grows_is_followed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal");
    let mut writer = Writer::create(&path).unwrap();
    let mut reader = Reader::open(&path).unwrap();
    assert!(reader.next().is_none());
    for entry in all_kinds() {
        writer.push(&entry).unwrap();
        assert!(reader.next().is_none(), "not flushed");
        writer.flush().unwrap();
        assert_eq!(reader.next().unwrap().unwrap(), entry);
        assert!(reader.next().is_none());
        assert_eq!((reader.tail(), reader.offset()), (Tail::Whole, writer.written()));
    }
}

#[test]
fn more_records_than_an_entry_takes_are_split() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal");
    write(&path, &[records(5..40_005)]);
    let mut taken = Vec::new();
    for entry in read(&path).0 {
        let Entry::Records { first_slot, records, .. } = entry else { panic!() };
        assert_eq!(first_slot, 5 + taken.len() as u64);
        taken.extend(records);
    }
    assert_eq!(taken.len(), 40_000);
    assert_eq!(taken[39_999], crate::writer::record(7, 40_004));
}

#[test]
fn a_full_disk_leaves_whole_entries_and_loses_none_of_those_that_wait() {
    // /dev/full cannot be truncated or locked like a file; a limit on the file's size acts on a real one.
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal");
    let script = format!(
        "trap '' XFSZ; ulimit -f 1; exec {} --exact journal::writes_until_the_limit --ignored --nocapture",
        std::env::current_exe().unwrap().display()
    );
    let output = std::process::Command::new("bash").args(["-c", &script]).env("JOURNAL_PATH", &path).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    let (entries, tail, damage) = read(&path);
    assert_eq!((tail, damage), (Tail::Whole, vec![]));
    assert_eq!(entries, [Entry::End(SessionEnd::default())], "what was written before the disk was full");
}

#[test]
#[ignore = "is run by the test above, with a limit on the size of files"]
fn writes_until_the_limit() {
    let path = std::env::var_os("JOURNAL_PATH").expect("is set by the test above");
    let mut writer = Writer::create(Path::new(&path)).unwrap();
    writer.push(&Entry::End(SessionEnd::default())).unwrap();
    writer.flush().unwrap();
    let written = writer.written();
    writer.push(&records(0..5_000)).unwrap();
    for _ in 0..2 {
        let error = writer.flush().unwrap_err();
        assert!(matches!(error, Error::Io { action: "write the journal", .. }), "{error}");
        assert_eq!(writer.written(), written);
        assert_eq!(fs::metadata(&path).unwrap().len(), written);
    }
}

fn any_record() -> impl Strategy<Value = Record> {
    (any::<u32>(), any::<u32>(), any::<u64>(), any::<[u64; 6]>()).prop_map(|(head, thread, ticks, words)| Record {
        head,
        thread,
        ticks,
        words,
    })
}

fn any_entry() -> impl Strategy<Value = Entry> {
    let telemetry =
        (any::<u64>(), any::<u64>(), proptest::collection::vec(any::<(Option<u64>, Option<u32>, String)>(), 0..3));
    prop_oneof![
        (any::<u32>(), 0..u64::MAX - 100, proptest::collection::vec(any_record(), 1..50)).prop_map(
            |(process, first_slot, records)| Entry::Records { process: ProcessIndex(process), first_slot, records }
        ),
        any::<(u32, [u64; 4])>().prop_map(|(process, [a, b, c, d])| {
            let clock = Calibration { first_ticks: a, first_ns: b, last_ticks: c, last_ns: d };
            Entry::Clock(ProcessIndex(process), clock)
        }),
        any::<(u32, u64, Option<u64>, u64, u64, bool, Option<u64>)>().prop_map(
            |(process, dropped, unread_ns, uncommitted, faults, ended, closed_ns)| {
                let counters = Counters { dropped, unread_ns, uncommitted, faults, ended, closed_ns };
                Entry::Counters(ProcessIndex(process), counters)
            }
        ),
        telemetry.prop_map(|(begin, time, devices)| {
            let device = |(used, power, uuid): (Option<u64>, Option<u32>, String)| DeviceSample {
                uuid,
                used,
                power,
                processes: used.map(|used| vec![ProcessSample { pid: 1, used: Some(used) }]),
                ..DeviceSample::default()
            };
            let devices = devices.into_iter().map(device).collect();
            Entry::Telemetry(TelemetrySample { begin: Nanoseconds(begin), time: Nanoseconds(time), devices })
        }),
        any::<(u64, Option<i32>)>().prop_map(|(time, exit_status)| Entry::End(SessionEnd {
            time: Nanoseconds(time),
            exit_status,
            ..SessionEnd::default()
        })),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_entries_come_back(entries in proptest::collection::vec(any_entry(), 0..20)) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal");
        write(&path, &entries);
        prop_assert_eq!(read(&path), (entries, Tail::Whole, vec![]));
    }

    #[test]
    fn any_bytes_behind_the_header_are_read_without_a_panic(bytes: Vec<u8>, from in 0_usize..400, flips: Vec<u16>) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal");
        write(&path, &all_kinds());
        let mut file = fs::read(&path).unwrap();
        let from = 16 + from % (file.len() - 16);
        file.truncate(from);
        file.extend_from_slice(&bytes);
        for flip in flips {
            let at = 16 + flip as usize % (file.len() - 16).max(1);
            if let Some(byte) = file.get_mut(at) {
                *byte = byte.wrapping_add((flip as u8).wrapping_add(1));
            }
        }
        fs::write(&path, &file).unwrap();
        read(&path);
    }
}
