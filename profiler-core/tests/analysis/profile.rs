//! Profiles on disk: written completely or not at all, and read with suspicion.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use memscope_core::explorer::{At, Explorer, Query, RowsQuery, SegmentsQuery, Target};
use memscope_core::export::export_parquet;
use memscope_core::journal::entry::Nanoseconds;
use memscope_core::profile::{self, Profile, TABLES};
use memscope_core::report::Instant;
use memscope_core::{Error, Result};
use tempfile::TempDir;

use crate::reports::out_of_memory;
use crate::trace::training;

fn written() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("train.mscope");
    profile::write(&training().model(), &path, false).expect("written");
    (folder, path)
}

/// Opens a profile and asks for all that it can tell.
fn read_all(path: &Path) -> Result<()> {
    let profile = Profile::open(path)?;
    for instant in [Instant::Peak, Instant::End, Instant::Step(2), Instant::Time(Nanoseconds(1_025_000_000))] {
        profile.report(instant)?;
    }
    profile.verify()?;
    let mut explorer = Explorer::of_profile(&profile)?;
    for at in [At::Live, At::Peak, At::Step(2), At::Time(Nanoseconds(1_025_000_000))] {
        for target in [Target::All, Target::Device(0), Target::Process(0)] {
            let rows = Some(RowsQuery { window: 0..10, filter: "h".into(), ..RowsQuery::default() });
            let segments = Some(SegmentsQuery { slices: 5, window: 0..10, ..SegmentsQuery::default() });
            explorer.answer(&Query { target, at, steps: 0..10, rows, scopes: true, segments, ..Query::default() });
        }
    }
    Ok(())
}

/// Writes the profile again, member by member, with right checksums; `None` leaves a member out.
pub fn rebuilt(path: &Path, edit: impl Fn(&str, Vec<u8>) -> Option<Vec<u8>>) -> PathBuf {
    let mut source = zip::ZipArchive::new(std::fs::File::open(path).expect("opened")).expect("a zip");
    let target = path.with_extension("rebuilt");
    let mut out = zip::ZipWriter::new(std::fs::File::create(&target).expect("created"));
    for index in 0..source.len() {
        let mut member = source.by_index(index).expect("a member");
        let mut content = Vec::new();
        member.read_to_end(&mut content).expect("read");
        let name = member.name().expect("a name").into_owned();
        if let Some(content) = edit(&name, content) {
            let options = zip::write::SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored);
            out.start_file(name, options).expect("begun");
            out.write_all(&content).expect("written");
        }
    }
    out.finish().expect("finished");
    target
}

#[test]
fn a_full_disk_is_one_error_and_leaves_nothing() {
    // From no room at all to almost enough: each fails at another place.
    let (folder, path) = written();
    let kibibytes = std::fs::metadata(&path).expect("written").len() / 1024;
    std::fs::remove_file(&path).expect("removed");
    for limit in [0, 1, kibibytes / 2, kibibytes] {
        let program = std::env::current_exe().expect("this program");
        let test = "profile::writes_onto_a_full_disk --exact --ignored --nocapture";
        let script = format!("trap '' XFSZ; ulimit -f {limit}; exec {} {test}", program.display());
        let mut command = std::process::Command::new("bash");
        let output = command.args(["-c", &script]).env("MEMSCOPE_TEST_PROFILE", &path).output().expect("run");
        assert!(output.status.success(), "{limit} KiB: {}", String::from_utf8_lossy(&output.stdout));
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{limit} KiB: nothing is printed");
        assert_eq!(std::fs::read_dir(folder.path()).expect("a folder").count(), 0, "{limit} KiB");
    }
}

#[test]
#[ignore = "is run by the test above, with a limit on the size of files"]
fn writes_onto_a_full_disk() {
    let path = std::env::var_os("MEMSCOPE_TEST_PROFILE").expect("is set by the test above");
    let error = profile::write(&training().model(), Path::new(&path), false).expect_err("there is no room");
    let text = error.to_string();
    assert!(text.starts_with("cannot write ") && text.contains("File too large"), "{text}");
}

#[test]
fn what_exists_is_kept_unless_forced() {
    let (folder, path) = written();
    let before = std::fs::read(&path).expect("read");
    let error = profile::write(&out_of_memory().model(), &path, false).expect_err("it exists");
    assert!(matches!(error, Error::Exists { .. }), "{error}");
    assert_eq!(std::fs::read(&path).expect("read"), before);
    profile::write(&out_of_memory().model(), &path, true).expect("forced");
    assert_ne!(std::fs::read(&path).expect("read"), before);
    let left: Vec<_> =
        std::fs::read_dir(folder.path()).expect("a folder").map(|entry| entry.expect("an entry").path()).collect();
    assert_eq!(left, [path], "no temporary file stays");
    let nowhere = folder.path().join("no/such/folder/x.mscope");
    let error = profile::write(&training().model(), &nowhere, false).expect_err("there is no folder");
    assert!(error.to_string().contains("no/such/folder/x.mscope"), "{error}");
}

