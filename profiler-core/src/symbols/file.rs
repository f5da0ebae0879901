//! One file of machine code, with its debug information or at least its table of symbols.
//!
//! Owns: whether it is the file that was recorded, where its debug information lies, and the look-up. Refuses: to fail: a file that
//! cannot be read knows nothing.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use addr2line::Loader;
use memscope_wire::module::{self, BUILD_ID, SIZE};
use object::read::Object;

use super::{Place, name};

/// Where distributions put debug information.
const DEBUG: &str = "/usr/lib/debug/.build-id";
/// Most functions that are built into each other at one address.
const MOST_INLINED: usize = 64;

pub(super) struct File {
    own: Loader,
    /// Debug information in a file of its own.
    apart: Option<Loader>,
}

impl File {
    /// The file of a module in a log; `None` when it is not there any more, or another one.
    pub fn open(name: &str) -> Option<File> {
        let path = Path::new(module::path(name));
        let id = is_same(name, path)?;
        let apart = id.as_deref().and_then(apart).and_then(|path| Loader::new(path).ok());
        Some(File { own: Loader::new(path).ok()?, apart })
    }

    /// The places of an address, the outermost first; none when nothing is known.
    pub fn places(&self, path: &str, address: u64) -> Vec<Place> {
        let loaders = || self.apart.iter().chain([&self.own]);
        let symbol = || loaders().find_map(|loader| loader.find_symbol(address)).map(name::readable);
        let mut places =
            loaders().map(|loader| lines(loader, address)).find(|places| !places.is_empty()).unwrap_or_default();
        for place in &mut places {
            if place.file.is_empty() {
                path.clone_into(&mut place.file);
            }
        }
        let Some(outermost) = places.first_mut() else {
            return symbol().map(|function| Place { file: path.to_owned(), line: 0, function }).into_iter().collect();
        };
        // A function that no other file can call has no full name in C++'s debug information: the symbol has it.
        if !name::is_full(&outermost.function) {
            match symbol() {
                Some(symbol) => outermost.function = symbol,
                None if outermost.function.is_empty() => outermost.function = format!("+{address:#x}"),
                None => {}
            }
        }
        for place in &mut places {
            place.function = name::readable(&place.function);
        }
        places
    }
}

/// What the debug information says.
fn lines(loader: &Loader, address: u64) -> Vec<Place> {
    let Ok(mut frames) = loader.find_frames(address) else { return Vec::new() };
    let mut places = Vec::new();
    while let Ok(Some(frame)) = frames.next() {
        let function = frame.function.as_ref().and_then(|function| function.raw_name().ok());
        let location = frame.location.as_ref();
        if function.is_none() && location.is_none() {
            continue;
        }
        places.push(Place {
            file: location.and_then(|location| location.file).unwrap_or_default().to_owned(),
            line: location.and_then(|location| location.line).unwrap_or_default(),
            function: function.map(|function| function.into_owned()).unwrap_or_default(),
        });
        if places.len() >= MOST_INLINED {
            break;
        }
    }
    places.reverse();
    places
}

/// Whether the file at a path is the one of this name; with its build id, if it has one.
fn is_same(name: &str, path: &Path) -> Option<Option<Vec<u8>>> {
    let metadata = std::fs::metadata(path).ok().filter(std::fs::Metadata::is_file)?;
    let identity = &name[module::path(name).len()..];
    if let Some(expected) = identity.strip_prefix(BUILD_ID) {
        let found = build_id(path)?;
        let hexadecimal: String = found.iter().map(|byte| format!("{byte:02x}")).collect();
        return (hexadecimal == expected).then_some(Some(found));
    }
    let MetadataOf { size, mtime } = MetadataOf::new(&metadata);
    (identity == format!("{SIZE}{size}{}{mtime}", module::MTIME)).then_some(None)
}

/// What of a file's state is in its name.
struct MetadataOf {
    size: u64,
    mtime: String,
}

impl MetadataOf {
    fn new(metadata: &std::fs::Metadata) -> MetadataOf {
        MetadataOf { size: metadata.size(), mtime: format!("{}.{:09}", metadata.mtime(), metadata.mtime_nsec()) }
    }
}

fn build_id(path: &Path) -> Option<Vec<u8>> {
    let file = std::fs::File::open(path).ok()?;
    let cache = object::read::ReadCache::new(file);
    let object = object::File::parse(&cache).ok()?;
    object.build_id().ok()?.map(<[u8]>::to_vec)
}

/// The file with the debug information of a build id, if it is installed.
fn apart(id: &[u8]) -> Option<PathBuf> {
    let (first, rest) = id.split_first()?;
    let rest: String = rest.iter().map(|byte| format!("{byte:02x}")).collect();
    Some(PathBuf::from(format!("{DEBUG}/{first:02x}/{rest}.debug"))).filter(|path| path.is_file())
}
