//! The time after the program's end in which its profile is written: seconds for a large session.
//!
//! Owns: that whoever waits is told, and that the first signal is answered and the second obeyed. Refuses: the writing.

use std::path::Path;
use std::time::Duration;

use crate::launch::signals;
use crate::output::{say, shell_word};

/// Between two looks whether it is done. What takes no longer is not worth a line.
const PACE: Duration = Duration::from_millis(50);

/// Waits until `is_done`, with memscope's signals still blocked. False when memscope was told twice to end: the session stays, and
/// the user has been told what makes its profile.
pub fn wait(session: &Path, quiet: bool, is_done: impl Fn() -> bool) -> bool {
    let (mut told, mut announced) = (false, quiet);
    while !is_done() {
        let signal = signals::next_apart(Some(PACE));
        match signal {
            Some(libc::SIGTSTP) => signals::stop(),
            // Not SIGHUP: where the terminal is gone, the profile is written all the same.
            Some(libc::SIGINT | libc::SIGTERM | libc::SIGQUIT) if told => {
                say(&format!(
                    "stopped before the profile was written; nothing is lost: `memscope recover {}` makes it",
                    shell_word(session)
                ));
                return false;
            }
            Some(libc::SIGINT | libc::SIGTERM | libc::SIGQUIT) => {
                say("the program has ended and its profile is being written; a second signal stops that");
                (told, announced) = (true, true);
            }
            _ if !announced && !is_done() => {
                say("writing the profile …");
                announced = true;
            }
            _ => {}
        }
    }
    true
}
