//! Reads a finished log, on the wire types alone, and says its events in words.

use std::collections::HashMap;
use std::mem::offset_of;
use std::path::Path;

use memscope_wire::log::{CHUNK_SLOTS, HEADER_BYTES, MAGIC, Refusal, SLOT_BYTES, VERSION};
use memscope_wire::{Event, LogHeader, Measure, Record};

/// A log as it lies on disk.
pub struct Log {
    /// The file's name.
    pub name: String,
    bytes: Vec<u8>,
}

impl Log {
    /// Reads the log at `path` and checks what every log must keep.
    pub fn read(path: &Path) -> Log {
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        let log = Log { name, bytes: std::fs::read(path).unwrap() };
        assert_eq!(log.number(offset_of!(LogHeader, magic)), MAGIC);
        assert_eq!(log.small(offset_of!(LogHeader, version)), VERSION);
        assert_eq!(log.allocated() % CHUNK_SLOTS, 0);
        assert_eq!(log.bytes.len(), HEADER_BYTES + log.allocated() as usize * SLOT_BYTES);
        log
    }

    /// The 8 bytes at `offset` of the header.
    pub fn number(&self, offset: usize) -> u64 {
        u64::from_le_bytes(self.bytes[offset..offset + 8].try_into().unwrap())
    }

    /// The 4 bytes at `offset` of the header.
    pub fn small(&self, offset: usize) -> u32 {
        u32::from_le_bytes(self.bytes[offset..offset + 4].try_into().unwrap())
    }

    /// Bytes of the header.
    pub fn header(&self, offset: usize, length: usize) -> &[u8] {
        &self.bytes[offset..offset + length]
    }

    /// Process id of the writer.
    pub fn pid(&self) -> u32 {
        self.small(offset_of!(LogHeader, pid))
    }

    /// Slots whose space is allocated.
    pub fn allocated(&self) -> u64 {
        self.number(offset_of!(LogHeader, allocated))
    }

    /// Slots claimed.
    pub fn head(&self) -> u64 {
        self.number(offset_of!(LogHeader, head))
    }

    /// Events that could not be written.
    pub fn dropped(&self) -> u64 {
        self.number(offset_of!(LogHeader, dropped))
    }

    /// Faults of the interposer.
    pub fn faults(&self) -> u64 {
        self.number(offset_of!(LogHeader, faults))
    }

    /// When the process closed its log; 0 if it did not.
    pub fn closed(&self) -> u64 {
        self.number(offset_of!(LogHeader, closed_nanoseconds))
    }

    /// All claimed slots whose space is allocated, committed or not.
    pub fn records(&self) -> Vec<Record> {
        let slots = self.bytes[HEADER_BYTES..].chunks_exact(SLOT_BYTES).take(self.head() as usize);
        slots.map(|slot| Record::from_bytes(slot.try_into().unwrap())).collect()
    }

    /// The events of committed slots.
    pub fn events(&self) -> Vec<Event> {
        let committed = self.records().into_iter().filter(|record| record.kind() != 0);
        committed.map(|record| Event::decode(&record).unwrap()).collect()
    }

    /// Names of the rows, as the log describes them.
    pub fn functions(&self) -> HashMap<u16, String> {
        let names = self.events().into_iter().filter_map(|event| match event {
            Event::Function { row, name } => {
                Some((row, String::from_utf8(name.to_vec()).unwrap().trim_end_matches('\0').to_owned()))
            }
            _ => None,
        });
        names.collect()
    }

    /// Files whose code asked for what was allocated, where they change.
    pub fn owners(&self) -> Vec<String> {
        let texts = self.texts();
        let owner = |event| match event {
            Event::Owner { owner } if owner.is_none() => Some(String::new()),
            Event::Owner { owner } => Some(String::from_utf8_lossy(&texts[&owner.0]).into_owned()),
            _ => None,
        };
        self.events().into_iter().filter_map(owner).collect()
    }

