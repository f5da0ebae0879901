//! cuGetProcAddress: base name, CUDA version and per-thread flag to an exported function.
//!
//! Owns: the choice among versions. Refuses: names with a version suffix, which are no base names (as documented).

use crate::driver::{Export, all_exports};
use crate::error::CUresult;
use std::ffi::c_void;

/// CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM.
const PER_THREAD: u64 = 2;

/// Outcome of a look-up.
#[derive(Clone, Copy)]
pub enum Found {
    /// The function.
    Function(&'static Export),
    /// No function has this base name.
    Unknown,
    /// The function came with a later CUDA version than the one asked for.
    TooNew,
}

impl Found {
    /// The address, or null.
    pub fn address(&self) -> *const c_void {
        match self {
            Found::Function(export) => export.address.0.cast(),
            _ => std::ptr::null(),
        }
    }
}

/// Finds the newest variant of `base` that CUDA `version` had.
pub fn find(base: &str, version: i32, flags: u64) -> Result<Found, CUresult> {
    if version > crate::process::driver_version() || flags > 3 {
        return Err(CUresult::ERROR_INVALID_VALUE);
    }
    let mut known = false;
    let mut best: Option<&'static Export> = None;
    for export in all_exports() {
        let name = Name::of(export.name);
        if name.base != base || (name.per_thread && flags & PER_THREAD == 0) {
            continue;
        }
        known = true;
        let rank = |export: &Export| (export.version, Name::of(export.name).revision, Name::of(export.name).per_thread);
        if export.version <= version && best.is_none_or(|best| rank(best) < rank(export)) {
            best = Some(export);
        }
    }
    Ok(match best {
        Some(export) => Found::Function(export),
        None if known => Found::TooNew,
        None => Found::Unknown,
    })
}

struct Name<'a> {
    base: &'a str,
    revision: u32,
    per_thread: bool,
}

impl Name<'_> {
    fn of(name: &str) -> Name<'_> {
        let plain = name.strip_suffix("_ptsz").or_else(|| name.strip_suffix("_ptds"));
        let per_thread = plain.is_some();
        let plain = plain.unwrap_or(name);
        let (base, revision) = match plain.rsplit_once("_v") {
            Some((base, digits)) if digits.bytes().all(|byte| byte.is_ascii_digit()) => {
                (base, digits.parse().unwrap_or(1))
            }
            _ => (plain, 1),
        };
        Name { base, revision, per_thread }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    /// By the row, not by the address: an optimised build may give functions that do the same one address.
    fn name_of(found: Found) -> &'static str {
        match found {
            Found::Function(export) => export.name,
            Found::Unknown => "unknown",
            Found::TooNew => "too new",
        }
    }

    #[test]
    fn version_and_flag_choose_the_variant() {
        let look = |base, version, flags| name_of(find(base, version, flags).unwrap());
        assert_eq!(look("cuMemAlloc", 12_000, 0), "cuMemAlloc_v2");
        assert_eq!(look("cuMemAllocAsync", 12_000, 1), "cuMemAllocAsync");
        assert_eq!(look("cuMemAllocAsync", 12_000, 2), "cuMemAllocAsync_ptsz");
        assert_eq!(look("cuMemcpyHtoD", 12_000, 2), "cuMemcpyHtoD_v2_ptds");
        assert_eq!(look("cuGetProcAddress", 11_040, 0), "cuGetProcAddress");
        assert_eq!(look("cuGetProcAddress", 12_000, 0), "cuGetProcAddress_v2");
        assert_eq!(look("cuCtxCreate", 11_000, 0), "cuCtxCreate_v2");
        assert_eq!(look("cuCtxCreate", 13_000, 0), "cuCtxCreate_v4");
    }

    #[test]
    fn what_is_not_there_says_why() {
        let look = |base, version| find(base, version, 0).map(name_of);
        assert_eq!(look("cuNoSuchThing", 12_000), Ok("unknown"));
        assert_eq!(look("cuMemAlloc_v2", 12_000), Ok("unknown"));
        assert_eq!(look("cuMemAllocAsync", 11_010), Ok("too new"));
        assert_eq!(look("cuMemAlloc", 99_000), Err(CUresult::ERROR_INVALID_VALUE));
    }

    #[test]
    fn no_name_is_exported_twice() {
        let mut names = HashSet::new();
        for export in all_exports() {
            assert!(names.insert(export.name), "{}", export.name);
        }
        assert!(names.len() > 400, "{}", names.len());
    }
}
