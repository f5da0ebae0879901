//! Names of functions as people write them.
//!
//! Owns: Rust's and C++'s ways of writing names into symbols. Refuses: names of more than a readable length.

/// Longest name that is taken apart: the time for it may grow faster than its length.
const MOST_BYTES: usize = 8 << 10;

/// True for a name as linkers see it, which has all that tells a function from others.
pub(super) fn is_full(name: &str) -> bool {
    name.starts_with("_Z") || name.starts_with("_R")
}

/// What compilers append to the name of a function of which they made a part or a special form.
const PARTS: [&str; 5] = [".isra.", ".constprop.", ".part.", ".cold", ".llvm."];

/// The name behind a symbol; itself when it is none of Rust's or C++'s.
pub(super) fn readable(symbol: impl AsRef<str>) -> String {
    let symbol = symbol.as_ref();
    if symbol.len() > MOST_BYTES {
        return symbol.to_owned();
    }
    // What the linker appends to a symbol that it took from a versioned library.
    let symbol = symbol.split_once('@').map_or(symbol, |(name, _)| name);
    let part = PARTS.iter().filter_map(|part| symbol.find(part)).min();
    let symbol = part.map_or(symbol, |end| &symbol[..end]);
    if let Ok(name) = rustc_demangle::try_demangle(symbol) {
        return format!("{name:#}");
    }
    let cxx = cpp_demangle::Symbol::new(symbol).ok();
    cxx.and_then(|name| name.demangle().ok()).unwrap_or_else(|| symbol.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_source() {
        for (symbol, expected) in [
            ("main", "main"),
            ("_ZN7Trainer4stepEi", "Trainer::step(int)"),
            ("_ZN4core3fmt9Formatter3pad17h0123456789abcdefE", "core::fmt::Formatter::pad"),
            ("_RNvCs1234_7mycrate3foo", "mycrate::foo"),
            ("__libc_start_main@@GLIBC_2.34", "__libc_start_main"),
            ("_Znot_a_name", "_Znot_a_name"),
            ("_ZL5traini.constprop.0.isra.0", "train(int)"),
            ("pick.cold", "pick"),
            ("", ""),
        ] {
            assert_eq!(readable(symbol), expected);
        }
    }
}
