//! One profile or session: what it is called, what is known of it, and what is asked.
//!
//! Owns: its opening, its last answer, and what is seen of it at first. Refuses: to wait for anything, and to draw.

mod beginning;
mod opening;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use memscope_core::explorer::{Answer, At, Explorer, Gravest, Query, Running, Target};
use memscope_core::profile::Reading;

use crate::shared::Shared;
use opening::{Opening, Wake};

/// An open document.
pub struct Document {
    /// Short name, for its tab.
    pub name: String,
    /// What was asked to be opened.
    pub path: PathBuf,
    /// What all its views follow.
    pub shared: Shared,
    source: Source,
    answer: Arc<Answer>,
    version: u64,
    asked: Query,
    /// The cursor has its first place.
    settled: bool,
    /// The session has ended.
    ended: bool,
}

/// Who answers.
enum Source {
    /// Nobody yet: it is opened when somebody looks at it. This calls the window.
    Asleep(Wake),
    /// Threads.
    Opening(Box<Opening>),
    /// An explorer, at once and on this thread.
    Explorer(Box<Explorer>),
    /// Nobody yet: its rows are being read.
    Overview(Arc<Reading>),
}

/// How far a document is.
#[derive(Clone, Debug)]
pub enum Stage {
    /// Nothing is known yet.
    Opening,
    /// There is an answer; [`SessionView::reading`](memscope_core::explorer::SessionView::reading) says whether it is all.
    Ready,
    /// It cannot be opened: a sentence.
    Failed(String),
}

impl Document {
    /// Begins to open a profile, a session folder, or a session by its id or a process id. `wake` is called on another thread when
    /// there is something new.
    pub fn open(path: &Path, wake: impl Fn() + Send + Sync + 'static) -> Document {
        let mut document = Document::asleep(path, wake);
        document.awaken();
        document
    }

    /// The same, and it begins when somebody looks at it first: [`Document::awaken`].
    pub fn asleep(path: &Path, wake: impl Fn() + Send + Sync + 'static) -> Document {
        Document::of(name_of(path), path, Source::Asleep(Arc::new(wake)))
    }

    /// Somebody looks at it.
    pub fn awaken(&mut self) {
        if let Source::Asleep(wake) = &self.source {
            let mut opening = Opening::start(self.path.clone(), Arc::clone(wake));
            opening.ask(self.asked.clone());
            self.source = Source::Opening(Box::new(opening));
        }
    }

    /// A document that is answered at once, on the caller's thread: for tests and pictures, where no frame may depend on a clock.
    pub fn of_explorer(name: &str, explorer: Explorer) -> Document {
        let mut document = Document::of(name.to_owned(), Path::new(name), Source::Explorer(Box::new(explorer)));
        document.put(document.asked.clone());
        document
    }

    /// A document of which there is only core's overview as yet, and stays so: for tests and pictures of what is seen meanwhile.
    pub fn of_overview(name: &str, overview: Answer, reading: Arc<Reading>) -> Document {
        let mut document = Document::of(name.to_owned(), Path::new(name), Source::Overview(reading));
        document.receive(Arc::new(overview), true);
        document
    }

    fn of(name: String, path: &Path, source: Source) -> Document {
        Document {
            name,
            path: path.to_path_buf(),
            shared: Shared::default(),
            source,
            answer: Arc::default(),
            version: 0,
            asked: Query::default(),
            settled: false,
            ended: false,
        }
    }

    /// How far it is.
    pub fn stage(&self) -> Stage {
        match &self.source {
            Source::Opening(opening) => match opening.stage() {
                Stage::Opening if self.version > 0 || self.settled => Stage::Ready,
                stage => stage,
            },
            Source::Asleep(_) => Stage::Opening,
            Source::Explorer(_) | Source::Overview(_) => Stage::Ready,
        }
    }

    /// Of how many of its allocations is known what there is to know: while they are read, and only of a profile.
    pub fn allocations_read(&self) -> Option<u64> {
        let session = &self.answer.session;
        if !session.reading || session.state == Running::Live {
            return None;
        }
        match &self.source {
            Source::Opening(opening) => Some(opening.allocations_read()),
            Source::Overview(reading) => Some(reading.count()),
            Source::Asleep(_) | Source::Explorer(_) => None,
        }
    }

    /// The last answer; empty until the first is there.
    pub fn answer(&self) -> &Arc<Answer> {
        &self.answer
    }

    /// Takes in what is new. To be called once a frame.
    pub fn poll(&mut self) {
        let Source::Opening(opening) = &mut self.source else { return };
        match (opening.answer(), opening.overview()) {
            (Some((version, answer)), _) if version != self.version => {
                self.version = version;
                self.receive(answer, false);
            }
            (None, Some(overview)) => self.receive(overview, true),
            _ => {}
        }
    }

    /// Asks what the views want to know. To be called once a frame.
    pub fn ask(&mut self, add: impl FnOnce(&Shared, &mut Query)) {
        let mut query = Query { target: self.shared.target, at: self.shared.cursor, largest: true, ..Query::default() };
        query.picks.extend(self.shared.selection.pick());
        add(&self.shared, &mut query);
        if query != self.asked {
            self.put(query);
        }
    }

    fn put(&mut self, query: Query) {
        self.asked = query.clone();
        match &mut self.source {
            Source::Opening(opening) => opening.ask(query),
            Source::Asleep(_) => {}
            Source::Explorer(explorer) => {
                let answer = explorer.answer(&query);
                self.version += 1;
                self.receive(Arc::new(answer), false);
            }
            Source::Overview(_) => {}
        }
    }

    /// What was asked last.
    pub fn asked(&self) -> &Query {
        &self.asked
    }

    /// True while the answer is not to what was asked last, or there is none.
    pub fn is_waiting(&self) -> bool {
        self.version == 0 || self.answer.at != self.asked.at || self.answer.target != self.asked.target
    }

    /// Takes in an answer; an overview is one before the rows are read.
    fn receive(&mut self, answer: Arc<Answer>, overview: bool) {
        self.answer = answer;
        let known = (overview || !self.answer.session.reading) && self.answer.session.last_time.0 > 0;
        if !self.settled && known {
            self.settled = true;
            beginning::begin(&self.answer, &mut self.shared);
        }
        // Whoever follows a session until it ends wants to know why it did.
        let ended = self.answer.session.state != Running::Live;
        if std::mem::replace(&mut self.ended, ended) != ended && ended && self.shared.cursor == At::Live {
            beginning::begin(&self.answer, &mut self.shared);
        }
    }
}

/// Short name of what is at a path.
fn name_of(path: &Path) -> String {
    path.file_name().map_or_else(|| path.display().to_string(), |name| name.to_string_lossy().into())
}

/// Where memory ran out: the moment, and the device where there are several.
pub fn out_of_memory(answer: &Answer, gravest: &Gravest) -> (At, Target) {
    (At::Refused(gravest.time), alone(answer, gravest.device))
}

/// The device with this UUID alone where there are several, else all.
pub fn target_of(answer: &Answer, uuid: &str) -> Target {
    let position = answer.devices.iter().position(|device| device.uuid == uuid);
    alone(answer, position.map(|position| position as u16))
}

/// The device at a position alone where there are several, else all.
fn alone(answer: &Answer, position: Option<u16>) -> Target {
    match (position, answer.devices.len()) {
        (Some(position), 2..) => Target::Device(position),
        _ => Target::All,
    }
}
