//! What is kept from one start to the next.
//!
//! Owns: colours, the files that were opened last, and those that were open. Refuses: where egui keeps its panels and the window's size (eframe does, in
//! the same file: `$XDG_DATA_HOME/memscope-gui/app.ron`).

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::theme::Look;

/// So many files are remembered.
const RECENT: usize = 10;

/// The key under which eframe's storage has it.
pub const KEY: &str = "memscope";

/// What is kept.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Settings {
    /// Colours.
    pub look: Look,
    /// Files that were opened, the latest first.
    pub recent: Vec<PathBuf>,
    /// Files and session folders of the tabs, in their order.
    pub tabs: Vec<PathBuf>,
    /// The one that was shown.
    pub shown: Option<PathBuf>,
}

impl Settings {
    /// Notes that a file was opened.
    pub fn opened(&mut self, path: &Path) {
        // What is relative would mean another file in another folder.
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
        self.recent.retain(|known| *known != path);
        self.recent.insert(0, path);
        self.recent.truncate(RECENT);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_file_comes_first_and_once() {
        let mut settings = Settings::default();
        for name in ["/a", "/b", "/a"] {
            settings.opened(Path::new(name));
        }
        assert_eq!(settings.recent, [PathBuf::from("/a"), PathBuf::from("/b")]);
        for number in 0..20 {
            settings.opened(Path::new(&format!("/{number}")));
        }
        assert_eq!((settings.recent.len(), settings.recent[0].as_path()), (RECENT, Path::new("/19")));
    }
}
