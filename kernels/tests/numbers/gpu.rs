//! The PTX on every case, where there is a GPU: against f64, and against the host reference.
//!
//! Without one the test says so and passes: `cargo test -p memscope-kernels --test numbers gpu -- --nocapture` shows which.

use crate::case::{Case, Random, Value};
use crate::{cases, host};
use cudarc::driver::{result, sys};
use memscope_kernels::IMAGES;
use std::collections::{BTreeMap, HashMap};
use std::ffi::{CString, c_void};

/// A reason why there is no real GPU here, or its name.
fn real_gpu() -> Result<String, String> {
    if std::env::var_os("MEMSCOPE_SIMULATED").is_some() {
        return Err("the device here is simulated".to_owned());
    }
    // SAFETY: loads libcuda, as any CUDA program does.
    if !unsafe { sys::is_culib_present() } {
        return Err("libcuda was not found".to_owned());
    }
    result::init().map_err(|error| format!("cuInit: {:?}", error.0))?;
    let device = result::device::get(0).map_err(|error| format!("cuDeviceGet: {:?}", error.0))?;
    // SAFETY: the device was just found, and its context stays for the life of this process.
    let context = unsafe { result::primary_ctx::retain(device) }.map_err(|error| format!("context: {:?}", error.0))?;
    // SAFETY: retained above.
    unsafe { result::ctx::set_current(context) }.map_err(|error| format!("cuCtxSetCurrent: {:?}", error.0))?;
    result::device::get_name(device).map_err(|error| format!("cuDeviceGetName: {:?}", error.0))
}

/// The bytes of a slice of numbers.
fn bytes<T: Copy>(values: &[T]) -> &[u8] {
    // SAFETY: numbers without padding.
    unsafe { std::slice::from_raw_parts(values.as_ptr().cast(), size_of_val(values)) }
}

/// Runs a case on the GPU; its outputs in the order of the arguments.
fn run(case: &Case, function: sys::CUfunction) -> Vec<Vec<f32>> {
    let upload = |values: &[u8]| {
        // SAFETY: a context is current; the memory is freed below.
        let address = unsafe { result::malloc_sync(values.len()) }.expect("a small allocation");
        // SAFETY: as long as the allocation.
        unsafe { result::memcpy_htod_sync(address, values) }.expect("a copy");
        address
    };
    let mut cells: Vec<u64> = Vec::new();
    let mut ours = Vec::new();
    for value in &case.arguments {
        cells.push(match value {
            Value::Input(values) => upload(bytes(values)),
            Value::Indices(values) => upload(bytes(values)),
            Value::Halves(values) => upload(bytes(values)),
            Value::Output { .. } | Value::IndicesOutput(_) | Value::Codes { .. } | Value::HalvesOutput { .. } => {
                upload(bytes(&value.before().expect("an output")))
            }
            Value::Same(index) => cells[*index],
            Value::Null => 0,
            Value::U32(value) => (*value).into(),
            Value::U64(value) => *value,
            Value::F32(value) => value.to_bits().into(),
        });
        if matches!(value, Value::Input(_) | Value::Indices(_) | Value::Halves(_)) || value.before().is_some() {
            ours.push(cells[cells.len() - 1]);
        }
    }
    let mut pointers: Vec<*mut c_void> = cells.iter().map(|cell| (&raw const *cell).cast_mut().cast()).collect();
    let triple = |[x, y, z]: [u32; 3]| (x, y, z);
    let (grid, block) = (triple(case.launch.grid), triple(case.launch.block));
    // SAFETY: arguments of the kernel's types, over memory as long as its sizes say.
    unsafe { result::launch_kernel(function, grid, block, 0, result::stream::null(), &mut pointers) }
        .unwrap_or_else(|error| panic!("launch of {}: {:?}", case.kernel.name, error.0));
    result::ctx::synchronize().unwrap_or_else(|error| panic!("{}: {:?}", case.kernel.name, error.0));

    let mut outputs = Vec::new();
    for (value, &cell) in case.arguments.iter().zip(&cells) {
        if let Some(before) = value.before() {
            let mut after = vec![0.0_f32; before.len()];
            // SAFETY: as long as the allocation.
            unsafe { result::memcpy_dtoh_sync(&mut after, cell) }.expect("a copy");
            outputs.push(after);
        }
    }
    for address in ours {
        // SAFETY: allocated above, and the kernel is done.
        unsafe { result::free_sync(address) }.expect("our own memory");
    }
    outputs
}

#[test]
fn every_kernel_agrees_with_f64_and_its_host_reference() {
    let name = match real_gpu() {
        Ok(name) => name,
        Err(reason) => return super::skip("kernels on a GPU", &reason),
    };
    let mut modules = HashMap::new();
    for image in IMAGES {
        let text = CString::new(image.ptx).expect("PTX has no NUL inside");
        // SAFETY: terminated PTX.
        let module = unsafe { result::module::load_data(text.as_ptr().cast()) };
        modules.insert(image.name, module.unwrap_or_else(|error| panic!("{}.ptx: {:?}", image.name, error.0)));
    }
    let mut apart: BTreeMap<&str, f32> = BTreeMap::new();
    for case in &cases::all(&mut Random::from_environment()) {
        let entry = CString::new(case.kernel.name).expect("a name has no NUL inside");
        // SAFETY: the module stays loaded.
        let function = unsafe { result::module::get_function(modules[case.kernel.image.name], entry) };
        let outputs = run(case, function.expect("the image has the entry"));
        case.check(&name, &outputs);
        let kinds = case.arguments.iter().filter(|value| value.before().is_some());
        // Indices and codes were checked; as floats they mean nothing.
        let pairs = outputs.iter().zip(host::run(case)).zip(kinds);
        let floats = pairs.filter(|(_, kind)| matches!(kind, Value::Output { .. }));
        let distances = floats.flat_map(|((gpu, host), _)| gpu.iter().zip(host).map(|(gpu, host)| (gpu - host).abs()));
        let largest = distances.fold(0.0, f32::max);
        let entry = apart.entry(case.kernel.name).or_default();
        *entry = entry.max(largest);
    }
    println!("{name}: every kernel agrees with f64. Largest distance from its host reference:");
    for (kernel, largest) in apart {
        println!("  {kernel:32} {largest:e}");
    }
}
