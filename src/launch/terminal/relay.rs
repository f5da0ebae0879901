//! The program in plain form, after the dashboard was left: its pseudo-terminal is joined to the real one, as script(1) does.
//!
//! Owns: keys to the program, sizes, suspending. Refuses: to interpret keys: Ctrl-C reaches the program through its own
//! terminal.

use std::io;
use std::sync::Arc;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::SpecialCodeIndex;

use super::own::sends_signals;
use super::{Custody, Mover, OwnTerminal, Pair, Stage};

/// Time between two looks at the program's state and the terminal's size.
const PACE: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };
/// Typed bytes that the program has not taken, above which no more keys are read.
const ENOUGH: usize = 4 << 10;

/// Joins the terminals until the program has ended and everything that it wrote is on the screen (`custody` says so).
///
/// Errors: the real terminal is gone. The program goes on.
pub fn relay(own: &OwnTerminal, pair: &Pair, mover: &Mover, custody: &Arc<Custody>) -> io::Result<()> {
    let mut raw = Some(own.raw()?);
    let mut size = own.size();
    mover.show_in(own.screen().try_clone()?, |output| output.hand_over())?;
    mover.resize(size);
    let mut keyboard_is_open = true;
    while custody.stage() < Stage::Moved {
        let now = own.size();
        if now != size {
            size = now;
            mover.resize(size);
        }
        let wanted = keyboard_is_open && mover.waiting() < ENOUGH;
        let flags = if wanted { PollFlags::IN } else { PollFlags::empty() };
        let mut polled = [PollFd::new(own.keyboard(), flags)];
        let _ = poll(&mut polled, Some(&PACE));
        if !polled[0].revents().contains(PollFlags::IN) {
            keyboard_is_open &= !polled[0].revents().intersects(PollFlags::HUP | PollFlags::ERR);
            if !keyboard_is_open {
                std::thread::sleep(std::time::Duration::from_millis(50)); // poll returns at once from now on
            }
            continue;
        }
        let mut keys = [0; 1024];
        match rustix::io::read(own.keyboard(), &mut keys) {
            Ok(0) | Err(rustix::io::Errno::IO) => keyboard_is_open = false,
            Ok(count) => {
                custody.go_on();
                if let Some(position) = stop_key(&keys[..count], pair).filter(|_| custody.would_ignore_stop()) {
                    mover.type_in(&keys[..position]);
                    drop(raw.take());
                    custody.stop_job();
                    raw = own.raw().ok();
                    mover.type_in(&keys[position + 1..count]);
                } else {
                    mover.type_in(&keys[..count]);
                }
            }
            Err(_) => {}
        }
    }
    mover.show_no_more(|output| output.clean_up());
    Ok(())
}

/// Where among the keys the one that suspends stands, if the program's terminal has it switched on.
fn stop_key(keys: &[u8], pair: &Pair) -> Option<usize> {
    let settings = pair.settings().ok().filter(sends_signals)?;
    let key = settings.special_codes[SpecialCodeIndex::VSUSP];
    keys.iter().position(|byte| *byte == key && key != 0)
}
