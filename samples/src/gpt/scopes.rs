//! Scopes by module path, for the profile.
//!
//! Owns: how a module's name becomes nested scopes. Refuses: anything else.

use memscope_client::{self as memscope, Scope};

/// Enters a scope for each module of a path: `transformer.h.3.attn` is `transformer` / `h.3` / `attn`. A number belongs to
/// the module before it. All are left when the returned guards are dropped.
#[must_use = "the scopes end when the guards are dropped"]
pub(crate) fn module(path: &str) -> Vec<Scope> {
    modules(path).into_iter().map(memscope::scope).collect()
}

/// The modules of a path.
fn modules(path: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut start = 0;
    for (dot, _) in path.match_indices('.') {
        if !path[dot + 1..].starts_with(|first: char| first.is_ascii_digit()) {
            parts.push(&path[start..dot]);
            start = dot + 1;
        }
    }
    parts.push(&path[start..]);
    parts
}

#[cfg(test)]
mod tests {
    use super::modules;

    #[test]
    fn a_number_stays_with_its_list() {
        assert_eq!(modules("transformer.h.3.attn"), ["transformer", "h.3", "attn"]);
        assert_eq!(modules("lm_head"), ["lm_head"]);
        assert_eq!(modules("bert.encoder.layer.11"), ["bert", "encoder", "layer.11"]);
    }
}
