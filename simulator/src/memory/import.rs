//! What this process gives to others and takes from them.
//!
//! Owns: which allocation may be shared how, and the entries of what is imported: in the table as any allocation, charged to
//! nobody here. Refuses: to move bytes ([`super::shared`] does).

use super::shared::{self, Share};
use super::{Allocation, Import, Kind, Memory};
use crate::context::Context;
use crate::error::{CUresult, Status};
use crate::process::Process;

impl Memory {
    /// Shares the allocation that holds `address`: memory of cuMemAlloc by a handle, memory of a pool by a pointer.
    pub fn share(&mut self, address: u64, how: Import) -> Result<Share, CUresult> {
        let region = self.region(address).ok_or(CUresult::ERROR_INVALID_VALUE)?;
        let allocation = region.allocation.ok_or(CUresult::ERROR_INVALID_VALUE)?;
        let mut share = match (allocation.kind, how) {
            (Kind::Device, Import::Handle) => Share::of_pool(0, allocation.physical),
            (Kind::Pool(pool), Import::Pointer) => self.pools.share(pool)?,
            _ => return Err(CUresult::ERROR_INVALID_VALUE),
        };
        share.id = allocation.id;
        self.shared.share(region.start, allocation.bytes, allocation.reach, share)
    }

    /// Opens a handle: at the address of the first time, if it is open. CUDA_ERROR_INVALID_CONTEXT in its own process.
    pub fn open(&mut self, process: &Process, context: &Context, share: Share) -> Result<u64, CUresult> {
        if share.is_own() {
            return Err(CUresult::ERROR_INVALID_CONTEXT);
        }
        if let Some((address, times)) = self.opened.get_mut(&share) {
            *times += 1;
            return Ok(*address);
        }
        let address = self.import(process, context, share, Import::Handle)?;
        self.opened.insert(share, (address, 1));
        Ok(address)
    }

    /// Closes what was opened, once.
    pub fn close(&mut self, process: &Process, address: u64) -> Status {
        let opened = self.opened.values_mut().find(|(opened, _)| *opened == address);
        let (_, times) = opened.ok_or(CUresult::ERROR_INVALID_VALUE)?;
        *times -= 1;
        if *times > 0 {
            return Ok(());
        }
        self.free(process, address, |kind| kind == Kind::Imported(Import::Handle))
    }

    /// Takes in what another process has allocated from a pool that was imported here.
    pub fn import_pointer(
        &mut self,
        process: &Process,
        context: &Context,
        pool: usize,
        share: Share,
    ) -> Result<u64, CUresult> {
        if share.bytes == 0 || !self.pools.origin(pool)?.has_pool_of(&share) {
            return Err(CUresult::ERROR_INVALID_VALUE);
        }
        self.import(process, context, share, Import::Pointer)
    }

    fn import(&mut self, process: &Process, context: &Context, share: Share, how: Import) -> Result<u64, CUresult> {
        let device = process.physical_device(share.physical)?;
        let (address, reach) = shared::map(&share)?;
        self.enter(address, share.bytes, reach, how, (device.physical, device.ordinal, context.handle));
        Ok(address)
    }

    /// Enters what was mapped of others into the table.
    pub fn enter(&mut self, address: u64, bytes: u64, reach: u64, how: Import, whose: (u32, i32, usize)) {
        let id = self.next_id();
        let ((physical, ordinal, context), kind) = (whose, Kind::Imported(how));
        self.allocations.insert(address, Allocation { bytes, charged: 0, kind, physical, ordinal, context, id, reach });
    }
}
