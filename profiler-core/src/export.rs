//! Gives a profile's content to other tools.
//!
//! Owns: the folder of plain Parquet files. Refuses: formats that lose something.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::profile::{Pending, Profile};

/// Writes the profile's tables into a folder, one `<table>.parquet` each, and returns their paths. The folder is made if it is
/// not there.
///
/// # Errors
/// When a file exists and `force` is false (nothing is written then), when the profile is damaged, and when the folder cannot
/// be written.
pub fn export_parquet(profile: &Profile, folder: impl AsRef<Path>, force: bool) -> Result<Vec<PathBuf>> {
    let folder = folder.as_ref();
    std::fs::create_dir_all(folder).map_err(Error::io("create the folder", folder))?;
    let tables: Vec<&str> = profile.tables().collect();
    let paths: Vec<PathBuf> = tables.iter().map(|table| folder.join(format!("{table}.parquet"))).collect();
    let pending = paths.iter().map(|path| Pending::new(path, force)).collect::<Result<Vec<_>>>()?;
    for ((table, path), pending) in tables.iter().zip(&paths).zip(pending) {
        let mut source = profile.table_bytes(table)?;
        let mut file = pending.create()?;
        std::io::copy(&mut source, &mut file).and_then(|_| file.flush()).map_err(Error::io("write", path))?;
        pending.place()?;
    }
    Ok(paths)
}
