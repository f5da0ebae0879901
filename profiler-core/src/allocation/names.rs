//! The session's names and its tree of scopes.
//!
//! Owns: putting names together from their parts, and numbering. Refuses: meaning.

use serde::{Deserialize, Serialize};
use std::collections::HashMap;

use memscope_wire::TextId;
use memscope_wire::text::{MAX_TEXT_BYTES, PART_BYTES};

/// Names by number. Number 0 is the absent name, an empty text.
#[derive(Debug, Default)]
pub struct Names {
    numbers: HashMap<TextId, u32>,
    names: Vec<Name>,
}

#[derive(Debug)]
struct Name {
    id: TextId,
    text: Vec<u8>,
    parts: u32,
    complete: bool,
}

impl Names {
    /// A table with only the absent name.
    pub fn new() -> Names {
        Names {
            numbers: HashMap::from([(TextId::NONE, 0)]),
            names: vec![Name { id: TextId::NONE, text: Vec::new(), parts: 0, complete: true }],
        }
    }

    /// A table of whole texts, by number; the first is the absent name.
    pub(crate) fn of(texts: impl Iterator<Item = String>) -> Names {
        let mut names = Names::new();
        for text in texts.skip(1) {
            let id = TextId::of(text.as_bytes());
            names.numbers.entry(id).or_insert(names.names.len() as u32);
            names.names.push(Name { id, text: text.into_bytes(), parts: 0, complete: true });
        }
        names
    }

    /// The names in order, as they are: hash, bytes, which parts of them came, whether all did.
    pub(super) fn parts(&self) -> impl Iterator<Item = (TextId, &[u8], u32, bool)> {
        self.names.iter().map(|name| (name.id, &name.text[..], name.parts, name.complete))
    }

    /// A table of such names.
    pub(super) fn of_parts(names: impl Iterator<Item = (TextId, Vec<u8>, u32, bool)>) -> Names {
        let names: Vec<Name> = names.map(|(id, text, parts, complete)| Name { id, text, parts, complete }).collect();
        let mut numbers = HashMap::new();
        for (number, name) in (0..).zip(&names) {
            numbers.entry(name.id).or_insert(number);
        }
        Names { numbers, names }
    }

    /// The number of this name, new if need be; its text may come later.
    pub fn number(&mut self, id: TextId) -> u32 {
        let next = self.names.len() as u32;
        let number = *self.numbers.entry(id).or_insert(next);
        if number == next {
            self.names.push(Name { id, text: Vec::new(), parts: 0, complete: false });
        }
        number
    }

    /// The number of a text that is known as a whole.
    pub fn number_of(&mut self, text: &str) -> u32 {
        let number = self.number(TextId::of(text.as_bytes()));
        let name = &mut self.names[number as usize];
        if !name.complete {
            name.text = text.as_bytes()[..text.len().min(MAX_TEXT_BYTES)].to_vec();
            name.complete = true;
        }
        number
    }

    /// Takes one part of a text. Parts may come in any order and more than once.
    pub fn part(&mut self, id: TextId, total_bytes: u32, part: u32, bytes: &[u8; PART_BYTES]) {
        let total = (total_bytes as usize).min(MAX_TEXT_BYTES);
        let start = part as usize * PART_BYTES;
        if id.is_none() || start >= total {
            return;
        }
        let number = self.number(id);
        let name = &mut self.names[number as usize];
        if name.complete {
            return;
        }
        name.text.resize(total, 0);
        let end = (start + PART_BYTES).min(total);
        name.text[start..end].copy_from_slice(&bytes[..end - start]);
        name.parts |= 1 << part;
        name.complete = name.parts.count_ones() as usize == total.div_ceil(PART_BYTES);
    }

    /// The text of a name; one that never came whole is shown by its hash, `#0123456789abcdef`.
    pub fn text(&self, number: u32) -> String {
        match self.names.get(number as usize) {
            Some(name) if name.complete => String::from_utf8_lossy(&name.text).into_owned(),
            Some(name) => format!("#{:016x}", name.id.0),
            None => String::new(),
        }
    }

    /// The id of a name.
    pub(crate) fn id(&self, number: u32) -> TextId {
        self.names.get(number as usize).map_or(TextId::NONE, |name| name.id)
    }

    /// True once all parts of a text were seen.
    pub(crate) fn is_complete(&self, number: u32) -> bool {
        self.names.get(number as usize).is_some_and(|name| name.complete)
    }

    /// How many names there are, the absent one included.
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Never true: the absent name is always there.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }
}

/// The tree of scopes: a node is a name under a parent. Node 0 is the root, no scope at all.
#[derive(Debug, Serialize, Deserialize)]
pub struct Scopes {
    nodes: Vec<(u32, u32)>,
    #[serde(with = "super::written::pairs")]
    numbers: HashMap<(u32, u32), u32>,
}

impl Default for Scopes {
    fn default() -> Self {
        Scopes { nodes: vec![(0, 0)], numbers: HashMap::new() }
    }
}

impl Scopes {
    /// The root: outside all scopes.
    pub const ROOT: u32 = 0;

    /// A tree by node: the node around it and its name. What is not around a later node is at the root.
    pub(crate) fn of(nodes: impl Iterator<Item = (u32, u32)>) -> Scopes {
        let mut scopes = Scopes::default();
        for (parent, name) in nodes.skip(1) {
            let next = scopes.nodes.len() as u32;
            let parent = if parent < next { parent } else { Scopes::ROOT };
            scopes.numbers.entry((parent, name)).or_insert(next);
            scopes.nodes.push((parent, name));
        }
        scopes
    }

