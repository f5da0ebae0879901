//! What can go wrong in this crate, in one enum: capture (logs, journal, session, telemetry) and analysis alike.
//!
//! Owns: the messages. Each says what happened, to which path or value, and where it helps, what to do next. Refuses: to
//! print, and to decide what is fatal.

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error as ThisError;

/// Result with this crate's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error of memscope-core.
#[derive(Debug, ThisError)]
#[non_exhaustive]
pub enum Error {
    /// The operating system refused something.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// What was attempted, as a verb phrase that fits after "cannot": `read`, `create the session folder`.
        action: &'static str,
        /// To which file or folder.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
    /// The file is not what it should be, or is damaged.
    #[error("{}: {what}", path.display())]
    Format {
        /// Which file.
        path: PathBuf,
        /// What is wrong, with the offset in bytes where there is one.
        what: String,
    },
    /// The file was written by another version of memscope.
    #[error("{} has format version {found}; this memscope reads version {supported}: use the memscope that wrote it, or a newer one", path.display())]
    Version {
        /// Which file.
        path: PathBuf,
        /// Its version.
        found: u32,
        /// The version that can be read.
        supported: u32,
    },
    /// Something that was asked for by name or path is not there.
    #[error("there is no {what} at {}", path.display())]
    NotFound {
        /// What was looked for, as a noun that fits after "no": `session`.
        what: &'static str,
        /// Where.
        path: PathBuf,
    },
    /// Something is in the way.
    #[error("{} already exists: {advice}", path.display())]
    Exists {
        /// What is in the way.
        path: PathBuf,
        /// What to do.
        advice: &'static str,
    },
    /// A session was asked for, and none or several could be meant.
    #[error("{what}")]
    Choose {
        /// What there is, and what to do next.
        what: String,
    },
    /// A report was asked for at a moment that the session does not have.
    #[error(transparent)]
    Instant(#[from] crate::report::InstantError),
    /// Another memscope is at work on this session.
    #[error("the session {} is being recorded by another memscope; wait for its end, or look at it meanwhile with `memscope report`", path.display())]
    Busy {
        /// The session folder.
        path: PathBuf,
    },
}

impl Error {
    /// For `map_err`: wraps an [`io::Error`] with what was attempted and to which path.
    pub fn io(action: &'static str, path: impl AsRef<Path>) -> impl FnOnce(io::Error) -> Error {
        let path = path.as_ref().to_path_buf();
        move |source| Error::Io { action, path, source }
    }

    /// A [`Error::Format`].
    pub fn format(path: impl AsRef<Path>, what: impl Into<String>) -> Error {
        Error::Format { path: path.as_ref().to_path_buf(), what: what.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_name_the_action_the_path_and_the_cause() {
        let error = Error::io("create", "/no/such")(io::Error::from_raw_os_error(2));
        assert_eq!(error.to_string(), "cannot create /no/such: No such file or directory (os error 2)");
        let error = Error::Version { path: "x.mscope".into(), found: 9, supported: 1 };
        assert!(error.to_string().starts_with("x.mscope has format version 9; this memscope reads version 1"));
        let error = Error::NotFound { what: "session", path: "x.session".into() };
        assert_eq!(error.to_string(), "there is no session at x.session");
    }
}
