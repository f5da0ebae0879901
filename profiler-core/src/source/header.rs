//! A log's header page as plain values.
//!
//! Owns: where each field lies (from [`LogHeader`]'s own layout) and what makes a header readable. Refuses: to map the
//! file: it is read with pread, so that a log that shrinks or is nonsense is an error and never a SIGBUS. (One field is
//! raised through a mapping, in growth.rs.)

use std::fs::File;
use std::io;
use std::mem::offset_of;
use std::os::unix::fs::FileExt;
use std::path::Path;

use memscope_wire::LogHeader;
use memscope_wire::log::{HEADER_BYTES, MAGIC, VERSION};

use crate::clock::Reading;
use crate::error::{Error, Result};
use crate::journal::entry::{ProcessIndex, ProcessInfo};

use super::process::own_name;

/// What identifies a program in a session: the exec count tells the programs of one process apart.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Identity {
    /// Process id in its own namespace.
    pub pid: u32,
    /// Start time in clock ticks since boot.
    pub start_time: u64,
    /// Which program of the process.
    pub exec_count: u32,
}

impl From<&ProcessInfo> for Identity {
    fn from(process: &ProcessInfo) -> Identity {
        Identity { pid: process.pid, start_time: process.start_time, exec_count: process.exec_count }
    }
}

/// The part of a header that never changes.
#[derive(Clone, Debug)]
pub(super) struct Birth {
    pub identity: Identity,
    pub clock: u32,
    pub parent_pid: u32,
    pub rank: i32,
    pub world_size: u32,
    pub local_rank_and_one: u32,
    pub first: Reading,
    /// When the program began, in nanoseconds of CLOCK_MONOTONIC.
    pub began_ns: Option<u64>,
    /// Slots up to which others than the writer may grow the log.
    pub capacity: u64,
    pub boot_id: [u8; 16],
    pub executable: String,
    pub command: Vec<String>,
}

/// The part that changes while the process runs.
#[derive(Clone, Copy, Debug)]
pub(super) struct State {
    pub head: u64,
    pub allocated: u64,
    pub dropped: u64,
    pub faults: u64,
    /// CLOCK_MONOTONIC nanoseconds at which events began to be lost for want of a reader.
    pub unread_ns: Option<u64>,
    pub last: Option<Reading>,
    /// CLOCK_MONOTONIC nanoseconds of an orderly exit.
    pub closed_ns: Option<u64>,
}

/// The header's bytes.
pub(super) struct Page(Box<[u8; HEADER_BYTES]>);

