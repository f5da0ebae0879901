//! What the environment asks of the simulator, read once a process.
//!
//! Owns: names, defaults and the reading of values. Refuses: to act on them.

use memscope_wire::env;
use std::path::PathBuf;

/// Device when none is named.
pub const DEFAULT_DEVICES: &str = "h100-80gb";

/// CUDA version that cuDriverGetVersion reports unless [`env::SIMULATOR_DRIVER_VERSION`] says another.
pub const DEFAULT_DRIVER_VERSION: i32 = 13_000;

/// What all processes of a session must agree on: the first one writes it into the shared state. A value that is not set
/// is what the state says already, and else its default.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Shared {
    /// Value of [`env::SIMULATOR_DEVICES`]; [`DEFAULT_DEVICES`] by default.
    pub devices: Option<String>,
    /// Bytes a process takes on each device on which it has a context. 0 by default: how large real contexts are is
    /// not calibrated, and a wrong number would be worse than none.
    pub context_bytes: Option<u64>,
    /// Bytes of the foreign process on every device; 0 by default.
    pub foreign_bytes: Option<u64>,
    /// Bytes reserved by the firmware on every device; 0 by default.
    pub reserved_bytes: Option<u64>,
}

/// Everything the environment says.
#[derive(Clone, Debug)]
pub struct Settings {
    /// What is shared with other processes.
    pub shared: Shared,
    /// Path of the shared state.
    pub state: PathBuf,
    /// False for a memory-only run.
    pub compute: bool,
    /// True when fresh device memory is filled with 0xFF bytes (NaN as a float) instead of zeros, in compute mode.
    pub poison: bool,
    /// CUDA version to report.
    pub driver_version: i32,
    /// Value of CUDA_VISIBLE_DEVICES.
    pub visible_devices: Option<String>,
}

/// A variable whose value cannot be used.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("{name}={value:?} is not a number of bytes; give a plain decimal number")]
pub struct InvalidSetting {
    /// Its name.
    pub name: &'static str,
    /// Its value.
    pub value: String,
}

impl Settings {
    /// The settings of this process's environment.
    pub fn from_environment() -> Result<Settings, InvalidSetting> {
        Settings::read(&|name| std::env::var(name).ok())
    }

    /// The settings according to `variable`, which gives a variable's value.
    pub fn read(variable: &dyn Fn(&str) -> Option<String>) -> Result<Settings, InvalidSetting> {
        let bytes = |name: &'static str| match variable(name) {
            None => Ok(None),
            Some(value) => value.trim().parse().map(Some).map_err(|_| InvalidSetting { name, value }),
        };
        let shared = Shared {
            devices: variable(env::SIMULATOR_DEVICES).filter(|value| !value.is_empty()),
            context_bytes: bytes(env::SIMULATOR_CONTEXT_BYTES)?,
            foreign_bytes: bytes(env::SIMULATOR_FOREIGN_BYTES)?,
            reserved_bytes: bytes(env::SIMULATOR_RESERVED_BYTES)?,
        };
        let state = match variable(env::SIMULATOR_STATE).filter(|path| !path.is_empty()) {
            Some(path) => PathBuf::from(path),
            None => default_state(&shared),
        };
        let version = variable(env::SIMULATOR_DRIVER_VERSION).and_then(|value| value.parse().ok());
        Ok(Settings {
            shared,
            state,
            compute: variable(env::SIMULATOR_COMPUTE).as_deref() != Some("0"),
            poison: variable(env::SIMULATOR_POISON).as_deref() == Some("1"),
            driver_version: version.unwrap_or(DEFAULT_DRIVER_VERSION),
            visible_devices: variable("CUDA_VISIBLE_DEVICES"),
        })
    }
}

/// Where the state lives when no session names a place: one file for each user and each set of shared settings.
fn default_state(shared: &Shared) -> PathBuf {
    let devices = shared.devices.as_deref().unwrap_or(DEFAULT_DEVICES);
    let injected = [shared.context_bytes, shared.foreign_bytes, shared.reserved_bytes].map(Option::unwrap_or_default);
    let text = format!("{devices} {injected:?}");
    let hash = memscope_wire::TextId::of(text.as_bytes()).0;
    // SAFETY: geteuid has no preconditions and cannot fail.
    let user = unsafe { libc::geteuid() };
    PathBuf::from(format!("/dev/shm/memscope-simulator-{user}-{hash:016x}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pairs: &[(&str, &str)]) -> Result<Settings, InvalidSetting> {
        Settings::read(&|name| pairs.iter().find(|pair| pair.0 == name).map(|pair| pair.1.to_owned()))
    }

    #[test]
    fn without_variables_nothing_is_injected() {
        let settings = read(&[]).unwrap();
        assert_eq!(settings.shared, Shared::default());
        assert!(settings.compute);
        assert_eq!(settings.driver_version, 13_000);
    }

    #[test]
    fn a_wrong_number_is_named() {
        let error = read(&[(env::SIMULATOR_FOREIGN_BYTES, "3 GiB")]).unwrap_err();
        assert_eq!(error, InvalidSetting { name: env::SIMULATOR_FOREIGN_BYTES, value: "3 GiB".to_owned() });
    }

    #[test]
    fn other_settings_take_another_default_state() {
        let plain = read(&[]).unwrap().state;
        assert_eq!(plain, read(&[(env::SIMULATOR_DEVICES, DEFAULT_DEVICES)]).unwrap().state);
        assert_ne!(plain, read(&[(env::SIMULATOR_DEVICES, "t4-16gb")]).unwrap().state);
        assert_ne!(plain, read(&[(env::SIMULATOR_CONTEXT_BYTES, "1")]).unwrap().state);
    }
}
