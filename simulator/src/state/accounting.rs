//! Who holds what: registering processes, charging bytes, contexts, sweeping the dead.
//!
//! Owns: the capacity check, which no race between processes can get past. Refuses: rounding, which is the allocator's.

use super::identity::{Identity, is_running};
use super::{FOREIGN_PID, Layout, ProcessRow, State, StateError};
use memscope_wire::device::MAX_DEVICES;
use std::sync::atomic::Ordering::{Relaxed, Release};

/// Bytes of one device at one moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Usage {
    /// All that the device has.
    pub capacity: u64,
    /// Held by processes of the session: allocations and contexts.
    pub processes: u64,
    /// Held by the injected foreign process.
    pub foreign: u64,
    /// Held by the firmware.
    pub reserved: u64,
}

impl Usage {
    /// Held by processes, ours and foreign.
    pub fn used(&self) -> u64 {
        self.processes + self.foreign
    }

    /// What can still be allocated.
    pub fn free(&self) -> u64 {
        self.capacity.saturating_sub(self.used()).saturating_sub(self.reserved)
    }
}

/// An allocation did not fit; nothing was charged.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shortage;

/// A process's row, by index.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Row(usize);

/// The lock while it is held.
struct Locked<'a>(&'a Layout);

impl Drop for Locked<'_> {
    fn drop(&mut self) {
        // SAFETY: this thread holds the mutex.
        unsafe { libc::pthread_mutex_unlock(self.0.lock.0.get()) };
    }
}

impl State {
    fn locked(&self) -> Locked<'_> {
        let mutex = self.layout.lock.0.get();
        // SAFETY: the mutex was initialised before the magic was stored, and its mapping stays for good.
        let owner_died = unsafe { libc::pthread_mutex_lock(mutex) } == libc::EOWNERDEAD;
        let locked = Locked(self.layout);
        if owner_died {
            locked.sum_up();
            // SAFETY: this thread holds the mutex in its inconsistent state.
            unsafe { libc::pthread_mutex_consistent(mutex) };
        }
        locked
    }

    /// Gives the process a row: its own, if this program image has one, else a fresh one. What the process held before
    /// exec is dropped.
    pub fn register(&self, who: Identity) -> Result<Row, StateError> {
        let locked = self.locked();
        locked.sweep(Some(who));
        let rows = &self.layout.processes;
        let same = |row: &ProcessRow| {
            row.pid.load(Relaxed) == who.pid
                && row.start_time.load(Relaxed) == who.start_time
                && row.image.load(Relaxed) == who.image
        };
        if let Some(index) = rows.iter().position(same) {
            return Ok(Row(index));
        }
        let free = rows.iter().position(|row| row.pid.load(Relaxed) == 0);
        let index = free.ok_or_else(|| StateError::Full(self.path.clone()))?;
        rows[index].start_time.store(who.start_time, Relaxed);
        rows[index].image.store(who.image, Relaxed);
        rows[index].pid.store(who.pid, Release);
        Ok(Row(index))
    }

    /// Charges an allocation of `bytes` on `device` to the process.
    pub fn charge(&self, row: Row, device: u32, bytes: u64) -> Result<(), Shortage> {
        let locked = self.locked();
        locked.make_room(device, bytes)?;
        locked.0.processes[row.0].allocated[device as usize].fetch_add(bytes, Relaxed);
        locked.0.used[device as usize].fetch_add(bytes, Relaxed);
        Ok(())
    }

    /// Gives back bytes charged before.
    pub fn release(&self, row: Row, device: u32, bytes: u64) {
        let locked = self.locked();
        locked.0.processes[row.0].allocated[device as usize].fetch_sub(bytes, Relaxed);
        locked.0.used[device as usize].fetch_sub(bytes, Relaxed);
    }

    /// Notes that the process has a context on `device`, and charges the context's bytes once.
    pub fn enter_context(&self, row: Row, device: u32) -> Result<(), Shortage> {
        let locked = self.locked();
        let contexts = &locked.0.processes[row.0].contexts;
        if contexts.load(Relaxed) & (1 << device) == 0 {
            locked.make_room(device, locked.0.context_bytes)?;
            contexts.fetch_or(1 << device, Relaxed);
            locked.0.used[device as usize].fetch_add(locked.0.context_bytes, Relaxed);
        }
        Ok(())
    }

    /// Notes that the process's last context on `device` is gone.
    pub fn leave_context(&self, row: Row, device: u32) {
        let locked = self.locked();
        let contexts = &locked.0.processes[row.0].contexts;
        if contexts.fetch_and(!(1 << device), Relaxed) & (1 << device) != 0 {
            locked.0.used[device as usize].fetch_sub(locked.0.context_bytes, Relaxed);
        }
    }

    /// What is held of `device`, after a sweep.
    pub fn usage(&self, device: u32) -> Usage {
        let locked = self.locked();
        locked.sweep(None);
        locked.usage(device)
    }

    /// Pid and bytes (allocations and context) of every process on `device`, the foreign one last; after a sweep.
    pub fn processes(&self, device: u32) -> Vec<(u32, u64)> {
        let locked = self.locked();
        locked.sweep(None);
        let present = |row: &ProcessRow| {
            let pid = row.pid.load(Relaxed);
            let has_context = row.contexts.load(Relaxed) & (1 << device) != 0;
            let bytes = row.held(device, locked.0.context_bytes);
            (pid != 0 && (has_context || bytes > 0)).then_some((pid, bytes))
        };
        let mut list: Vec<_> = locked.0.processes.iter().filter_map(present).collect();
        if locked.0.foreign_bytes > 0 {
            list.push((FOREIGN_PID, locked.0.foreign_bytes));
        }
        list
    }
}

