//! Signals while a program runs: it must see each one once, exactly as if memscope were not there.
//!
//! memscope and the program share a process group, so that job control, pipelines and the terminal work untouched. A signal
//! to the whole group (Ctrl-C, `kill -- -PGID`, timeout(1)) reaches the program by itself; one to memscope alone must be
//! passed on. Which it was cannot be read from the signal, so a **witness** tells: a small process in the same group that
//! receives what the group receives. memscope passes a signal on only when the witness did not get it.
//!
//! Stopping: memscope does not act on SIGTSTP itself; it stops when the program has stopped, and continues it.
//!
//! Owns: the mask, the witness, the loop that waits. Refuses: to decide what a signal means; the program does.

use std::io;
use std::mem::MaybeUninit;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::ptr;
use std::time::{Duration, Instant};

use libc::{c_int, pid_t, sigset_t};

use super::inherited::Inherited;

/// Signals that are passed on to the program: all that somebody may send on purpose. SIGKILL and SIGSTOP cannot be caught;
/// those that a process brings upon itself (SIGSEGV, SIGPIPE, SIGXFSZ, …) are memscope's own.
const PASSED_ON: [c_int; 17] = [
    libc::SIGHUP,
    libc::SIGINT,
    libc::SIGQUIT,
    libc::SIGTERM,
    libc::SIGUSR1,
    libc::SIGUSR2,
    libc::SIGALRM,
    libc::SIGVTALRM,
    libc::SIGPROF,
    libc::SIGIO,
    libc::SIGPWR,
    libc::SIGXCPU,
    libc::SIGSTKFLT,
    libc::SIGURG,
    libc::SIGWINCH,
    libc::SIGTSTP,
    libc::SIGCONT,
];

/// How long the witness may take to tell of a signal to the group. It only has to be scheduled once.
const WITNESS_PATIENCE: Duration = Duration::from_millis(100);

/// After this time a told signal is forgotten.
const FORGET_AFTER: Duration = Duration::from_secs(1);

/// Blocks the signals of interest in this thread and all that it starts later; call it before the first thread.
pub fn block() -> Inherited {
    Inherited::take_over(&watched())
}

/// Ends the blocking in this thread, once everything is done: what came late is dropped, and from now on a signal ends memscope
/// as it ends any process.
pub fn release(inherited: &Inherited) {
    drop_pending();
    inherited.restore_mask();
}

/// Drops what came for a program that has ended by now.
pub fn drop_pending() {
    let none = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: initialised sets and locals only.
    unsafe { while libc::sigtimedwait(&watched(), ptr::null_mut(), &none) > 0 {} }
}

/// Stops memscope, as Ctrl-Z does, until it is continued.
pub fn stop() {
    // SAFETY: plain numbers.
    unsafe { libc::kill(libc::getpid(), libc::SIGSTOP) };
}

/// Ends memscope as `signal` ended the program. A shell that runs a loop or a script stops on Ctrl-C only when it sees that
/// its child died of SIGINT; a mere status of 130 tells it that the child has dealt with it.
pub fn die_of(signal: c_int) -> ! {
    // SAFETY: valid numbers; the default action of the signal ends the process, without a core of memscope's own.
    unsafe {
        libc::prctl(libc::PR_SET_DUMPABLE, 0);
        libc::signal(signal, libc::SIG_DFL);
        libc::raise(signal);
    }
    std::process::exit(128 + signal)
}

/// The signals of [`PASSED_ON`], those of job control and SIGCHLD.
fn watched() -> sigset_t {
    set_of(PASSED_ON.iter().chain(&[libc::SIGCHLD, libc::SIGTTIN, libc::SIGTTOU]))
}

fn set_of<'a>(signals: impl IntoIterator<Item = &'a c_int>) -> sigset_t {
    let mut set = MaybeUninit::<sigset_t>::uninit();
    // SAFETY: sigemptyset initialises the set; the signal numbers are valid.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        for signal in signals {
            libc::sigaddset(set.as_mut_ptr(), *signal);
        }
        set.assume_init()
    }
}

