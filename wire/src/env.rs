//! Every environment variable that memscope sets or reads, in one place.

use core::ffi::CStr;

/// Variables in which the launchers of distributed jobs (torchrun, Open MPI, PMIx, MPICH, Slurm, MVAPICH2, PALS) say a process's rank; the
/// first that is set to a number counts.
pub const RANKS: [&CStr; 7] = [
    c"RANK",
    c"OMPI_COMM_WORLD_RANK",
    c"PMIX_RANK",
    c"PMI_RANK",
    c"SLURM_PROCID",
    c"MV2_COMM_WORLD_RANK",
    c"PALS_RANKID",
];

/// Variables in which launchers say how many ranks there are, in the same way; MVAPICH2 and PALS say it as PMI does or not at all.
pub const WORLD_SIZES: [&CStr; 5] =
    [c"WORLD_SIZE", c"OMPI_COMM_WORLD_SIZE", c"PMI_SIZE", c"SLURM_NTASKS", c"MV2_COMM_WORLD_SIZE"];

/// Variables in which launchers say a process's rank on its node, in the same way.
pub const LOCAL_RANKS: [&CStr; 6] = [
    c"LOCAL_RANK",
    c"OMPI_COMM_WORLD_LOCAL_RANK",
    c"MPI_LOCALRANKID",
    c"SLURM_LOCALID",
    c"MV2_COMM_WORLD_LOCAL_RANK",
    c"PALS_LOCAL_RANKID",
];

/// Folder in which a profiled process creates its log. Set by `memscope run`; without it the interposer records nothing.
pub const LOG_DIR: &str = "MEMSCOPE_LOG_DIR";

/// `0` keeps the shim out of Python programs: PyTorch's tensors are recorded, without modules, phases and most categories.
pub const SHIM: &str = "MEMSCOPE_SHIM";

/// What is recorded of where in the program an allocation was made: `off` for nothing, `module` (the default) for the module of a
/// PyTorch program, `python` for the lines of the Python program too, `native` for its machine code. Set by `memscope run --stacks`.
pub const STACKS: &str = "MEMSCOPE_STACKS";

/// How many places on stacks a process tells at most, below the usual number: for tests of that bound.
pub const STACK_NODES: &str = "MEMSCOPE_STACK_NODES";

/// `0` makes every library that the program opens with RTLD_DEEPBIND see the driver as the rest of the program does, without that
/// flag: so it is recorded. It changes what the library finds, and is therefore the user's choice.
pub const DEEPBIND: &str = "MEMSCOPE_DEEPBIND";

/// NVIDIA's: the library that NVTX tells of the program's ranges. Set by `memscope run`, unless it names one already.
pub const NVTX_INJECTION: &str = "NVTX_INJECTION64_PATH";

/// The session folder, for tools started inside a session. Set by `memscope run`.
pub const SESSION: &str = "MEMSCOPE_SESSION";

/// `1` when memscope runs the program on a simulated device, whose numbers are not to be trusted as a trained model.
pub const SIMULATED: &str = "MEMSCOPE_SIMULATED";

/// The simulated devices: `SPEC` or `SPEC*COUNT`, where SPEC is a catalogue name or a number of bytes (see [`crate::device`]).
pub const SIMULATOR_DEVICES: &str = "MEMSCOPE_SIMULATOR_DEVICES";

/// Path of the file that holds the simulator's state, shared by all processes of a session. Created on first use.
pub const SIMULATOR_STATE: &str = "MEMSCOPE_SIMULATOR_STATE";

/// `0` makes the simulator skip kernels, copies and fills: a memory-only run.
pub const SIMULATOR_COMPUTE: &str = "MEMSCOPE_SIMULATOR_COMPUTE";

/// Bytes that a simulated context takes on its device, seen by the simulated NVML and not by the program's calls.
pub const SIMULATOR_CONTEXT_BYTES: &str = "MEMSCOPE_SIMULATOR_CONTEXT_BYTES";

/// Bytes that a simulated foreign process holds on every simulated device.
pub const SIMULATOR_FOREIGN_BYTES: &str = "MEMSCOPE_SIMULATOR_FOREIGN_BYTES";

/// Bytes that the simulated firmware reserves on every simulated device.
pub const SIMULATOR_RESERVED_BYTES: &str = "MEMSCOPE_SIMULATOR_RESERVED_BYTES";

/// Any value: the simulator prints each call of its functions on stderr.
pub const SIMULATOR_TRACE: &str = "MEMSCOPE_SIMULATOR_TRACE";

/// `1` makes the simulator fill fresh device memory with 0xFF bytes (NaN as a float) instead of zeros: for tests that look
/// for reads of memory that was never written.
pub const SIMULATOR_POISON: &str = "MEMSCOPE_SIMULATOR_POISON";

/// Seconds that a rank of a program waits at most for another one on the simulated device (60 unless set).
pub const SIMULATOR_RANK_WAIT_S: &str = "MEMSCOPE_SIMULATOR_RANK_WAIT_S";

/// CUDA version that the simulated driver reports, as in cuDriverGetVersion (13000 unless set).
pub const SIMULATOR_DRIVER_VERSION: &str = "MEMSCOPE_SIMULATOR_DRIVER_VERSION";

/// `1` shows the dashboard in `memscope run`, `0` does not, whatever the configuration file says.
pub const TUI: &str = "MEMSCOPE_TUI";

/// Colours of the categories in the terminal views: `default`, `color-blind` or `mono`.
pub const PALETTE: &str = "MEMSCOPE_PALETTE";

/// `1` draws the terminal views with ASCII characters only, `0` with Unicode.
pub const ASCII: &str = "MEMSCOPE_ASCII";

/// Path of the NVML library (libnvidia-ml.so.1) that `memscope top` asks, instead of the one that the loader finds: for tests.
pub const NVML: &str = "MEMSCOPE_NVML";
