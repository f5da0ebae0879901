//! The program behind the dashboard, as far as a view may touch it.
//!
//! Owns: the contract between the dashboard and whoever started the program. Refuses: processes; the command line has them.

/// A program that runs behind the dashboard. Its owner is the command line; a view that only looks (attach, a profile) has
/// none.
pub trait Program {
    /// Gives the program these bytes as typed input. Does nothing where it has no terminal.
    fn type_in(&mut self, bytes: &[u8]);

    /// Tells the program's terminal its size, in cells.
    fn resize(&mut self, rows: u16, columns: u16);

    /// Asks the program to end.
    fn end(&mut self, how: End);

    /// The status once the program has ended: its own, or 128+N when signal N ended it.
    fn status(&self) -> Option<i32>;

    /// True while the program is stopped (SIGSTOP, SIGTSTP). What is typed continues it.
    fn is_stopped(&self) -> bool {
        false
    }

    /// True when the view must end by itself, at once and without a question: its terminal is gone, or memscope was told to
    /// end and the program has ended.
    fn must_leave(&self) -> bool {
        false
    }
}

/// How a program is asked to end; each is harder than the one before.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// SIGINT, as Ctrl-C sends it.
    Interrupt,
    /// SIGTERM.
    Terminate,
    /// SIGKILL.
    Kill,
}
