//! Link arguments of the cdylib: the names and the binding that a driver library needs.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    for argument in [
        // A program linked with -lcuda asks for this name.
        "-Wl,-soname,libcuda.so.1",
        // The look-up table of cuGetProcAddress must point at our functions, not at those of a preloaded library.
        "-Wl,-Bsymbolic",
        // Programs probe with dlopen and dlclose; contexts and threads must survive that.
        "-Wl,-z,nodelete",
    ] {
        println!("cargo:rustc-cdylib-link-arg={argument}");
    }
}