    /// Every event but Function, Text and Owner, in words, with names of rows and texts in their place.
    pub fn story(&self) -> Vec<String> {
        let functions = self.functions();
        let texts = self.texts();
        let text = |id: memscope_wire::TextId| match id.is_none() {
            true => "nothing".to_owned(),
            false => format!("{:?}", String::from_utf8_lossy(&texts[&id.0])),
        };
        let tell = |event| {
            Some(match event {
                Event::Text { .. } | Event::Function { .. } | Event::Owner { .. } => return None,
                Event::Device { ordinal, total_bytes, uuid } => {
                    format!("device {ordinal}: {total_bytes} bytes, {}", uuid.escape_ascii())
                }
                Event::Thread => "thread".to_owned(),
                Event::Context { context, device } => format!("in context {context:x}, device {}", device as i32),
                Event::Object { object, handle, device, row } => {
                    format!("{} {handle:x}: a {}, device {}", functions[&row], object.name(), device as i32)
                }
                Event::ObjectEnd { object, handle, row } => {
                    format!("{} {handle:x}: the {} ends", functions[&row], object.name())
                }
                Event::Alloc { address, bytes, requested, stream, device, row, memory } => format!(
                    "{} {address:x}: {bytes} of {requested} bytes, stream {stream:x}, device {}, {}",
                    functions[&row],
                    device as i32,
                    memory.name()
                ),
                Event::Free { address, stream, row } => format!("{} {address:x}, stream {stream:x}", functions[&row]),
                Event::Create { handle, bytes, measure, device, row, memory } => {
                    let measure = match measure {
                        Measure::Told => "",
                        Measure::Computed => " computed",
                        Measure::Unknown => " for want of its size",
                    };
                    let (function, memory) = (&functions[&row], memory.name());
                    format!("{function} {handle:x}: {bytes} bytes{measure}, device {}, {memory}", device as i32)
                }
                Event::Elsewhere { address, bytes, handle, device, row } => format!(
                    "{} {:x}: {bytes} bytes of elsewhere, device {}",
                    functions[&row],
                    address | handle,
                    device as i32
                ),
                Event::GraphNode { address, bytes, device, row } => {
                    format!("{} {address:x}: {bytes} bytes of a node, device {}", functions[&row], device as i32)
                }
                Event::Retain { handle, row } => format!("{} {handle:x}", functions[&row]),
                Event::PoolReserve { pool, bytes, device, row } => {
                    format!("{}: pool {pool:x} keeps {bytes} bytes, device {}", functions[&row], device as i32)
                }
                Event::GraphMemory { bytes, device, row } => {
                    format!("{}: {bytes} bytes for graphs, device {}", functions[&row], device as i32)
                }
                Event::Release { handle, row } => format!("{} {handle:x}", functions[&row]),
                Event::Map { address, bytes, offset, handle, row } => {
                    format!("{} {address:x}: {bytes} bytes of {handle:x} from {offset}", functions[&row])
                }
                Event::Unmap { address, bytes, row } => format!("{} {address:x}: {bytes} bytes", functions[&row]),
                Event::FreeRefused { address, slot, result, row } => {
                    let freed = Event::decode(&self.records()[slot as usize]).unwrap();
                    let names = |event| match event {
                        Event::Free { address, .. } | Event::Unmap { address, .. } => Some(address),
                        Event::Release { handle, .. } => Some(handle),
                        _ => None,
                    };
                    assert_eq!(names(freed), Some(address), "{freed:?}");
                    format!("{} {address:x} refused: {result}", functions[&row])
                }
                Event::AllocFailed { requested, free, total, device, result, row, memory } => format!(
                    "{} failed: {requested} bytes, {free} of {total} free, device {}, {}, result {result}",
                    functions[&row],
                    device as i32,
                    memory.name()
                ),
                Event::BlockAlloc { address, bytes, requested, stream, origin } => {
                    format!("block {address:x}: {bytes} of {requested} bytes, stream {stream:x}, {}", origin.name())
                }
                Event::BlockFree { address, origin } => format!("block {address:x} free, {}", origin.name()),
                Event::Tag { address, name, category, origin } => {
                    format!("tag {address:x}: {}, {}, {}", category.name(), origin.name(), text(name))
                }
                Event::ScopePush { name } => format!("into {}", text(name)),
                Event::ScopePop => "out".to_owned(),
                Event::Phase { name } => format!("phase {}", text(name)),
                Event::Step { number } => format!("step {number}"),
                Event::Scope { path } => format!("at {}", text(path)),
                Event::StackNode { node, parent, file, function, line } => {
                    format!("place {node:x}: {}:{line}, {}, from {parent:x}", text(file), text(function))
                }
                Event::StackAddress { node, parent, module, offset } => {
                    format!("place {node:x}: {}+{offset:x}, from {parent:x}", text(module))
                }
                Event::Stack { node, whole } => format!("in place {node:x}{}", if whole { "" } else { " or deeper" }),
                Event::Ranges => "by a range".to_owned(),
                Event::Notice { text: what } => format!("notice {}", text(what)),
                Event::Framework => "framework".to_owned(),
                Event::ProcessName { name } => format!("process {}", text(name)),
                Event::NotComputed => "not computed".to_owned(),
                Event::NotSimulated { function } => format!("not simulated: {}", text(function)),
                Event::DeviceRead { line, bytes, known } => format!("read {bytes} at {}, known: {known}", text(line)),
                Event::RefusedLine { line, device } => format!("refused on {device} at {}", text(line)),
            })
        };
        self.events().into_iter().filter_map(tell).collect()
    }