impl Locked<'_> {
    fn usage(&self, device: u32) -> Usage {
        Usage {
            capacity: self.0.capacity,
            processes: self.0.used[device as usize].load(Relaxed),
            foreign: self.0.foreign_bytes,
            reserved: self.0.reserved_bytes,
        }
    }

    fn make_room(&self, device: u32, bytes: u64) -> Result<(), Shortage> {
        if bytes <= self.usage(device).free() {
            return Ok(());
        }
        self.sweep(None);
        if bytes <= self.usage(device).free() { Ok(()) } else { Err(Shortage) }
    }

    /// Frees the rows of processes that no longer run, and of what `newcomer` was before exec.
    fn sweep(&self, newcomer: Option<Identity>) {
        let mut swept = false;
        for row in &self.0.processes {
            let (pid, start_time) = (row.pid.load(Relaxed), row.start_time.load(Relaxed));
            if pid == 0 {
                continue;
            }
            let replaced = newcomer.is_some_and(|who| {
                who.pid == pid && who.start_time == start_time && who.image != row.image.load(Relaxed)
            });
            if replaced || !is_running(pid, start_time) {
                row.clear();
                swept = true;
            }
        }
        if swept {
            self.sum_up();
        }
    }

    /// Makes the devices' totals anew from the rows.
    fn sum_up(&self) {
        for device in 0..MAX_DEVICES {
            let held = |row: &ProcessRow| match row.pid.load(Relaxed) {
                0 => 0,
                _ => row.held(device, self.0.context_bytes),
            };
            self.0.used[device as usize].store(self.0.processes.iter().map(held).sum(), Relaxed);
        }
    }
}

impl ProcessRow {
    fn held(&self, device: u32, context_bytes: u64) -> u64 {
        let has_context = self.contexts.load(Relaxed) & (1 << device) != 0;
        self.allocated[device as usize].load(Relaxed) + if has_context { context_bytes } else { 0 }
    }