/// The process in our group that tells which signals went to the whole group.
pub struct Witness {
    pid: pid_t,
    told: c_int,
    /// Signals that the witness told of, and when, that memscope has not met yet.
    ahead: Vec<(c_int, Instant)>,
}

impl Witness {
    /// Starts the witness. Call it after [`block`] and before the first thread.
    pub fn start() -> io::Result<Witness> {
        let mut pipe = [0; 2];
        // SAFETY: `pipe` has room for two descriptors.
        if unsafe { libc::pipe2(pipe.as_mut_ptr(), libc::O_CLOEXEC | libc::O_NONBLOCK) } != 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: memscope has one thread here; the child calls only async-signal-safe functions.
        match unsafe { libc::fork() } {
            -1 => Err(io::Error::last_os_error()),
            0 => watch(pipe),
            pid => {
                // SAFETY: our own descriptor, not used again.
                unsafe { libc::close(pipe[1]) };
                Ok(Witness { pid, told: pipe[0], ahead: Vec::new() })
            }
        }
    }

    /// True when the group as a whole got `signal`.
    fn saw(&mut self, signal: c_int) -> bool {
        let deadline = Instant::now() + WITNESS_PATIENCE;
        loop {
            self.read();
            if let Some(position) = self.ahead.iter().position(|(told, _)| *told == signal) {
                self.ahead.swap_remove(position);
                return true;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            let mut poll = libc::pollfd { fd: self.told, events: libc::POLLIN, revents: 0 };
            // SAFETY: one valid pollfd.
            unsafe { libc::poll(&mut poll, 1, left.as_millis() as c_int + 1) };
            if poll.revents & libc::POLLHUP != 0 && poll.revents & libc::POLLIN == 0 {
                return false; // somebody killed the witness: pass everything on
            }
        }
    }

    fn read(&mut self) {
        let mut bytes = [0_u8; 64];
        // SAFETY: reads into a local of the given size.
        let count = unsafe { libc::read(self.told, bytes.as_mut_ptr().cast(), bytes.len()) };
        if let Ok(count) = usize::try_from(count) {
            let now = Instant::now();
            self.ahead.extend(bytes[..count].iter().map(|byte| (c_int::from(*byte), now)));
            // Two equal signals may reach memscope as one; what it has not met by now, it never will.
            self.ahead.retain(|(_, told)| now - *told < FORGET_AFTER);
        }
    }
}

impl Drop for Witness {
    fn drop(&mut self) {
        // SAFETY: the witness is our unreaped child, so the pid is still its own.
        unsafe {
            libc::kill(self.pid, libc::SIGKILL);
            libc::waitpid(self.pid, ptr::null_mut(), 0);
            libc::close(self.told);
        }
    }
}

/// The witness's life: every signal that arrives is told as one byte. It ends with memscope.
fn watch(pipe: [c_int; 2]) -> ! {
    // SAFETY: async-signal-safe calls on valid arguments only; the process has one thread and never returns.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        libc::prctl(libc::PR_SET_NAME, c"memscope-witnes".as_ptr());
        // The standard descriptors stay with the program: a pipe must end when the program ends.
        for descriptor in 0..3 {
            libc::close(descriptor);
        }
        libc::close(pipe[0]);
        let set = set_of(&PASSED_ON);
        loop {
            let mut info = MaybeUninit::<libc::siginfo_t>::uninit();
            let signal = libc::sigwaitinfo(&set, info.as_mut_ptr());
            if signal > 0 {
                let byte = signal as u8;
                libc::write(pipe[1], (&raw const byte).cast(), 1);
            }
        }
    }
}

