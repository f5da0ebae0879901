//! How a file of machine code is named: its path, and what tells its content from any other at that path.
//!
//! `/usr/lib/libfoo.so build-id=0011…` (hexadecimal) where the file has a build id, else
//! `/usr/lib/libfoo.so size=1234 mtime=1700000000.000000005` (bytes; seconds and nanoseconds), else the path alone.

/// Behind the path: the build id in hexadecimal follows.
pub const BUILD_ID: &str = " build-id=";
/// Behind the path: the size of the file in bytes follows.
pub const SIZE: &str = " size=";
/// Behind the size: the time of the last change follows, as seconds and nine digits of nanoseconds.
pub const MTIME: &str = " mtime=";

/// The path in the name of a module.
pub fn path(name: &str) -> &str {
    match name.rfind(BUILD_ID).or_else(|| name.rfind(SIZE)) {
        Some(end) => &name[..end],
        None => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_is_what_stands_before_the_identity() {
        for (name, expected) in [
            ("/lib/a b.so build-id=00ff", "/lib/a b.so"),
            ("/x size=1/y size=3 mtime=1.000000002", "/x size=1/y"),
            ("/plain", "/plain"),
            ("", ""),
        ] {
            assert_eq!(path(name), expected);
        }
    }
}