    /// Whole texts by hash; checks that each is complete before its first use.
    /// Every text by its id; all that are used are there.
    pub fn texts(&self) -> HashMap<u64, Vec<u8>> {
        let mut texts: HashMap<u64, Vec<u8>> = HashMap::new();
        let mut missing: HashMap<u64, usize> = HashMap::new();
        for event in self.events() {
            match event {
                Event::Text { id, total_bytes, part, bytes } => {
                    let text = texts.entry(id.0).or_insert_with(|| vec![0; total_bytes as usize]);
                    let missing = missing.entry(id.0).or_insert(total_bytes as usize);
                    let begin = part as usize * bytes.len();
                    let length = bytes.len().min(text.len() - begin);
                    text[begin..begin + length].copy_from_slice(&bytes[..length]);
                    *missing = missing.saturating_sub(length);
                }
                Event::Tag { name, .. }
                | Event::ScopePush { name }
                | Event::Phase { name }
                | Event::Scope { path: name }
                | Event::Notice { text: name }
                | Event::NotSimulated { function: name }
                | Event::DeviceRead { line: name, .. }
                    if !name.is_none() =>
                {
                    assert_eq!(missing.get(&name.0), Some(&0), "the text of {name:?} does not precede its use");
                }
                _ => {}
            }
        }
        texts
    }
}

/// All logs in a folder, by file name.
pub fn logs(folder: &Path) -> Vec<Log> {
    let mut paths: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "log"));
    paths.sort();
    paths.iter().map(|path| Log::read(path)).collect()
}

/// Why the processes of a folder have no logs, from the files that they left instead.
pub fn refusals(folder: &Path) -> Vec<Refusal> {
    let names = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut refusals: Vec<_> = names.filter_map(|name| Refusal::of_file(&name)).collect();
    refusals.sort();
    refusals
}

/// What any of a folder's processes has left once in it, by file name.
pub fn marks(folder: &Path) -> Vec<String> {
    let names = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut marks: Vec<_> = names.filter(|name| !name.ends_with(".log") && !name.ends_with(".refused")).collect();
    marks.sort();
    marks
}

/// The only log in a folder.
pub fn only_log(folder: &Path) -> Log {
    let mut logs = logs(folder);
    assert_eq!(logs.len(), 1, "{:?}", logs.iter().map(|log| &log.name).collect::<Vec<_>>());
    logs.remove(0)
}
