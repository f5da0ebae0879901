//! A writer of logs: what the protocol in `memscope_wire::log` asks of a profiled process, in the plainest way.

#![allow(dead_code, reason = "the tests and the bench use different parts")]

use std::fs::{File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use memmap2::{MmapOptions, MmapRaw};
use memscope_wire::log::{CHUNK_SLOTS, HEADER_BYTES, MAGIC, SLOT_BYTES, VERSION};
use memscope_wire::{LogHeader, Record, Slot};
use rustix::fs::{FallocateFlags, fallocate};

/// A log that is being written.
pub struct LogWriter {
    pub path: PathBuf,
    file: File,
    map: MmapRaw,
    capacity: u64,
}

/// Who writes.
#[derive(Clone, Copy, Debug)]
pub struct Writing {
    pub pid: u32,
    pub start_time: u64,
    pub exec_count: u32,
}

impl Writing {
    /// This process.
    pub fn here() -> Writing {
        let pid = std::process::id();
        Writing { pid, start_time: memscope_core::source::start_time(pid).unwrap(), exec_count: 0 }
    }

    /// A process that is not there, and was not when its log was found; its log is closed, so it is taken for dead.
    pub fn dead(start_time: u64) -> Writing {
        Writing { pid: 4_194_304, start_time, exec_count: 0 }
    }

    pub fn file_name(&self) -> String {
        format!("{}-{}-{}.log", self.pid, self.start_time, self.exec_count)
    }
}

impl LogWriter {
    /// Creates a log for at most `capacity` slots.
    pub fn create(folder: &Path, writing: Writing, capacity: u64) -> LogWriter {
        let path = folder.join(writing.file_name());
        let file = OpenOptions::new().read(true).write(true).create_new(true).open(&path).unwrap();
        file.set_len(HEADER_BYTES as u64).unwrap();
        let bytes = HEADER_BYTES + capacity as usize * SLOT_BYTES;
        let map = MmapOptions::new().len(bytes).map_raw(&file).unwrap();
        let header = map.as_mut_ptr().cast::<LogHeader>();
        let now = memscope_core::clock::monotonic_ns();
        // SAFETY: the header page is in the file and nobody else looks at the log before its magic is set.
        unsafe {
            (&raw mut (*header).version).write(VERSION);
            (&raw mut (*header).clock).write(memscope_wire::log::CLOCK_MONOTONIC);
            (&raw mut (*header).pid).write(writing.pid);
            (&raw mut (*header).start_time).write(writing.start_time);
            (&raw mut (*header).exec_count).write(writing.exec_count);
            (&raw mut (*header).rank).write(-1);
            (&raw mut (*header).first_ticks).write(now);
            (&raw mut (*header).first_nanoseconds).write(now);
            (&raw mut (*header).boot_id).write(memscope_core::clock::boot_id());
            (&raw mut (*header).capacity).write(capacity);
            (&raw mut (*header).executable_bytes).write(9);
            (&raw mut (*header).executable).cast::<[u8; 9]>().write(*b"/bin/test");
            (&raw mut (*header).command_bytes).write(7);
            (&raw mut (*header).command).cast::<[u8; 7]>().write(*b"test\0-x");
            (*header).magic.store(MAGIC, Ordering::Release);
        }
        LogWriter { path, file, map, capacity }
    }

    pub fn header(&self) -> &LogHeader {
        // SAFETY: the header page is mapped as long as `self`, and only its atomics change.
        unsafe { &*self.map.as_mut_ptr().cast::<LogHeader>() }
    }

    /// Claims a slot and makes room for it.
    pub fn claim(&self) -> u64 {
        self.try_claim().unwrap()
    }

    /// Claims a slot and makes room for it; where there is none, the claim is counted as dropped.
    pub fn try_claim(&self) -> io::Result<u64> {
        let slot = self.header().head.0.fetch_add(1, Ordering::Relaxed);
        assert!(slot < self.capacity, "the test wants more slots than it said");
        let end = (slot / CHUNK_SLOTS + 1) * CHUNK_SLOTS;
        let allocated = self.header().allocated.0.load(Ordering::Acquire);
        if allocated < end {
            let offset = HEADER_BYTES as u64 + allocated * SLOT_BYTES as u64;
            let bytes = (end - allocated) * SLOT_BYTES as u64;
            if let Err(error) = fallocate(&self.file, FallocateFlags::empty(), offset, bytes) {
                self.header().dropped.0.fetch_add(1, Ordering::Relaxed);
                return Err(error.into());
            }
            self.header().allocated.0.fetch_max(end, Ordering::Release);
        }
        Ok(slot)
    }

    /// Writes a claimed slot and commits it.
    pub fn commit(&self, slot: u64, record: &Record) {
        // SAFETY: the slot lies in the mapping and in the allocated part of the file, and its claim is the caller's.
        unsafe {
            let place = self.map.as_mut_ptr().add(HEADER_BYTES).cast::<Slot>().add(slot as usize);
            (&raw mut (*place).thread).write(record.thread);
            (&raw mut (*place).ticks).write(record.ticks);
            (&raw mut (*place).words).write(record.words);
            (*place).head.store(record.head, Ordering::Release);
        }
    }

    pub fn push(&self, record: &Record) -> u64 {
        let slot = self.claim();
        self.commit(slot, record);
        slot
    }

    /// An orderly exit.
    pub fn close(&self) {
        self.header().closed_nanoseconds.0.store(memscope_core::clock::monotonic_ns(), Ordering::Release);
    }

    /// Memory that the log takes, in bytes.
    pub fn memory(&self) -> u64 {
        use std::os::unix::fs::MetadataExt;
        self.file.metadata().unwrap().blocks() * 512
    }
}

/// Event `number` of a thread of a test: every word depends on both, so that a mixture of two is noticed.
pub fn record(thread: u32, number: u64) -> Record {
    let mix = (number ^ (thread as u64) << 48).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    Record {
        head: 32,
        thread,
        ticks: number * 1_000,
        words: [number, thread as u64, mix, mix.rotate_left(17), !mix, mix ^ number],
    }
}
