//! Journals that grow, end, break off and are damaged, followed on a thread of its own.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use memscope_core::explorer::{Answer, At, Follower, Limits, Query, RowsQuery, Running};
use memscope_core::journal::Writer;
use memscope_core::journal::entry::{Entry, SessionInfo};
use memscope_core::profile;
use memscope_core::session::SessionFolder;

use crate::trace::training;

/// How long anything may take on a machine that does other things as well.
const PATIENCE: Duration = Duration::from_secs(30);

struct Session {
    folder: SessionFolder,
    writer: Writer,
    _place: tempfile::TempDir,
}

impl Session {
    fn new() -> Session {
        let place = tempfile::tempdir().expect("a temporary folder");
        let folder = SessionFolder::create(&place.path().join("out.mscope"), &SessionInfo::begin(vec!["train".into()]));
        let folder = folder.expect("a session");
        let writer = Writer::create(&folder.journal()).expect("a journal");
        Session { folder, writer, _place: place }
    }

    fn write(&mut self, entries: &[Entry]) {
        entries.iter().for_each(|entry| self.writer.push(entry).expect("written"));
        self.writer.flush().expect("flushed");
    }

    fn follow(&self) -> (Follower, Receiver<()>) {
        let (wake, woken) = waker();
        (Follower::of_session(self.folder.clone(), Limits::default(), wake), woken)
    }
}

/// What a follower calls, and where that is heard; after the test nobody listens.
fn waker() -> (impl Fn() + Send + 'static, Receiver<()>) {
    let (wake, woken) = channel();
    (move || wake.send(()).unwrap_or_default(), woken)
}

/// Waits for an answer, without looking more often than it is told to.
fn wait(follower: &Follower, woken: &Receiver<()>, is: impl Fn(&Answer) -> bool) -> Arc<Answer> {
    let begin = Instant::now();
    loop {
        let answer = follower.answer();
        if follower.version() > 0 && is(&answer) {
            return answer;
        }
        assert!(begin.elapsed() < PATIENCE, "no such answer; the last one: {:?}", answer.session);
        // What is missed between the look and this comes with the next answer, or is seen after a second.
        let _ = woken.recv_timeout(Duration::from_secs(1));
    }
}

#[test]
fn a_session_is_followed_to_its_end_and_beyond() {
    let entries = training().entries;
    let whole = super::ended::explorer(&entries, Limits::default()).answer(&Query::default());
    let mut session = Session::new();
    let (first, rest) = entries.split_at(entries.len() / 2);
    session.write(first);
    let (follower, woken) = session.follow();
    let half = super::ended::explorer(first, Limits::default()).answer(&Query::default());
    let answer = wait(&follower, &woken, |answer| answer.now == half.now);
    assert_eq!(answer.session.state, Running::Live);
    assert_eq!(answer.session.notices, Vec::<String>::new());
    // A question while nothing happens.
    let rows = Some(RowsQuery { window: 0..5, ..RowsQuery::default() });
    follower.ask(Query { at: At::Peak, rows, ..Query::default() });
    let answer = wait(&follower, &woken, |answer| answer.at == At::Peak && answer.rows.is_some());
    assert_eq!(Some(&answer.now), answer.peak.as_ref());
    follower.ask(Query::default());
    session.write(rest);
    let answer = wait(&follower, &woken, |answer| answer.session.state == Running::Ended);
    assert_eq!((&answer.now, &answer.peak), (&whole.now, &whole.peak));
    assert_eq!((&answer.findings, answer.session.exit_status), (&whole.findings, Some(0)));
    // The profile is written, and the session is gone; what was learned stays.
    drop(session.writer);
    session.folder.remove().expect("removed");
    follower.ask(Query { at: At::Step(1), ..Query::default() });
    let answer = wait(&follower, &woken, |answer| answer.at == At::Step(1));
    assert_eq!((answer.now.state.step, answer.session.state), (Some(1), Running::Ended));
    assert_eq!(answer.session.notices, Vec::<String>::new());
}

