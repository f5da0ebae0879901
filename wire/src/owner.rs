//! Libraries that take memory of the driver for themselves, and what they are called; and those that ask for others.
//!
//! Owns: the tables by which the file of a call's code tells who asked. Refuses: to guess: a file that is in neither is called by its
//! own name.

/// Who takes memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Owner {
    /// Name in reports.
    pub name: &'static str,
    /// How the names of its files begin.
    pub files: &'static [&'static str],
    /// Folders that hold its files, whatever these are called; of several levels with a slash.
    pub folders: &'static [&'static str],
}

const fn owner(name: &'static str, files: &'static [&'static str]) -> Owner {
    Owner { name, files, folders: &[] }
}

const fn package(name: &'static str, files: &'static [&'static str], folders: &'static [&'static str]) -> Owner {
    Owner { name, files, folders }
}

/// Who is known. The first that fits counts.
pub static OWNERS: [Owner; 19] = [
    owner("XLA", &["xla_cuda_plugin", "xla_extension", "libxla_extension", "libjax_common", "libpjrt"]),
    owner("TensorFlow", &["libtensorflow", "_pywrap_tensorflow"]),
    package("RMM", &["librmm.so"], &["site-packages/rmm"]),
    package("CuPy", &["libcupy"], &["cupy_backends", "site-packages/cupy"]),
    owner("llama.cpp (ggml)", &["libggml", "libllama.so"]),
    owner("NCCL", &["libnccl.so", "libnccl-", "libnccl_static"]),
    owner("cuBLAS", &["libcublas"]),
    owner("cuDNN", &["libcudnn"]),
    owner("cuFFT", &["libcufft"]),
    owner("cuSOLVER", &["libcusolver"]),
    owner("cuSPARSE", &["libcusparse"]),
    owner("TensorRT", &["libnvinfer"]),
    owner("ONNX Runtime", &["libonnxruntime", "onnxruntime_pybind11_state"]),
    owner("NVSHMEM", &["libnvshmem"]),
    owner("UCX", &["libuct_cuda", "libucm_cuda"]),
    owner("vLLM", &["cumem_allocator"]),
    owner("PyTorch", &["libtorch", "libc10"]),
    package("PyCUDA", &[], &["site-packages/pycuda"]),
    owner("MAGMA", &["libmagma"]),
];

/// Who calls the driver for others: the CUDA runtime, the real one and memscope's; what calls C functions for an interpreter. Behind
/// them on the stack is who asked.
static GO_BETWEENS: [Owner; 3] = [
    owner("the CUDA runtime", &["libcudart.so", "libcudart-", "libmemscope_runtime"]),
    owner("ctypes", &["libffi.so", "libffi-", "_ctypes."]),
    package("cuda-python", &[], &["cuda/bindings", "cuda/core"]),
];

impl Owner {
    fn has(&self, path: &[u8]) -> bool {
        let begin = path.iter().rposition(|byte| *byte == b'/').map_or(0, |last| last + 1);
        let folders = path.get(..begin).unwrap_or(&[]);
        let file = path.get(begin..).unwrap_or(&[]);
        let holds = |folder: &&str| {
            let between = |at: &[u8]| {
                at.strip_prefix(b"/")
                    .and_then(|at| at.strip_prefix(folder.as_bytes()))
                    .is_some_and(|at| at.starts_with(b"/"))
            };
            (0..folders.len()).any(|begin| folders.get(begin..).is_some_and(between))
        };
        self.files.iter().any(|prefix| file.starts_with(prefix.as_bytes())) || self.folders.iter().any(holds)
    }
}

/// Who owns the code in the file at `path`, if that is known.
pub fn of_path(path: &[u8]) -> Option<&'static Owner> {
    OWNERS.iter().find(|owner| owner.has(path))
}

/// True when the code in the file at `path` asks the driver for others.
pub fn asks_for_others(path: &[u8]) -> bool {
    GO_BETWEENS.iter().any(|between| between.has(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(path: &str) -> Option<&'static str> {
        of_path(path.as_bytes()).map(|owner| owner.name)
    }

    #[test]
    fn libraries_are_known_by_their_files() {
        for (path, expected) in [
            ("/venv/lib/python3.12/site-packages/jax_plugins/xla_cuda12/xla_cuda_plugin.so", "XLA"),
            ("/venv/lib/python3.10/site-packages/jaxlib/xla_extension.so", "XLA"),
            ("/venv/lib/python3.12/site-packages/tensorflow/libtensorflow_cc.so.2", "TensorFlow"),
            ("/venv/lib/python3.12/site-packages/tensorflow/libtensorflow_framework.so.2", "TensorFlow"),
            ("/opt/conda/lib/librmm.so", "RMM"),
            ("/venv/lib/cupy_backends/cuda/api/runtime.cpython-312-x86_64-linux-gnu.so", "CuPy"),
            ("/opt/llama/libggml-cuda.so", "llama.cpp (ggml)"),
            ("/venv/nvidia/nccl/lib/libnccl.so.2", "NCCL"),
            ("/usr/local/cuda/lib64/libcublasLt.so.12.4.5.8", "cuBLAS"),
            ("/usr/lib/libcudnn_engines_precompiled.so.9", "cuDNN"),
            ("libcudnn.so.9", "cuDNN"),
            ("/venv/lib/python3.12/site-packages/rmm/pylibrmm/device_buffer.cpython-312-x86_64-linux-gnu.so", "RMM"),
            ("/venv/lib/python3.12/site-packages/torch/lib/libc10_cuda.so", "PyTorch"),
            ("/venv/torch/lib/libtorch_cuda.so", "PyTorch"),
            ("/venv/lib/python3.12/site-packages/pycuda/_driver.cpython-312-x86_64-linux-gnu.so", "PyCUDA"),
        ] {
            assert_eq!(name(path), Some(expected), "{path}");
        }
        for path in [
            "",
            "/",
            "/usr/bin/train",
            "/usr/lib/libcudart.so.12",
            "/home/nccl/train",
            "/home/rmm/train",
            "/lib/my-libnccl.so",
            "/a/cupy_tools/x.so",
        ] {
            assert_eq!(name(path), None, "{path}");
        }
    }

    #[test]
    fn who_asks_for_others_is_known_by_its_file() {
        for path in [
            "/usr/local/cuda/lib64/libcudart.so.12.4.127",
            "/venv/nvidia/cuda_runtime/lib/libcudart.so.12",
            "/venv/x.libs/libcudart-9335f6a2.so.12.8.90",
            "/cache/libmemscope_runtime.so",
            "/usr/lib/x86_64-linux-gnu/libffi.so.8.1.2",
            "/usr/lib/python3.12/lib-dynload/_ctypes.cpython-312-x86_64-linux-gnu.so",
            "/venv/cuda/bindings/_bindings/cydriver.cpython-312-x86_64-linux-gnu.so",
        ] {
            assert!(asks_for_others(path.as_bytes()) && name(path).is_none(), "{path}");
        }
        for path in
            ["", "/", "/home/cuda/train", "/cuda/bindings", "/opt/libcuda.so.1", "/x/libcudarts/a", "/my-libcudart.so"]
        {
            assert!(!asks_for_others(path.as_bytes()), "{path}");
        }
    }
}