#[test]
fn a_file_that_is_no_profile_is_refused_with_its_name() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let cases: [(&str, &[u8]); 5] = [
        ("empty", b""),
        ("short", b"PK"),
        ("text", b"this is a text, not a profile, and long enough to be one"),
        ("zip", b"PK\x03\x04 and then nothing that makes sense"),
        ("parquet", b"PAR1PAR1"),
    ];
    for (name, content) in cases {
        let path = folder.path().join(name);
        std::fs::write(&path, content).expect("written");
        let error = read_all(&path).expect_err(name);
        assert!(error.to_string().contains(path.to_str().expect("UTF-8")), "{error}");
    }
    let error = read_all(&folder.path().join("missing")).expect_err("missing");
    assert!(matches!(error, Error::Io { .. }), "{error}");
    assert!(read_all(folder.path()).is_err(), "a folder");
}

#[test]
fn a_file_cut_short_anywhere_is_refused() {
    let (folder, path) = written();
    let whole = std::fs::read(&path).expect("read");
    let cut = folder.path().join("cut.mscope");
    for length in (0..whole.len()).step_by(61).chain(whole.len() - 30..whole.len()) {
        std::fs::write(&cut, &whole[..length]).expect("written");
        let error = read_all(&cut).expect_err("cut short");
        assert!(error.to_string().contains("cut.mscope"), "{error}");
    }
}

/// In the user's words, and with what helps: a copy is made again, and what a run left is made a profile of.
#[test]
fn what_is_cut_short_says_so_and_what_to_do() {
    let (folder, path) = written();
    let whole = std::fs::read(&path).expect("read");
    let cut = folder.path().join("cut.mscope");
    std::fs::write(&cut, &whole[..whole.len() / 2]).expect("written");
    let said = |path: &Path| read_all(path).expect_err("it is broken").to_string();
    let ends = format!("{}: the file is cut short, as by a copy or a download that broke off", cut.display());
    assert!(said(&cut).starts_with(&ends), "{}", said(&cut));
    assert!(said(&cut).contains(&format!("it ends after {} bytes", whole.len() / 2)), "{}", said(&cut));
    assert!(said(&cut).ends_with("copy it again from where it was made, or run the program again"), "{}", said(&cut));
    assert!(!said(&cut).contains("EOCD"), "{}", said(&cut));
    let session = folder.path().join("cut.mscope.session");
    std::fs::create_dir(&session).expect("made");
    let advice = format!("`memscope recover -f` makes it anew from {}", session.display());
    assert!(said(&cut).ends_with(&advice), "{}", said(&cut));
    std::fs::write(&cut, "").expect("written");
    assert_eq!(said(&cut), format!("{}: the file is empty; its session is there yet: {advice}", cut.display()));
    // The list is there, and what it says makes no sense.
    let end = whole.windows(4).rposition(|bytes| bytes == b"PK\x05\x06").expect("a zip has an end");
    let mut damaged = whole.clone();
    damaged[end + 8..end + 20].fill(0xee);
    std::fs::write(&cut, damaged).expect("written");
    assert!(said(&cut).contains("the file is damaged: ") && said(&cut).ends_with(&advice), "{}", said(&cut));
}

#[test]
fn a_changed_byte_is_noticed_or_harmless() {
    let (folder, path) = written();
    let whole = std::fs::read(&path).expect("read");
    let expected = Profile::open(&path).expect("opened").report(Instant::Peak).expect("a report");
    let changed = folder.path().join("changed.mscope");
    let mut noticed = 0;
    for position in (0..whole.len()).step_by(47) {
        let mut content = whole.clone();
        content[position] ^= 0x41;
        std::fs::write(&changed, &content).expect("written");
        if read_all(&changed).is_err() {
            noticed += 1;
        } else {
            // Members that were not asked for, and fields of the zip that mean nothing here.
            let report = Profile::open(&changed).expect("opened").report(Instant::Peak).expect("a report");
            assert_eq!(report, expected, "at byte {position}");
        }
    }
    assert!(noticed > whole.len() / 47 / 2, "{noticed} noticed");
}

#[test]
fn a_file_made_to_deceive_does_no_harm() {
    let (_folder, path) = written();
    // A fixed sequence of positions and values; checksums of the zip are right, so the tables themselves are read.
    let mut random = 88_172_645_463_325_252_u64;
    let mut next = || {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random as usize
    };
    for table in
        ["allocations", "steps", "devices", "device_rows", "names", "scopes", "processes", "markers", "telemetry"]
    {
        let member = format!("{table}.parquet");
        for _ in 0..60 {
            let (position, value) = (next(), next() as u8);
            let deceiving = rebuilt(&path, |name, mut content| {
                if name == member {
                    // Half of the changes in the footer, where all lengths are.
                    let length = content.len();
                    let at = if value & 1 == 0 { position % length } else { length - 1 - position % length.min(400) };
                    content[at] = value;
                }
                Some(content)
            });
            let _ = read_all(&deceiving);
        }
    }
}

