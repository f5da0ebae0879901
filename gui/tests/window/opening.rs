//! Files and sessions as they are opened, on threads of their own.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant as Clock};

use eframe::egui::{self, DroppedFile};
use egui_kittest::kittest::{NodeT, Queryable};
use memscope_core::explorer::{At, Explorer, Query, Running, overview_of};
use memscope_core::journal::Writer;
use memscope_core::journal::entry::Entry;
use memscope_core::keep::Keep;
use memscope_core::profile::{Profile, Reading};
use memscope_core::report::Instant;
use memscope_core::session::SessionFolder;
use memscope_gui::app::App;
use memscope_gui::document::Document;
use memscope_gui::settings::Settings;

use crate::sessions::{out_of_memory, training};
use crate::window::{self, Window, heard};

/// Longest wait for a thread.
const LONG: Duration = Duration::from_secs(60);

fn profile(entries: &[Entry], path: &Path) {
    let mut model = memscope_core::allocation::Model::new();
    for entry in entries {
        model.apply(entry);
    }
    memscope_core::profile::write(&model, path, false).expect("written");
}

/// A window that opens this.
fn opens(path: &Path) -> Window {
    let mut app = App::default();
    app.open(path, &Default::default());
    window::with_steps(app)
}

/// Draws frames until something is seen.
fn until(window: &mut Window, what: &str, mut seen: impl FnMut(&Window) -> bool) {
    let begin = Clock::now();
    while !seen(window) {
        assert!(begin.elapsed() < LONG, "{what} is never seen; there is {:#?}", heard(window));
        std::thread::sleep(Duration::from_millis(5));
        window.step();
    }
}

fn has(text: &'static str) -> impl FnMut(&Window) -> bool {
    move |window| window.query_all_by_label_contains(text).next().is_some()
}

#[test]
fn a_profile_is_opened_while_the_window_is_there_already() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("train.mscope");
    profile(&out_of_memory().entries, &path);
    let mut window = opens(&path);
    assert!(window.query_by_label("train.mscope").is_some(), "the first frame has its tab");
    until(&mut window, "what holds memory", has("saved for backward (tagged)"));
    until(&mut window, "where memory ran out", |window| {
        matches!(window.state().document().expect("it is open").answer().at, At::Refused(_))
    });
    assert_eq!(window.state().settings().recent, [path]);
}

/// What is seen of a large profile before its rows are read: its peak, as the report has it, and how far the reading is.
#[test]
fn the_peak_and_the_progress_are_seen_while_allocations_are_read() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("train.mscope");
    profile(&training().entries, &path);
    let open = Profile::open(&path).expect("a profile");
    let peak = open.report(Instant::Peak).expect("a report").peak.expect("a peak");
    let reading = Arc::new(Reading::default());
    let mut app = App::default();
    let overview = overview_of(&open).expect("an overview");
    app.add(Document::of_overview("train.mscope", overview, Arc::clone(&reading)));
    let mut window = window::with_steps(app);
    let said = |window: &Window, label: &str| assert!(heard(window).contains(label), "{label}: {:#?}", heard(window));
    let [weights, activations] = [peak.by_category.weights, peak.by_category.activations].map(gibibytes);
    assert!(!weights.starts_with("0.00") && !activations.starts_with("0.00"), "{weights}, {activations}");
    said(&window, &format!("weights: {weights}"));
    said(&window, &format!("activations: {activations}"));
    assert!(window.query_by_label_contains("Peak of live bytes, at ").is_some(), "{:#?}", heard(&window));
    assert!(window.query_by_label_contains("End, at ").is_none(), "{:#?}", heard(&window));

    let all = open.allocations();
    let is_told = |window: &mut Window, label: &str| {
        window.step();
        let node = window.get_by_label(label);
        assert_eq!(node.accesskit_node().live(), egui::accesskit::Live::Polite, "{label} is told when it changes");
    };
    is_told(&mut window, &format!("reading 0 of {all} allocations"));
    reading.add(all - 1);
    is_told(&mut window, &format!("reading {} of {all} allocations", all - 1));
    reading.add(1);
    is_told(&mut window, &format!("adding up {all} allocations"));
}

#[test]
fn what_is_only_summed_is_not_waited_for() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("kept.mscope");
    profile(&training().kept_entries(Keep::Steps(Some(6), Some(7)), 50), &path);
    let open = Profile::open(&path).expect("a profile");
    let overview = overview_of(&open).expect("an overview");
    let reading = Reading::default();
    Explorer::of_profile_counted(&open, &reading).expect("read");
    assert_eq!(overview.session.to_read, reading.count());
    let all = training().explorer().answer(&Query::default()).session.allocations;
    assert_eq!(overview.session.allocations, all);
    assert!(reading.count() < all);
}