    /// True when every node lies in an earlier one, and every number is a node's.
    pub(super) fn is_sound(&self) -> bool {
        let inside = |(node, (parent, _)): (u32, &(u32, u32))| *parent < node || node == Scopes::ROOT;
        !self.is_empty()
            && (0..).zip(&self.nodes).all(inside)
            && self.numbers.values().all(|node| (*node as usize) < self.len())
    }

    /// The node of scope `name` inside node `parent`, new if need be.
    pub fn child(&mut self, parent: u32, name: u32) -> u32 {
        let next = self.nodes.len() as u32;
        let number = *self.numbers.entry((parent, name)).or_insert(next);
        if number == next {
            self.nodes.push((parent, name));
        }
        number
    }

    /// The node of a path whose parts are joined by dots. A part that begins with a digit belongs to the one before it:
    /// `layers.3.mlp` is `layers.3` and, in it, `mlp`.
    pub(crate) fn of_path(&mut self, path: &str, names: &mut Names) -> u32 {
        let (mut node, mut start) = (Self::ROOT, 0);
        let inner = path.match_indices('.').map(|(dot, _)| dot);
        let is_name = |dot: &usize| !path[dot + 1..].starts_with(|first: char| first.is_ascii_digit());
        for end in inner.filter(is_name).chain([path.len()]).collect::<Vec<_>>() {
            if start < end {
                node = self.child(node, names.number_of(&path[start..end]));
            }
            start = end + 1;
        }
        node
    }

    /// The node around `node`; the root's is the root.
    pub fn parent(&self, node: u32) -> u32 {
        self.nodes.get(node as usize).map_or(Self::ROOT, |node| node.0)
    }

    /// The innermost node around both; a node is around itself.
    pub(crate) fn around(&self, mut one: u32, mut other: u32) -> u32 {
        // A node's number is larger than that of the one around it.
        while one != other {
            let inner = one.max(other);
            (one, other) = (one.min(other), self.parent(inner));
        }
        one
    }

    /// The name of a node.
    pub fn name(&self, node: u32) -> u32 {
        self.nodes.get(node as usize).map_or(0, |node| node.1)
    }

    /// How many nodes there are, the root included.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Never true: the root is always there.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Names from the outermost scope to this one, joined by `/`; empty for the root.
    pub fn path(&self, node: u32, names: &Names) -> String {
        let mut parts = Vec::new();
        let mut at = node;
        while at != Self::ROOT {
            parts.push(names.text(self.name(at)));
            at = self.parent(at);
        }
        parts.reverse();
        parts.join("/")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(text: &str, part: u32) -> [u8; PART_BYTES] {
        let mut bytes = [0; PART_BYTES];
        let rest = &text.as_bytes()[part as usize * PART_BYTES..];
        let length = rest.len().min(PART_BYTES);
        bytes[..length].copy_from_slice(&rest[..length]);
        bytes
    }

    #[test]
    fn a_name_is_put_together_from_parts_in_any_order() {
        let text = "transformer.h.11.attention.query_key_value.weight";
        let id = TextId::of(text.as_bytes());
        let mut names = Names::new();
        let number = names.number(id);
        names.part(id, text.len() as u32, 1, &part(text, 1));
        names.part(id, text.len() as u32, 1, &part(text, 1));
        assert_eq!(names.text(number), format!("#{:016x}", id.0));
        names.part(id, text.len() as u32, 0, &part(text, 0));
        assert_eq!(names.text(number), text);
        assert_eq!(names.number_of(text), number);
    }

    #[test]
    fn absurd_parts_are_ignored() {
        let mut names = Names::new();
        names.part(TextId(5), u32::MAX, u32::MAX, &[1; PART_BYTES]);
        names.part(TextId::NONE, 5, 0, &[1; PART_BYTES]);
        names.part(TextId(5), 0, 0, &[1; PART_BYTES]);
        assert_eq!(names.len(), 1);
        assert_eq!(names.text(7), "");
    }

    #[test]
    fn a_module_path_is_nested_scopes() {
        let (mut names, mut scopes) = (Names::new(), Scopes::default());
        let node = scopes.of_path("Net.layers.3.mlp.0", &mut names);
        assert_eq!(scopes.path(node, &names), "Net/layers.3/mlp.0");
        let attention = scopes.of_path("Net.layers.3.attn", &mut names);
        assert_eq!(scopes.parent(attention), scopes.parent(node));
        assert_eq!(scopes.of_path("", &mut names), Scopes::ROOT);
        let odd = scopes.of_path("..a..", &mut names);
        assert_eq!(scopes.path(odd, &names), "a");
    }

    #[test]
    fn a_path_names_the_outermost_scope_first() {
        let (mut names, mut scopes) = (Names::new(), Scopes::default());
        let forward = names.number_of("forward");
        let block = names.number_of("block.3");
        let outer = scopes.child(Scopes::ROOT, forward);
        let inner = scopes.child(outer, block);
        assert_eq!(scopes.child(outer, block), inner);
        assert_eq!(scopes.path(inner, &names), "forward/block.3");
        assert_eq!(scopes.path(Scopes::ROOT, &names), "");
    }
}