impl Page {
    /// Reads the page; `None` when the file is still shorter than it.
    pub fn read(file: &File) -> io::Result<Option<Page>> {
        let mut bytes = Box::new([0; HEADER_BYTES]);
        match file.read_exact_at(&mut bytes[..], 0) {
            Ok(()) => Ok(Some(Page(bytes))),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// True when the log is ready to be read: its magic, which is stored last, is there.
    pub fn is_ready(&self) -> bool {
        self.u64(offset_of!(LogHeader, magic)) == MAGIC
    }

    /// The unchanging part. Errors: [`Error::Version`].
    pub fn birth(&self, path: &Path) -> Result<Birth> {
        let found = self.u32(offset_of!(LogHeader, version));
        if found != VERSION {
            return Err(Error::Version { path: path.to_path_buf(), found, supported: VERSION });
        }
        let mut boot_id = [0; 16];
        let at = offset_of!(LogHeader, boot_id);
        boot_id.copy_from_slice(&self.0[at..at + 16]);
        let command = self.text(offset_of!(LogHeader, command), 2048, offset_of!(LogHeader, command_bytes));
        Ok(Birth {
            identity: Identity {
                pid: self.u32(offset_of!(LogHeader, pid)),
                start_time: self.u64(offset_of!(LogHeader, start_time)),
                exec_count: self.u32(offset_of!(LogHeader, exec_count)),
            },
            clock: self.u32(offset_of!(LogHeader, clock)),
            parent_pid: self.u32(offset_of!(LogHeader, parent_pid)),
            rank: self.u32(offset_of!(LogHeader, rank)) as i32,
            world_size: self.u32(offset_of!(LogHeader, world_size)),
            local_rank_and_one: self.u32(offset_of!(LogHeader, local_rank_and_one)),
            first: Reading {
                ticks: self.u64(offset_of!(LogHeader, first_ticks)),
                monotonic_ns: self.u64(offset_of!(LogHeader, first_nanoseconds)),
            },
            began_ns: Some(self.u64(offset_of!(LogHeader, began_nanoseconds))).filter(|began| *began > 0),
            capacity: self.u64(offset_of!(LogHeader, capacity)),
            boot_id,
            executable: self.text(offset_of!(LogHeader, executable), 1024, offset_of!(LogHeader, executable_bytes)),
            command: command.trim_end_matches('\0').split('\0').map(str::to_owned).collect(),
        })
    }

    /// The changing part.
    pub fn state(&self) -> State {
        let last = Reading {
            ticks: self.u64(offset_of!(LogHeader, last_ticks)),
            monotonic_ns: self.u64(offset_of!(LogHeader, last_nanoseconds)),
        };
        let [unread_ns, closed_ns] =
            [offset_of!(LogHeader, unread_nanoseconds), offset_of!(LogHeader, closed_nanoseconds)]
                .map(|at| Some(self.u64(at)).filter(|time| *time > 0));
        State {
            head: self.u64(offset_of!(LogHeader, head)),
            allocated: self.u64(offset_of!(LogHeader, allocated)),
            dropped: self.u64(offset_of!(LogHeader, dropped)),
            faults: self.u64(offset_of!(LogHeader, faults)),
            unread_ns,
            last: (last.monotonic_ns != 0).then_some(last),
            closed_ns,
        }
    }

    /// A text of at most `room` bytes at `at`, whose length stands at `length_at`. A length beyond the room is cut.
    fn text(&self, at: usize, room: usize, length_at: usize) -> String {
        let length = (self.u32(length_at) as usize).min(room);
        String::from_utf8_lossy(&self.0[at..at + length]).into_owned()
    }

    fn u32(&self, at: usize) -> u32 {
        u32::from_le_bytes([self.0[at], self.0[at + 1], self.0[at + 2], self.0[at + 3]])
    }

    fn u64(&self, at: usize) -> u64 {
        self.u32(at) as u64 | (self.u32(at + 4) as u64) << 32
    }
}

/// Stores a joint reading of the clocks as the header's second calibration: ticks first, as the protocol has it.
pub(super) fn write_calibration(file: &File, reading: Reading) -> io::Result<()> {
    file.write_all_at(&reading.ticks.to_le_bytes(), offset_of!(LogHeader, last_ticks) as u64)?;
    file.write_all_at(&reading.monotonic_ns.to_le_bytes(), offset_of!(LogHeader, last_nanoseconds) as u64)
}

/// Tells the writer that the slots below this one were read.
pub(super) fn write_read(file: &File, slot: u64) -> io::Result<()> {
    file.write_all_at(&slot.to_le_bytes(), offset_of!(LogHeader, read) as u64)
}

impl Birth {
    /// The process as the journal names it.
    pub fn info(&self, process: ProcessIndex) -> ProcessInfo {
        ProcessInfo {
            process,
            pid: self.identity.pid,
            parent_pid: self.parent_pid,
            start_time: self.identity.start_time,
            exec_count: self.identity.exec_count,
            began_ns: self.began_ns,
            rank: u32::try_from(self.rank).ok(),
            world_size: Some(self.world_size).filter(|size| *size > 0),
            local_rank: self.local_rank_and_one.checked_sub(1),
            name: own_name(self.identity.pid, self.identity.start_time, &self.executable),
            executable: self.executable.clone(),
            command: self.command.clone(),
        }
    }
}
