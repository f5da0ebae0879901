//! Copies in all directions.

use super::given;
use crate::context;
use crate::copy::{Box3, Claim, copy, copy_box};
use crate::error::{CUresult, Status};
use crate::memory::array;
use crate::registry::Handle;
use crate::stream;

use Claim::{Any, Device, Host};

/// Copies behind the work of a stream.
///
/// # Safety
/// Host ranges must be readable (source) or writable (destination).
unsafe fn run(destination: (u64, Claim), source: (u64, Claim), bytes: usize, stream: Handle) -> Status {
    ready(stream)?;
    // SAFETY: as the caller says.
    unsafe { copy(destination, source, bytes as u64) }
}

fn ready(stream: Handle) -> Status {
    if stream == 0 {
        context::current()?;
    }
    stream::ordered(stream).map(|_| ())
}

/// `bytes` bytes of an array from `offset` on, as a device range.
fn in_array(handle: Handle, offset: usize) -> Result<(u64, Claim), CUresult> {
    Ok((array::find(handle)?.address + offset as u64, Device))
}

/// One side of CUDA_MEMCPY2D.
#[repr(C)]
struct Side2 {
    x: usize,
    y: usize,
    kind: u32,
    host: u64,
    device: u64,
    array: Handle,
    pitch: usize,
}

/// CUDA_MEMCPY2D.
#[repr(C)]
struct Copy2 {
    source: Side2,
    destination: Side2,
    width: usize,
    height: usize,
}

/// One side of CUDA_MEMCPY3D and CUDA_MEMCPY3D_PEER.
#[repr(C)]
struct Side3 {
    x: usize,
    y: usize,
    z: usize,
    level: usize,
    kind: u32,
    host: u64,
    device: u64,
    array: Handle,
    context: Handle,
    pitch: usize,
    height: usize,
}

/// CUDA_MEMCPY3D and CUDA_MEMCPY3D_PEER.
#[repr(C)]
struct Copy3 {
    source: Side3,
    destination: Side3,
    width: usize,
    height: usize,
    depth: usize,
}

const _: () = assert!(size_of::<Copy2>() == 128);
const _: () = assert!(size_of::<Copy3>() == 200);

fn corner(side: &Side3, width: usize) -> Result<Box3, CUresult> {
    if side.level != 0 {
        return Err(CUresult::NOT_SIMULATED);
    }
    let (base, claim, pitch, height) = match side.kind {
        1 => (side.host, Host, side.pitch, side.height),
        2 => (side.device, Device, side.pitch, side.height),
        4 => (side.device, Any, side.pitch, side.height),
        3 => {
            let array = array::find(side.array)?;
            (array.address, Device, array.pitch, array.extent[1].max(1))
        }
        _ => return Err(CUresult::ERROR_INVALID_VALUE),
    };
    // A pitch of 0 means rows without a gap.
    let pitch = if pitch == 0 { width } else { pitch };
    let slice = pitch.checked_mul(height).ok_or(CUresult::ERROR_INVALID_VALUE)?;
    let offset = side.z * slice + side.y * pitch + side.x;
    Ok(Box3 { address: base + offset as u64, claim, pitch: pitch as u64, slice: slice as u64 })
}

fn widen(side: &Side2) -> Side3 {
    let (x, y, z, level, context, height) = (side.x, side.y, 0, 0, 0, 0);
    let Side2 { kind, host, device, array, pitch, .. } = *side;
    Side3 { x, y, z, level, kind, host, device, array, context, pitch, height }
}

/// # Safety
/// As the CUDA documentation says for the description.
unsafe fn run_2d(description: Option<&Copy2>, stream: Handle) -> Status {
    let description = given(description)?;
    ready(stream)?;
    let (source, destination) = (widen(&description.source), widen(&description.destination));
    let (source, destination) = (corner(&source, description.width)?, corner(&destination, description.width)?);
    // SAFETY: as the caller says.
    unsafe { copy_box(destination, source, description.width as u64, description.height as u64, 1) }
}

/// # Safety
/// As the CUDA documentation says for the description.
unsafe fn run_3d(description: Option<&Copy3>, stream: Handle) -> Status {
    let description = given(description)?;
    ready(stream)?;
    let (width, height, depth) = (description.width, description.height, description.depth);
    let (source, destination) = (corner(&description.source, width)?, corner(&description.destination, width)?);
    // SAFETY: as the caller says.
    unsafe { copy_box(destination, source, width as u64, height as u64, depth as u64) }
}

macro_rules! copies {
    ($($version:literal $name:ident $arguments:tt $(also $alias:ident)? = $run:ident($($value:expr),*);)*) => {
        exports! {
            $($version fn $name $arguments $(also $alias)? {
                // SAFETY: the program vouches for its host ranges, as for any C function.
                unsafe { $run($($value),*) }
            })*
        }
    };
}

