//! Libraries that take memory of the driver for themselves, and what they are called.
//!
//! Owns: the table by which the file of a call's code tells who asked. Refuses: to guess: a file that is not in it has no owner, and
//! neither has what the CUDA runtime is asked for on behalf of others.

/// Who takes memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Owner {
    /// Name in reports.
    pub name: &'static str,
    /// How the names of its files begin.
    pub files: &'static [&'static str],
    /// Folders that hold its files, whatever these are called.
    pub folders: &'static [&'static str],
}

const fn owner(name: &'static str, files: &'static [&'static str]) -> Owner {
    Owner { name, files, folders: &[] }
}

/// The table. A log has an owner's number, which is its position here plus one; positions are never given again.
pub static OWNERS: [Owner; 16] = [
    owner("XLA", &["xla_cuda_plugin", "xla_extension", "libxla_extension", "libjax_common", "libpjrt"]),
    owner("TensorFlow", &["libtensorflow", "_pywrap_tensorflow"]),
    owner("RMM", &["librmm.so"]),
    Owner { name: "CuPy", files: &["libcupy"], folders: &["cupy", "cupy_backends"] },
    owner("llama.cpp (ggml)", &["libggml", "libllama.so"]),
    owner("NCCL", &["libnccl.so", "libnccl-", "libnccl_static"]),
    owner("cuBLAS", &["libcublas"]),
    owner("cuDNN", &["libcudnn"]),
    owner("cuFFT", &["libcufft"]),
    owner("cuSOLVER", &["libcusolver"]),
    owner("cuSPARSE", &["libcusparse"]),
    owner("TensorRT", &["libnvinfer"]),
    owner("ONNX Runtime", &["libonnxruntime"]),
    owner("NVSHMEM", &["libnvshmem"]),
    owner("UCX", &["libuct_cuda", "libucm_cuda"]),
    owner("vLLM", &["cumem_allocator"]),
];

/// The number of who owns the code in the file at `path`: 0 is nobody.
pub fn of_path(path: &[u8]) -> u8 {
    let mut parts = path.rsplit(|byte| *byte == b'/');
    let Some(file) = parts.next() else { return 0 };
    for (position, owner) in OWNERS.iter().enumerate() {
        let begins = owner.files.iter().any(|prefix| file.starts_with(prefix.as_bytes()));
        if begins || parts.clone().any(|part| owner.folders.iter().any(|folder| part == folder.as_bytes())) {
            return position as u8 + 1;
        }
    }
    0
}

/// The owner with this number.
pub fn by_number(number: u8) -> Option<&'static Owner> {
    OWNERS.get((number as usize).checked_sub(1)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(path: &str) -> Option<&'static str> {
        by_number(of_path(path.as_bytes())).map(|owner| owner.name)
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
        ] {
            assert_eq!(name(path), Some(expected), "{path}");
        }
        for path in [
            "",
            "/",
            "/usr/bin/train",
            "/usr/lib/libcudart.so.12",
            "/home/nccl/train",
            "/lib/my-libnccl.so",
            "/a/cupy_tools/x.so",
        ] {
            assert_eq!(name(path), None, "{path}");
        }
        assert_eq!(by_number(OWNERS.len() as u8 + 1), None);
    }
}
