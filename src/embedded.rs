//! The libraries that the binary carries, and the folder to which it writes them; under which names loaders find them: [`preload`].
//!
//! Owns: what lies in `memscope/<hash>/` of the cache folder ([`folder`]: `$XDG_CACHE_HOME`, root's `/var/cache`, `~/.cache`, the
//! temporary folder). Each file is written under another name and renamed, so that two memscopes may start at once. Refuses: to
//! load them into this process.

use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

pub mod folder;
pub mod preload;

static INTERPOSER: &[u8] = include_bytes!(env!("MEMSCOPE_EMBED_INTERPOSER"));
static SIMULATOR: &[u8] = include_bytes!(env!("MEMSCOPE_EMBED_SIMULATOR"));
static RUNTIME: &[u8] = include_bytes!(env!("MEMSCOPE_EMBED_RUNTIME"));

/// The libraries on disk.
pub struct Libraries {
    /// The interposer.
    pub interposer: PathBuf,
    /// The folder in which loaders find what is preloaded: the interposer and one file under each of [`RUNTIME_NAMES`].
    pub preload: PathBuf,
    /// Folder with the simulated libcuda.so.1, libcuda.so and libnvidia-ml.so.1.
    pub simulator: PathBuf,
}

/// Names under which the simulator is found by programs: cudarc looks for libcuda.so first, runtimes for libcuda.so.1.
const SIMULATOR_NAMES: [&str; 3] = ["libcuda.so.1", "libcuda.so", "libnvidia-ml.so.1"];

/// File of the interposer.
pub const INTERPOSER_FILE: &str = "libmemscope_interposer.so";

/// File of the simulated CUDA libraries above the driver, in the folder `runtime`.
const RUNTIME_FILE: &str = "libmemscope_runtime.so";

/// Names under which PyTorch's libraries ask for the CUDA libraries above the driver, in CUDA 12 and 13.
pub const RUNTIME_NAMES: [&str; 24] = [
    "libcudart.so.12",
    "libcudart.so.13",
    "libcublas.so.12",
    "libcublas.so.13",
    "libcublasLt.so.12",
    "libcublasLt.so.13",
    "libcudnn.so.9",
    "libcufft.so.11",
    "libcufft.so.12",
    "libcufile.so.0",
    "libcupti.so.12",
    "libcupti.so.13",
    "libcurand.so.10",
    "libcusolver.so.11",
    "libcusolver.so.12",
    "libcusparse.so.12",
    "libcusparseLt.so.0",
    "libnccl.so.2",
    "libnvJitLink.so.12",
    "libnvJitLink.so.13",
    "libnvrtc.so.12",
    "libnvrtc.so.13",
    "libnvshmem_host.so.3",
    "libnvToolsExt.so.1",
];

/// Writes the libraries to the cache folder, unless they are there already.
pub fn install() -> Result<Libraries> {
    let folder = folder::choose()?.join(format!("{:016x}", fingerprint()));
    let [simulator, runtime] = ["simulator", "runtime"].map(|name| folder.join(name));
    for folder in [&folder, &simulator, &runtime] {
        folder::make(folder)?;
    }
    let interposer = folder.join(INTERPOSER_FILE);
    install_file(&interposer, INTERPOSER)?;
    for name in SIMULATOR_NAMES {
        install_file(&simulator.join(name), SIMULATOR)?;
    }
    install_file(&runtime.join(RUNTIME_FILE), RUNTIME)?;
    let preload = preload::install(&folder)?;
    Ok(Libraries { interposer, preload, simulator })
}

/// The interposer's bytes, for checks that need not write it.
pub fn interposer() -> &'static [u8] {
    INTERPOSER
}

/// Hash of all that is embedded: another build of memscope gets another folder.
fn fingerprint() -> u64 {
    // FNV-1a over 8-byte words; it tells builds apart, nothing more.
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for library in [INTERPOSER, SIMULATOR, RUNTIME] {
        for chunk in library.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            hash = (hash ^ u64::from_le_bytes(word)).wrapping_mul(0x0000_0100_0000_01b3);
        }
        hash = (hash ^ library.len() as u64).wrapping_mul(0x0000_0100_0000_01b3);
    }
    hash
}

fn install_file(path: &Path, content: &[u8]) -> Result<()> {
    if fs::read(path).is_ok_and(|present| present == content) {
        return folder::share(path);
    }
    let name = path.file_name().unwrap_or(OsStr::new("library")).to_string_lossy();
    let temporary = path.with_file_name(format!(".{name}.{}", std::process::id()));
    let write = || {
        let mut file = fs::OpenOptions::new().write(true).create(true).truncate(true).open(&temporary)?;
        file.write_all(content)?;
        // Whatever the umask is.
        file.set_permissions(fs::Permissions::from_mode(folder::SHARED))?;
        fs::rename(&temporary, path)
    };
    write().with_context(|| format!("cannot write {}", path.display()))
}

/// A link: the loader takes all names for one library only if they lead to one file.
fn install_link(path: &Path, target: &str) -> Result<()> {
    if fs::read_link(path).is_ok_and(|present| present == Path::new(target)) {
        return Ok(());
    }
    let name = path.file_name().unwrap_or(OsStr::new("library")).to_string_lossy();
    let temporary = path.with_file_name(format!(".{name}.{}", std::process::id()));
    let link = || {
        let _ = fs::remove_file(&temporary);
        std::os::unix::fs::symlink(target, &temporary)?;
        fs::rename(&temporary, path)
    };
    link().with_context(|| format!("cannot write {}", path.display()))
}
