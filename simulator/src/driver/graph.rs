//! Graphs whose nodes allocate and free memory; other nodes are not simulated.

use super::{Out, given, store};
use crate::error::CUresult;
use crate::graph;
use crate::process::process;
use crate::registry::Handle;
use crate::{context, stream};
use std::ffi::{c_int, c_uint, c_void};

/// CUDA_MEM_ALLOC_NODE_PARAMS: the properties of the pool, who may access it, and what is asked for and given.
#[repr(C)]
struct Parameters {
    kind: c_int,
    handle_types: c_int,
    location: super::pool::Location,
    rest_of_pool: [u64; 9],
    access: *const c_void,
    access_count: usize,
    bytes: usize,
    address: u64,
}

/// CUDA_GRAPH_INSTANTIATE_PARAMS.
#[repr(C)]
struct Instantiation {
    flags: u64,
    upload_stream: Handle,
    failed_node: Handle,
    result: c_int,
}

exports! {
    10000 fn cuGraphCreate(handle: Out<'_, Handle>, flags: c_uint) {
        let handle = given(handle)?;
        if flags != 0 {
            return Err(CUresult::ERROR_INVALID_VALUE);
        }
        let context = context::current()?;
        handle.write(graph::create(&context));
        Ok(())
    }
    10000 fn cuGraphDestroy(handle: Handle) { process()?; graph::destroy(handle) }
    10000 fn cuGraphAddEmptyNode(node: Out<'_, Handle>, handle: Handle, _after: *const c_void, _count: usize) {
        process()?;
        store(node, graph::add_empty(handle)?)
    }
    11040 fn cuGraphAddMemAllocNode(
        node: Out<'_, Handle>, handle: Handle, _after: *const c_void, _count: usize, parameters: Option<&mut Parameters>,
    ) {
        let (node, parameters, context) = (given(node)?, given(parameters)?, context::current()?);
        if parameters.location.ordinal()? != context.device.ordinal {
            return Err(CUresult::NOT_SIMULATED);
        }
        let (added, address) = graph::add_allocation(&context, handle, parameters.bytes as u64)?;
        parameters.address = address;
        node.write(added);
        Ok(())
    }
    11040 fn cuGraphAddMemFreeNode(
        node: Out<'_, Handle>, handle: Handle, _after: *const c_void, _count: usize, address: u64,
    ) {
        process()?;
        store(node, graph::add_free(handle, address)?)
    }
    11000 fn cuGraphInstantiate_v2(
        executable: Out<'_, Handle>, handle: Handle, _node: *mut c_void, _text: *mut c_void, _bytes: usize,
    ) {
        process()?;
        store(executable, graph::instantiate(handle, 0)?)
    }
    11040 fn cuGraphInstantiateWithFlags(executable: Out<'_, Handle>, handle: Handle, flags: u64) {
        process()?;
        store(executable, graph::instantiate(handle, flags)?)
    }
    12000 fn cuGraphInstantiateWithParams(
        executable: Out<'_, Handle>, handle: Handle, parameters: Option<&mut Instantiation>,
    ) also cuGraphInstantiateWithParams_ptsz {
        process()?;
        let (executable, parameters) = (given(executable)?, given(parameters)?);
        executable.write(graph::instantiate(handle, parameters.flags)?);
        (parameters.failed_node, parameters.result) = (0, 0);
        Ok(())
    }
    11010 fn cuGraphUpload(executable: Handle, stream: Handle) also cuGraphUpload_ptsz {
        stream::ordered(stream)?;
        graph::find(executable)
    }
    10000 fn cuGraphLaunch(executable: Handle, stream: Handle) also cuGraphLaunch_ptsz {
        stream::ordered(stream)?;
        graph::launch(executable)
    }
    10000 fn cuGraphExecDestroy(executable: Handle) { process()?; graph::destroy_executable(executable) }
}
