//! How the library is linked.
//!
//! Its hooks have the names of the driver's functions, and a program or another preloaded library may have functions of these
//! names too, which come first in the order of look-up. What is in this library must mean its own all the same: otherwise a
//! program that wraps a driver function would be given its own wrapper where it looks the driver's up.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-Bsymbolic");
}