copies! {
    4000 cuMemcpy(to: u64, from: u64, bytes: usize) also cuMemcpy_ptds = run((to, Any), (from, Any), bytes, 0);
    4000 cuMemcpyAsync(to: u64, from: u64, bytes: usize, stream: Handle) also cuMemcpyAsync_ptsz
        = run((to, Any), (from, Any), bytes, stream);
    3020 cuMemcpyHtoD_v2(to: u64, from: u64, bytes: usize) also cuMemcpyHtoD_v2_ptds
        = run((to, Device), (from, Host), bytes, 0);
    3020 cuMemcpyHtoDAsync_v2(to: u64, from: u64, bytes: usize, stream: Handle) also cuMemcpyHtoDAsync_v2_ptsz
        = run((to, Device), (from, Host), bytes, stream);
    3020 cuMemcpyDtoH_v2(to: u64, from: u64, bytes: usize) also cuMemcpyDtoH_v2_ptds
        = run((to, Host), (from, Device), bytes, 0);
    3020 cuMemcpyDtoHAsync_v2(to: u64, from: u64, bytes: usize, stream: Handle) also cuMemcpyDtoHAsync_v2_ptsz
        = run((to, Host), (from, Device), bytes, stream);
    3020 cuMemcpyDtoD_v2(to: u64, from: u64, bytes: usize) also cuMemcpyDtoD_v2_ptds
        = run((to, Device), (from, Device), bytes, 0);
    3020 cuMemcpyDtoDAsync_v2(to: u64, from: u64, bytes: usize, stream: Handle) also cuMemcpyDtoDAsync_v2_ptsz
        = run((to, Device), (from, Device), bytes, stream);
    4000 cuMemcpyPeer(to: u64, _to_context: Handle, from: u64, _from_context: Handle, bytes: usize)
        also cuMemcpyPeer_ptds
        = run((to, Device), (from, Device), bytes, 0);
    4000 cuMemcpyPeerAsync(
        to: u64, _to_context: Handle, from: u64, _from_context: Handle, bytes: usize, stream: Handle)
        also cuMemcpyPeerAsync_ptsz
        = run((to, Device), (from, Device), bytes, stream);
    3020 cuMemcpyHtoA_v2(to: Handle, offset: usize, from: u64, bytes: usize) also cuMemcpyHtoA_v2_ptds
        = run(in_array(to, offset)?, (from, Host), bytes, 0);
    3020 cuMemcpyHtoAAsync_v2(
        to: Handle, offset: usize, from: u64, bytes: usize, stream: Handle) also cuMemcpyHtoAAsync_v2_ptsz
        = run(in_array(to, offset)?, (from, Host), bytes, stream);
    3020 cuMemcpyAtoH_v2(to: u64, from: Handle, offset: usize, bytes: usize) also cuMemcpyAtoH_v2_ptds
        = run((to, Host), in_array(from, offset)?, bytes, 0);
    3020 cuMemcpyAtoHAsync_v2(
        to: u64, from: Handle, offset: usize, bytes: usize, stream: Handle) also cuMemcpyAtoHAsync_v2_ptsz
        = run((to, Host), in_array(from, offset)?, bytes, stream);
    3020 cuMemcpyDtoA_v2(to: Handle, offset: usize, from: u64, bytes: usize) also cuMemcpyDtoA_v2_ptds
        = run(in_array(to, offset)?, (from, Device), bytes, 0);
    3020 cuMemcpyAtoD_v2(to: u64, from: Handle, offset: usize, bytes: usize) also cuMemcpyAtoD_v2_ptds
        = run((to, Device), in_array(from, offset)?, bytes, 0);
    3020 cuMemcpyAtoA_v2(
        to: Handle, to_offset: usize, from: Handle, from_offset: usize, bytes: usize) also cuMemcpyAtoA_v2_ptds
        = run(in_array(to, to_offset)?, in_array(from, from_offset)?, bytes, 0);
    3020 cuMemcpy2D_v2(description: Option<&Copy2>) also cuMemcpy2D_v2_ptds = run_2d(description, 0);
    3020 cuMemcpy2DUnaligned_v2(description: Option<&Copy2>) also cuMemcpy2DUnaligned_v2_ptds = run_2d(description, 0);
    3020 cuMemcpy2DAsync_v2(description: Option<&Copy2>, stream: Handle) also cuMemcpy2DAsync_v2_ptsz
        = run_2d(description, stream);
    3020 cuMemcpy3D_v2(description: Option<&Copy3>) also cuMemcpy3D_v2_ptds = run_3d(description, 0);
    3020 cuMemcpy3DAsync_v2(description: Option<&Copy3>, stream: Handle) also cuMemcpy3DAsync_v2_ptsz
        = run_3d(description, stream);
    4000 cuMemcpy3DPeer(description: Option<&Copy3>) also cuMemcpy3DPeer_ptds = run_3d(description, 0);
    4000 cuMemcpy3DPeerAsync(description: Option<&Copy3>, stream: Handle) also cuMemcpy3DPeerAsync_ptsz
        = run_3d(description, stream);
}
