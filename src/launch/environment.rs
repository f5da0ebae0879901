//! The environment variables that a run sets for the program.
//!
//! Owns: which, and how they join what the user has set. Refuses: to record any of them.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use memscope_core::session::SIMULATOR_FILE;
use memscope_wire::env as names;

use crate::arguments::{RecordArguments, Stacks};
use crate::embedded::{INTERPOSER_FILE, Libraries, RUNTIME_NAMES};

/// One variable to set.
pub struct Variable {
    /// Its name.
    pub name: &'static str,
    /// Its value.
    pub value: OsString,
}

/// All variables of a run: the preload before what the user preloads, the session, the library for NVTX unless the user has another
/// one, and the simulator when it is asked for.
///
/// The simulated CUDA libraries are preloaded by their bare names and found through LD_LIBRARY_PATH: a library that PyTorch
/// needs is then loaded already under the name that it asks for, and its own search path, which comes first, is not followed.
pub fn variables(record: &RecordArguments, libraries: &Libraries, session: &Path, logs: &Path) -> Vec<Variable> {
    let mut all = vec![
        Variable { name: names::LOG_DIR, value: logs.into() },
        Variable { name: names::SESSION, value: session.into() },
    ];
    // The variable that memscope itself was started with is not the program's.
    let stacks = record.stacks.unwrap_or(Stacks::Module);
    all.push(Variable { name: names::STACKS, value: stacks.word().into() });
    if std::env::var_os(names::NVTX_INJECTION).is_none_or(|other| other.is_empty()) {
        all.push(Variable { name: names::NVTX_INJECTION, value: libraries.interposer.clone().into() });
    }
    let mut preload = libraries.preload.join(INTERPOSER_FILE).into_os_string();
    if let Some(devices) = simulated(record) {
        for name in RUNTIME_NAMES {
            preload.push(":");
            preload.push(name);
        }
        let mut folders = libraries.preload.clone().into_os_string();
        folders.push(":");
        folders.push(&libraries.simulator);
        all.push(prepend("LD_LIBRARY_PATH", &folders));
        all.push(Variable { name: names::SIMULATED, value: "1".into() });
        all.push(Variable { name: names::SIMULATOR_DEVICES, value: devices.into() });
        all.push(Variable { name: names::SIMULATOR_STATE, value: logs.join(SIMULATOR_FILE).into() });
        all.push(Variable { name: names::SIMULATOR_COMPUTE, value: if record.no_compute { "0" } else { "1" }.into() });
    }
    all.push(prepend("LD_PRELOAD", &preload));
    all
}

/// Takes the simulator's variables into memscope's own environment, for the simulated NVML that it polls.
///
/// Call it before the first thread.
pub fn adopt_simulator(variables: &[Variable]) {
    for variable in variables.iter().filter(|variable| variable.name.starts_with("MEMSCOPE_SIMULATOR_")) {
        // SAFETY: memscope has one thread yet, so nobody reads the environment meanwhile.
        unsafe { std::env::set_var(variable.name, &variable.value) };
    }
}

/// The simulated devices as the simulator reads them (`SPEC`, or `SPEC*COUNT` for several), if the run asks for any.
pub fn simulated(record: &RecordArguments) -> Option<String> {
    let device = record.device?;
    let spec = if memscope_wire::device::find(device.key).is_some() {
        device.key.to_string()
    } else {
        device.capacity.to_string()
    };
    Some(if record.devices == 1 { spec } else { format!("{spec}*{}", record.devices) })
}

fn prepend(name: &'static str, first: &OsStr) -> Variable {
    let mut value = first.to_owned();
    if let Some(rest) = std::env::var_os(name).filter(|rest| !rest.is_empty()) {
        value.push(":");
        value.push(rest);
    }
    Variable { name, value }
}
