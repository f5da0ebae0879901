//! Fills: cuMemset in all widths.

use crate::context;
use crate::copy::{fill, fill_rows};
use crate::error::Status;
use crate::registry::Handle;
use crate::stream;

/// Fills behind the work of a stream.
fn run(address: u64, pattern: &[u8], count: usize, stream: Handle) -> Status {
    ready(stream)?;
    // SAFETY: the range is checked to be memory of ours.
    unsafe { fill(address, pattern, count as u64) }
}

fn run_rows(address: u64, pitch: usize, pattern: &[u8], width: usize, height: usize, stream: Handle) -> Status {
    ready(stream)?;
    // SAFETY: the range is checked to be memory of ours.
    unsafe { fill_rows(address, pitch as u64, pattern, width as u64, height as u64) }
}

fn ready(stream: Handle) -> Status {
    if stream == 0 {
        context::current()?;
    }
    stream::ordered(stream).map(|_| ())
}

exports! {
    3020 fn cuMemsetD8_v2(address: u64, value: u8, count: usize) also cuMemsetD8_v2_ptds {
        run(address, &[value], count, 0)
    }
    3020 fn cuMemsetD16_v2(address: u64, value: u16, count: usize) also cuMemsetD16_v2_ptds {
        run(address, &value.to_le_bytes(), count, 0)
    }
    3020 fn cuMemsetD32_v2(address: u64, value: u32, count: usize) also cuMemsetD32_v2_ptds {
        run(address, &value.to_le_bytes(), count, 0)
    }
    3020 fn cuMemsetD8Async(address: u64, value: u8, count: usize, stream: Handle) also cuMemsetD8Async_ptsz {
        run(address, &[value], count, stream)
    }
    3020 fn cuMemsetD16Async(address: u64, value: u16, count: usize, stream: Handle) also cuMemsetD16Async_ptsz {
        run(address, &value.to_le_bytes(), count, stream)
    }
    3020 fn cuMemsetD32Async(address: u64, value: u32, count: usize, stream: Handle) also cuMemsetD32Async_ptsz {
        run(address, &value.to_le_bytes(), count, stream)
    }
    3020 fn cuMemsetD2D8_v2(
        address: u64, pitch: usize, value: u8, width: usize, height: usize,
    ) also cuMemsetD2D8_v2_ptds {
        run_rows(address, pitch, &[value], width, height, 0)
    }
    3020 fn cuMemsetD2D16_v2(
        address: u64, pitch: usize, value: u16, width: usize, height: usize,
    ) also cuMemsetD2D16_v2_ptds {
        run_rows(address, pitch, &value.to_le_bytes(), width, height, 0)
    }
    3020 fn cuMemsetD2D32_v2(
        address: u64, pitch: usize, value: u32, width: usize, height: usize,
    ) also cuMemsetD2D32_v2_ptds {
        run_rows(address, pitch, &value.to_le_bytes(), width, height, 0)
    }
    3020 fn cuMemsetD2D8Async(
        address: u64, pitch: usize, value: u8, width: usize, height: usize, stream: Handle,
    ) also cuMemsetD2D8Async_ptsz {
        run_rows(address, pitch, &[value], width, height, stream)
    }
    3020 fn cuMemsetD2D16Async(
        address: u64, pitch: usize, value: u16, width: usize, height: usize, stream: Handle,
    ) also cuMemsetD2D16Async_ptsz {
        run_rows(address, pitch, &value.to_le_bytes(), width, height, stream)
    }
    3020 fn cuMemsetD2D32Async(
        address: u64, pitch: usize, value: u32, width: usize, height: usize, stream: Handle,
    ) also cuMemsetD2D32Async_ptsz {
        run_rows(address, pitch, &value.to_le_bytes(), width, height, stream)
    }
}
