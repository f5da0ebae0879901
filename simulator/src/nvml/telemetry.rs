//! What a simulated device does not have: every function here answers NVML_ERROR_NOT_SUPPORTED for a valid device.
//!
//! Owns: their names. Arguments behind the device are not read.

use super::{Device, Return, exports, physical};

macro_rules! absent {
    ($($name:ident)*) => {
        exports! {
            $(fn $name(device: Device) { physical(device)?; Err(Return::NOT_SUPPORTED) })*
        }
    };
}

absent! {
    nvmlDeviceGetBAR1MemoryInfo nvmlDeviceGetBoardId nvmlDeviceGetBrand nvmlDeviceGetClock nvmlDeviceGetClockInfo
    nvmlDeviceGetCurrPcieLinkGeneration nvmlDeviceGetCurrPcieLinkWidth nvmlDeviceGetCurrentClocksEventReasons
    nvmlDeviceGetCurrentClocksThrottleReasons nvmlDeviceGetDecoderUtilization nvmlDeviceGetDisplayActive
    nvmlDeviceGetDisplayMode nvmlDeviceGetEccMode nvmlDeviceGetEncoderUtilization nvmlDeviceGetEnforcedPowerLimit
    nvmlDeviceGetFanSpeed nvmlDeviceGetFanSpeed_v2 nvmlDeviceGetJpgUtilization nvmlDeviceGetMaxClockInfo
    nvmlDeviceGetMaxPcieLinkGeneration nvmlDeviceGetMaxPcieLinkWidth nvmlDeviceGetMemoryBusWidth nvmlDeviceGetMigMode
    nvmlDeviceGetNumFans nvmlDeviceGetNumGpuCores nvmlDeviceGetNvLinkRemoteDeviceType
    nvmlDeviceGetNvLinkRemotePciInfo_v2 nvmlDeviceGetNvLinkState nvmlDeviceGetOfaUtilization
    nvmlDeviceGetPcieReplayCounter nvmlDeviceGetPcieThroughput nvmlDeviceGetPerformanceState
    nvmlDeviceGetPersistenceMode nvmlDeviceGetPowerManagementDefaultLimit nvmlDeviceGetPowerManagementLimit
    nvmlDeviceGetPowerManagementLimitConstraints nvmlDeviceGetPowerState nvmlDeviceGetPowerUsage
    nvmlDeviceGetProcessUtilization nvmlDeviceGetProcessesUtilizationInfo nvmlDeviceGetRetiredPages
    nvmlDeviceGetSamples nvmlDeviceGetSerial nvmlDeviceGetTemperature nvmlDeviceGetTemperatureThreshold
    nvmlDeviceGetTemperatureV nvmlDeviceGetTotalEccErrors nvmlDeviceGetTotalEnergyConsumption
    nvmlDeviceGetUtilizationRates nvmlDeviceGetVbiosVersion nvmlDeviceGetViolationStatus
}