/// As the window writes so many bytes, where they are 1 GiB to 10 GiB.
fn gibibytes(bytes: u64) -> String {
    format!("{:.2} GiB", bytes as f64 / f64::from(1 << 30))
}

/// A file as a window system drops it.
#[derive(Debug)]
struct Dropped(std::path::PathBuf);

impl DroppedFile for Dropped {
    fn path(&self) -> &Path {
        &self.0
    }

    fn bytes(&self) -> Result<Vec<u8>, String> {
        fs::read(&self.0).map_err(|error| error.to_string())
    }
}

#[test]
fn files_that_are_dropped_become_tabs_and_each_only_once() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let paths = ["a.mscope", "b.mscope"].map(|name| folder.path().join(name));
    paths.iter().for_each(|path| profile(&out_of_memory().entries, path));
    let mut window = window::with_steps(App::default());
    for path in [&paths[0], &paths[1], &paths[0]] {
        window.input_mut().dropped_files = vec![std::sync::Arc::new(Dropped(path.clone()))];
        window.step();
        window.input_mut().dropped_files.clear();
    }
    until(&mut window, "what holds memory", has("saved for backward (tagged)"));
    assert_eq!(window.state().document().expect("it is open").path, paths[0]);
    for name in ["Close a.mscope", "Close b.mscope"] {
        assert_eq!(window.query_all_by_label(name).count(), 1, "{name}");
    }
}

#[test]
fn what_cannot_be_opened_is_said_with_its_path() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let whole = folder.path().join("whole.mscope");
    profile(&out_of_memory().entries, &whole);
    let bytes = fs::read(&whole).expect("it is there");
    let folder = folder.path();
    fs::create_dir(folder.join("folder")).expect("made");
    for (name, content, words) in [
        ("missing.mscope", None, "there is no file"),
        ("folder", None, "is a folder, but not that of a session"),
        ("empty.mscope", Some(&b""[..]), "the file is empty"),
        ("text.mscope", Some(&b"no profile at all"[..]), "this is not a memscope profile"),
        ("short.mscope", Some(&bytes[..bytes.len() / 2]), "the file is cut short"),
    ] {
        let path = folder.join(name);
        if let Some(content) = content {
            fs::write(&path, content).expect("written");
        }
        let mut window = opens(&path);
        until(&mut window, name, has("This cannot be opened"));
        let shown = path.display().to_string();
        let says = heard(&window).into_iter().find(|text| text.contains(&shown) && text.contains(words));
        assert!(says.is_some(), "{name}: {words} is not said; there is {:#?}", heard(&window));
    }
}

#[test]
fn what_never_opened_is_not_among_the_files_that_were_opened_last() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let paths = ["broken.mscope", "whole.mscope"].map(|name| folder.path().join(name));
    fs::write(&paths[0], "no profile").expect("written");
    profile(&out_of_memory().entries, &paths[1]);
    let mut window = opens(&paths[0]);
    until(&mut window, "that it is broken", has("This cannot be opened"));
    window.state_mut().open(&folder.path().join("missing.mscope"), &Default::default());
    until(&mut window, "that it is missing", has("there is no file"));
    window.state_mut().open(&paths[1], &Default::default());
    until(&mut window, "the whole one", has("Out of memory: 6.00 GiB refused"));
    assert_eq!(window.state().settings().recent, [paths[1].clone()]);
}

/// A session ends between two windows, or while its name is typed: its profile stands in its place.
#[test]
fn a_session_that_has_ended_is_opened_as_its_profile() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (ended, other) = (folder.path().join("ended.mscope"), folder.path().join("other.mscope"));
    let session = folder.path().join("ended.mscope.session");
    profile(&out_of_memory().entries, &ended);
    profile(&training().entries, &other);
    let mut window = opens(&session);
    until(&mut window, "what it ended with", has("Out of memory: 6.00 GiB refused"));
    assert_eq!(window.state().document().expect("it is open").path, ended);
    assert_eq!(window.state().settings().recent, std::slice::from_ref(&ended));
    let tabs = vec![other, session.clone()];
    let mut app = App::new(Settings { tabs, shown: Some(session), ..Settings::default() });
    app.begin(&[], false, &Default::default());
    let mut window = window::with_steps(app);
    until(&mut window, "what was shown last", has("Out of memory: 6.00 GiB refused"));
    assert!(
        window.query_by_label("Close other.mscope").is_some() && window.query_by_label("Close ended.mscope").is_some()
    );
}