#[test]
fn a_session_that_breaks_off_is_told_as_such() {
    let mut entries = training().entries;
    entries.truncate(entries.len() - 2);
    let mut session = Session::new();
    session.write(&entries);
    let (follower, woken) = session.follow();
    wait(&follower, &woken, |answer| answer.session.state == Running::Live);
    drop(session.writer);
    let answer = wait(&follower, &woken, |answer| answer.session.state == Running::Broken);
    assert!(answer.findings.iter().any(|finding| finding.detail.kind() == "journal_truncated"));
    session.folder.remove().expect("removed");
}

#[test]
fn what_is_read_of_a_session_whose_memscope_died_is_not_said_to_run() {
    let mut entries = training().entries;
    entries.truncate(entries.len() - 2);
    let mut session = Session::new();
    session.write(&entries);
    drop(session.writer);
    let (wake, woken) = waker();
    let follower = Follower::of_session(session.folder.clone(), Limits::default(), wake);
    let first = wait(&follower, &woken, |_| true);
    assert!(first.session.reading || first.session.state == Running::Broken, "{:?}", first.session);
    let answer = wait(&follower, &woken, |answer| answer.session.state == Running::Broken);
    assert!(!answer.session.reading);
    let advice = format!("`memscope recover {}`", session.folder.path().display());
    assert!(answer.session.notices.iter().any(|notice| notice.contains(&advice)), "{:?}", answer.session.notices);
    session.folder.remove().expect("removed");
}

#[test]
fn a_session_that_is_recorded_is_read_to_the_present() {
    let mut session = Session::new();
    session.write(&training().entries[..20]);
    let (follower, woken) = session.follow();
    wait(&follower, &woken, |answer| answer.session.state == Running::Live && !answer.session.reading);
    drop(follower);
    session.folder.remove().expect("removed");
}

#[test]
fn damage_is_a_notice_and_the_rest_is_read() {
    let entries = training().entries;
    let mut session = Session::new();
    session.write(&entries[..20]);
    let before = std::fs::metadata(session.folder.journal()).expect("a journal").len() as usize;
    session.write(&entries[20..]);
    let mut bytes = std::fs::read(session.folder.journal()).expect("read");
    bytes[before + 40] ^= 0x55;
    std::fs::write(session.folder.journal(), bytes).expect("written");
    let (follower, woken) = session.follow();
    let answer = wait(&follower, &woken, |answer| answer.session.state == Running::Ended);
    assert!(answer.session.notices.iter().any(|notice| notice.contains("damaged")), "{:?}", answer.session.notices);
    session.folder.remove().expect("removed");
}

#[test]
fn a_folder_without_a_journal_is_waited_for_and_one_without_anything_is_told() {
    let session = Session::new();
    let folder = session.folder.clone();
    let (follower, woken) = session.follow();
    let answer = wait(&follower, &woken, |_| true);
    assert_eq!((answer.session.state, answer.session.allocations), (Running::Live, 0));
    drop(follower);
    drop(session.writer);
    folder.clone().remove().expect("removed");
    let (wake, woken) = waker();
    let follower = Follower::of_session(folder, Limits::default(), wake);
    let answer = wait(&follower, &woken, |_| true);
    assert_eq!((answer.session.state, answer.session.notices.len()), (Running::Broken, 1));
}

#[test]
fn a_profile_is_held_and_a_file_that_is_none_is_refused() {
    let place = tempfile::tempdir().expect("a temporary folder");
    let path = place.path().join("x.mscope");
    assert!(Follower::of_profile(&path, || {}).is_err());
    profile::write(&training().model(), &path, false).expect("written");
    let (wake, woken) = waker();
    let (open, reading) = (profile::Profile::open(&path).expect("a profile"), profile::Reading::default());
    let follower = Follower::of_profile_counted(&open, &reading, wake).expect("a profile");
    assert_eq!((reading.count(), open.allocations()), (training().model().allocations().len() as u64, reading.count()));
    let answer = wait(&follower, &woken, |_| true);
    assert_eq!(answer.session.state, Running::Ended);
    follower.ask(Query { at: At::Peak, ..Query::default() });
    let answer = wait(&follower, &woken, |answer| answer.at == At::Peak);
    assert_eq!(answer.now.state.rows.live_bytes(), 592 * (1 << 20) - 300);
}