/// Waits for process `pid`, passing signals on, stopping and continuing with it.
pub fn wait(pid: u32, witness: &mut Witness) -> io::Result<ExitStatus> {
    let pid = pid as pid_t;
    let set = watched();
    loop {
        match child_state(pid)? {
            State::Ended(status) => return Ok(status),
            // SIGSTOP comes to one process (cpulimit, a debugger) and is taken back there; one to the group stops memscope
            // by itself.
            State::Stopped(libc::SIGSTOP) => {}
            State::Stopped(signal) => stop_too(signal),
            State::Running => {}
        }
        let mut info = MaybeUninit::<libc::siginfo_t>::zeroed();
        // SAFETY: the set is initialised and `info` is a local.
        let signal = unsafe { libc::sigwaitinfo(&set, info.as_mut_ptr()) };
        if signal > 0 && PASSED_ON.contains(&signal) && !witness.saw(signal) {
            // SAFETY: the program has not been reaped, so the pid is still its own.
            unsafe { libc::kill(pid, signal) };
        }
    }
}

/// The next signal for [`super::terminal`], which has the program in a session of its own; `None` after `patience`. SIGWINCH is
/// not among them: it is about memscope's own terminal.
pub fn next_apart(patience: Option<Duration>) -> Option<c_int> {
    let passed_on = PASSED_ON.iter().filter(|signal| **signal != libc::SIGWINCH);
    let set = set_of(passed_on.chain(&[libc::SIGCHLD, libc::SIGTTIN, libc::SIGTTOU]));
    let patience = patience.map(|time| libc::timespec {
        tv_sec: time.as_secs() as libc::time_t,
        tv_nsec: time.subsec_nanos() as libc::c_long,
    });
    let patience = patience.as_ref().map_or(ptr::null(), ptr::from_ref);
    // SAFETY: the set is initialised, and nothing is asked about the sender.
    let signal = unsafe { libc::sigtimedwait(&set, ptr::null_mut(), patience) };
    (signal > 0).then_some(signal)
}

/// True for signals that the program gets when memscope does.
pub fn is_passed_on(signal: c_int) -> bool {
    PASSED_ON.contains(&signal)
}

/// Lets SIGWINCH in, in this thread alone, while `work` runs: a view learns that its terminal has another size.
pub fn with_resizes<T>(work: impl FnOnce() -> T) -> T {
    let set = set_of(&[libc::SIGWINCH]);
    // SAFETY: an initialised set.
    unsafe { libc::pthread_sigmask(libc::SIG_UNBLOCK, &set, ptr::null_mut()) };
    let result = work();
    // SAFETY: an initialised set.
    unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &set, ptr::null_mut()) };
    result
}

enum State {
    Running,
    Stopped(c_int),
    Ended(ExitStatus),
}

fn child_state(pid: pid_t) -> io::Result<State> {
    let mut status = 0;
    // SAFETY: `status` is a local.
    match unsafe { libc::waitpid(pid, &mut status, libc::WNOHANG | libc::WUNTRACED) } {
        -1 => {
            let error = io::Error::last_os_error();
            if error.kind() == io::ErrorKind::Interrupted { Ok(State::Running) } else { Err(error) }
        }
        0 => Ok(State::Running),
        _ if libc::WIFSTOPPED(status) => Ok(State::Stopped(libc::WSTOPSIG(status))),
        _ => Ok(State::Ended(ExitStatus::from_raw(status))),
    }
}

/// Stops memscope by the signal that stopped the program, so that the shell sees the job stopped as it would have been.
/// Whoever continues it continues the group; a SIGCONT to memscope alone is passed on by [`wait`].
fn stop_too(signal: c_int) {
    let set = set_of(&[signal]);
    // SAFETY: valid signal numbers and an initialised set; the signals that stop have their default action here. The signal
    // is sent while it is blocked: it merges with the terminal's own, which often waits already, and memscope stops once.
    unsafe {
        libc::kill(libc::getpid(), signal);
        libc::pthread_sigmask(libc::SIG_UNBLOCK, &set, ptr::null_mut());
        libc::pthread_sigmask(libc::SIG_BLOCK, &set, ptr::null_mut());
    }
}
