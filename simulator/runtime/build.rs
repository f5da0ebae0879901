//! Link arguments of the cdylib.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    for argument in [
        // Calls between our own functions stay here, whatever else is preloaded.
        "-Wl,-Bsymbolic",
        // It is loaded under many names: none of them is its own.
        "-Wl,-soname,libmemscope_runtime.so",
        // Handles that it gave out must outlive a dlclose.
        "-Wl,-z,nodelete",
    ] {
        println!("cargo:rustc-cdylib-link-arg={argument}");
    }
}