/// The window is started with a file's name: it is a further tab.
#[test]
fn tabs_that_were_kept_stay_beside_a_file_that_is_named() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let paths = ["a.mscope", "b.mscope", "c.mscope"].map(|name| folder.path().join(name));
    let [a, b, c] = &paths;
    paths.iter().for_each(|path| profile(&out_of_memory().entries, path));
    let gone = folder.path().join("gone.mscope");
    let kept = Settings { tabs: vec![a.clone(), gone, b.clone()], shown: Some(a.clone()), ..Settings::default() };
    let begin = |named: &[std::path::PathBuf], compares: bool| {
        let mut app = App::new(kept.clone());
        app.begin(named, compares, &Default::default());
        if compares {
            app.show_view("Diff");
        }
        window::with_steps(app)
    };
    let tabs = |window: &Window| {
        let named = |name: &&str| window.query_by_label(&format!("Close {name}")).is_some();
        ["a.mscope", "b.mscope", "c.mscope", "gone.mscope"].into_iter().filter(named).collect::<Vec<_>>()
    };
    let shown = |window: &Window| window.state().document().expect("one").path.clone();
    let mut window = begin(std::slice::from_ref(c), false);
    until(&mut window, "the third", has("Out of memory: 6.00 GiB refused"));
    assert_eq!((tabs(&window), shown(&window)), (vec!["a.mscope", "b.mscope", "c.mscope"], c.clone()));
    // One that is not looked at is not read, and is once it is.
    window.get_by_label("a.mscope").click();
    window.step();
    until(&mut window, "the first", has("Out of memory: 6.00 GiB refused"));
    assert_eq!(shown(&window), *a);

    let mut window = begin(std::slice::from_ref(b), false);
    until(&mut window, "the second", has("Out of memory: 6.00 GiB refused"));
    assert_eq!((tabs(&window), shown(&window)), (vec!["a.mscope", "b.mscope"], b.clone()), "it is open already");

    let mut window = begin(&[], false);
    until(&mut window, "the first", has("Out of memory: 6.00 GiB refused"));
    assert_eq!((tabs(&window), shown(&window)), (vec!["a.mscope", "b.mscope"], a.clone()));

    // What is to be compared is compared with what was named before it, whatever was kept.
    let mut window = begin(&[c.clone(), b.clone()], true);
    until(&mut window, "the difference", has("live: before 63.55 GiB, after 63.55 GiB"));
    assert_eq!((tabs(&window), shown(&window)), (vec!["a.mscope", "b.mscope", "c.mscope"], b.clone()));
    assert!(has("before: c.mscope")(&window), "{:#?}", heard(&window));
}

#[test]
fn a_running_session_is_followed_until_it_ends_for_want_of_memory() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let trace = out_of_memory();
    let (first, rest) = trace.entries.split_at(trace.entries.len() / 2);
    let Entry::Session(info) = &trace.entries[0] else { panic!("a session") };
    let session = SessionFolder::create(&folder.path().join("train.mscope"), info).expect("a session");
    let mut writer = Writer::create(&session.journal()).expect("a journal");
    let write = |writer: &mut Writer, entries: &[Entry]| {
        entries.iter().for_each(|entry| writer.push(entry).expect("written"));
        writer.flush().expect("written");
    };
    write(&mut writer, first);
    let mut window = opens(session.path());
    until(&mut window, "a running session", has("running, "));
    until(&mut window, "the half", |window| answer(window).now.state.rows.live_bytes() > 0);
    let half = answer(&window).session.last_time;
    let (most, end) = rest.split_at(rest.len() - 3);
    write(&mut writer, most);
    until(&mut window, "the rest", |window| answer(window).session.last_time > half);
    assert_eq!(answer(&window).session.state, Running::Live);
    assert_eq!(window.state().document().expect("it is open").shared.cursor, At::Live);
    write(&mut writer, end);
    until(&mut window, "its end", has("ended with status 1"));
    until(&mut window, "what held memory", has("saved for backward (tagged)"));
    drop(writer);
    session.remove().expect("removed");
}

fn answer(window: &Window) -> &memscope_core::explorer::Answer {
    window.state().document().expect("it is open").answer()
}