/// Each table once, in the ways that make the decoder panic: on the reader's own thread, and on those that scan.
#[test]
fn a_panic_of_the_decoder_is_an_error_and_nothing_else() {
    const INSIDE: &str = "MEMSCOPE_TEST_INSIDE";
    const SAID: &str = "it cannot be decoded";
    if std::env::var_os(INSIDE).is_some() {
        let (_folder, path) = written();
        for member in ["steps.parquet", "allocations.parquet"] {
            // Somewhere in the footer there is a length that can be made negative.
            let error = (0..2000).find_map(|back| {
                let deceiving = rebuilt(&path, |name, mut content| {
                    if name == member {
                        let at = content.len() - 1 - back;
                        content[at] ^= 1;
                    }
                    Some(content)
                });
                read_all(&deceiving).err().map(|error| error.to_string()).filter(|error| error.contains(SAID))
            });
            println!("{}", error.expect("a change that the decoder does not expect"));
        }
        return;
    }
    let test = "profile::a_panic_of_the_decoder_is_an_error_and_nothing_else";
    let mut child = std::process::Command::new(std::env::current_exe().expect("a test knows its own path"));
    let output = child.args([test, "--exact", "--nocapture"]).env(INSIDE, "1").output().expect("started");
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{out}{err}");
    for member in ["steps.parquet", "allocations.parquet"] {
        let said = |line: &str| line.contains(&format!("{member} is damaged")) && line.ends_with(SAID);
        assert!(out.lines().any(said), "{out}");
    }
    assert_eq!(err, "", "nothing is printed of the panic");
}

#[test]
fn a_newer_version_is_told_apart_from_damage() {
    let (_folder, path) = written();
    let newer = rebuilt(&path, |name, content| {
        let text = String::from_utf8_lossy(&content).replacen("\"format_version\": 1", "\"format_version\": 7", 1);
        Some(if name == "manifest.json" { text.into_bytes() } else { content })
    });
    let error = Profile::open(&newer).err().expect("refused");
    assert!(matches!(error, Error::Version { found: 7, supported: 1, .. }), "{error}");
    let other = rebuilt(&path, |name, content| (name != "manifest.json").then_some(content));
    assert!(Profile::open(&other).err().expect("refused").to_string().contains("manifest.json is missing"));
    let wrong = rebuilt(&path, |name, content| {
        Some(if name == "manifest.json" { br#"{"format": "x", "format_version": 1}"#.to_vec() } else { content })
    });
    assert!(Profile::open(&wrong).err().expect("refused").to_string().contains("not a memscope profile"));
}

#[test]
fn a_missing_or_exchanged_table_is_named() {
    let (_folder, path) = written();
    for table in ["allocations", "steps", "devices", "names", "scopes", "processes", "device_rows"] {
        let member = format!("{table}.parquet");
        let without = rebuilt(&path, |name, content| (name != member).then_some(content));
        let error = read_all(&without).expect_err(table);
        assert!(error.to_string().contains(&format!("{member} is missing")), "{error}");
        let empty = rebuilt(&path, |name, content| Some(if name == member { Vec::new() } else { content }));
        let error = read_all(&empty).expect_err(table);
        assert!(error.to_string().contains(&format!("{member} is damaged")), "{error}");
    }
    let findings = member_of(&path, "findings.parquet");
    let exchanged =
        rebuilt(&path, |name, content| Some(if name == "steps.parquet" { findings.clone() } else { content }));
    let error = read_all(&exchanged).expect_err("exchanged");
    assert!(error.to_string().contains("the table has no column"), "{error}");
}

fn member_of(path: &Path, name: &str) -> Vec<u8> {
    let mut source = zip::ZipArchive::new(std::fs::File::open(path).expect("opened")).expect("a zip");
    let mut content = Vec::new();
    source.by_name(name).expect("a member").read_to_end(&mut content).expect("read");
    content
}

#[test]
fn an_export_is_the_same_tables() {
    let (folder, path) = written();
    let profile = Profile::open(&path).expect("opened");
    let target = folder.path().join("tables");
    let paths = export_parquet(&profile, &target, false).expect("exported");
    assert_eq!(paths.len(), TABLES.len());
    for (table, exported) in TABLES.iter().zip(&paths) {
        assert_eq!(std::fs::read(exported).expect("read"), member_of(&path, &format!("{table}.parquet")), "{table}");
    }
    assert!(matches!(export_parquet(&profile, &target, false), Err(Error::Exists { .. })));
    export_parquet(&profile, &target, true).expect("forced");
}
