//! What a process is called in every view, beside its pid.
//!
//! Owns: those words. Refuses: the pid, which each view says in its own place.

/// `rank 3 of 8 on node07, SpawnProcess-1`, as far as it is known; `None` for a process without rank and name of its own. A name
/// comes from the program: control characters in it are not passed on.
pub fn called(rank: Option<u32>, world_size: Option<u32>, node: Option<&str>, name: Option<&str>) -> Option<String> {
    let of = world_size.map_or_else(String::new, |size| format!(" of {size}"));
    let on = node.map_or_else(String::new, |node| format!(" on {node}"));
    let rank = rank.map(|rank| format!("rank {rank}{of}{on}"));
    let said = [rank.as_deref(), name].into_iter().flatten().collect::<Vec<_>>().join(", ");
    Some(said.chars().map(|char| if char.is_control() { '?' } else { char }).collect())
        .filter(|said: &String| !said.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_called_by_what_is_known_of_it() {
        for (rank, size, node, name, expected) in [
            (Some(3), Some(8), Some("b"), Some("Worker-1"), Some("rank 3 of 8 on b, Worker-1")),
            (Some(0), None, None, None, Some("rank 0")),
            (None, None, Some("b"), Some("Worker\x1b[2J"), Some("Worker?[2J")),
            (None, None, Some("b"), None, None),
        ] {
            assert_eq!(called(rank, size, node, name).as_deref(), expected);
        }
    }
}