    fn clear(&self) {
        self.pid.store(0, Relaxed);
        self.contexts.store(0, Relaxed);
        for bytes in &self.allocated {
            bytes.store(0, Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Shared;
    use std::path::PathBuf;

    struct Scratch(PathBuf);

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = std::fs::remove_file(&self.0);
        }
    }

    fn state(name: &str, context: u64, foreign: u64, reserved: u64) -> (State, Scratch) {
        let path = std::env::temp_dir().join(format!("memscope-state-{}-{name}", std::process::id()));
        let _ = std::fs::remove_file(&path);
        let shared = Shared {
            devices: Some("1048576*2".to_owned()),
            context_bytes: Some(context),
            foreign_bytes: Some(foreign),
            reserved_bytes: Some(reserved),
        };
        (State::open(&path, &shared).unwrap(), Scratch(path))
    }

    #[test]
    fn capacity_counts_contexts_foreign_bytes_and_firmware() {
        let (state, _file) = state("capacity", 1000, 2000, 4000);
        let row = state.register(Identity::of_this_process()).unwrap();
        state.enter_context(row, 1).unwrap();
        state.enter_context(row, 1).unwrap();
        let rest = (1 << 20) - 7000;
        assert_eq!(state.charge(row, 1, rest + 1), Err(Shortage));
        state.charge(row, 1, rest).unwrap();
        assert_eq!(state.usage(1).free(), 0);
        assert_eq!(state.processes(1), [(std::process::id(), rest + 1000), (FOREIGN_PID, 2000)]);
        assert_eq!(state.processes(0), [(FOREIGN_PID, 2000)]);
        state.release(row, 1, rest);
        state.leave_context(row, 1);
        assert_eq!(state.usage(1).processes, 0);
    }

    #[test]
    fn a_row_of_a_dead_process_makes_room() {
        let (state, _file) = state("dead", 0, 0, 0);
        let ours = Identity::of_this_process();
        let dead = state.register(Identity { start_time: ours.start_time + 1, ..ours }).unwrap();
        state.charge(dead, 0, 1 << 20).unwrap();
        let row = state.register(ours).unwrap();
        assert_eq!(state.usage(0).processes, 0);
        state.charge(row, 0, 1 << 20).unwrap();
    }

    #[test]
    fn exec_drops_what_the_process_held_and_a_second_copy_does_not() {
        let (state, _file) = state("exec", 0, 0, 0);
        let ours = Identity::of_this_process();
        let before = state.register(ours).unwrap();
        state.charge(before, 0, 512).unwrap();
        assert_eq!(state.register(ours).unwrap(), before);
        assert_eq!(state.usage(0).processes, 512);
        state.register(Identity { image: ours.image ^ 1, ..ours }).unwrap();
        assert_eq!(state.usage(0).processes, 0);
    }

    #[test]
    fn a_death_inside_the_lock_leaves_the_sums_right() {
        let (state, _file) = state("robust", 0, 0, 0);
        let row = state.register(Identity::of_this_process()).unwrap();
        state.charge(row, 0, 512).unwrap();
        // SAFETY: the child calls only functions that allocate nothing before it leaves with _exit.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let locked = state.locked();
            locked.0.used[0].store(1 << 19, Relaxed);
            std::mem::forget(locked);
            // SAFETY: _exit has no preconditions.
            unsafe { libc::_exit(0) };
        }
        // SAFETY: waits for the child made above.
        unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) };
        assert_eq!(state.usage(0).processes, 512);
    }

    #[test]
    fn another_set_of_settings_is_refused() {
        let (_state, file) = state("settings", 0, 0, 0);
        let mut shared = Shared::default();
        assert_eq!(State::open(&file.0, &shared).unwrap().device_count(), 2);
        shared.context_bytes = Some(1);
        assert!(matches!(State::open(&file.0, &shared), Err(StateError::Settings { .. })));
        shared.devices = Some("nonsense".to_owned());
        assert!(matches!(State::open(&file.0, &shared), Err(StateError::Settings { .. })));
        std::fs::write(&file.0, b"short").unwrap();
        assert!(matches!(State::open(&file.0, &shared), Err(StateError::Foreign(_))));
    }
}
