//! The tree of places in the program that allocations were made at: who called whom.
//!
//! Owns: numbering nodes, and which line of a stack is the program's own. Refuses: text; files and functions are numbers of `names`.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use crate::symbols::Place;

use super::names::Names;

/// One place: a line of a function, and where that was called.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
pub struct StackNode {
    /// The node of the caller; [`Stacks::NOWHERE`] for the outermost.
    pub parent: u32,
    /// File, a name; 0 of a remark, which `function` is. Of machine code without debug information, the file of the code.
    pub file: u32,
    /// Line in the file, from 1; 0 where there is none.
    pub line: u32,
    /// Qualified name of the function, a name; `+0x12ab`, an address in the file, where it is not known.
    pub function: u32,
}

/// The tree. A node's number is larger than its caller's. Node 0 is nowhere.
#[derive(Debug, Serialize, Deserialize)]
pub struct Stacks {
    nodes: Vec<StackNode>,
    numbers: HashMap<u64, u32>,
    /// By content: the nodes that stand for addresses, many of which are one line.
    #[serde(with = "super::written::pairs")]
    lines: HashMap<StackNode, u32>,
}

impl Default for Stacks {
    fn default() -> Self {
        Stacks { nodes: vec![StackNode::default()], numbers: HashMap::new(), lines: HashMap::new() }
    }
}

/// Most nodes of a session: those of 64 processes that have nothing in common.
const MOST_NODES: usize = 1 << 24;

impl Stacks {
    /// No place is known.
    pub const NOWHERE: u32 = 0;

    /// A tree by node. What was not called from an earlier node was called from nowhere.
    pub(crate) fn of(nodes: impl Iterator<Item = StackNode>) -> Stacks {
        let mut stacks = Stacks::default();
        for node in nodes.skip(1).take(MOST_NODES) {
            let parent = if (node.parent as usize) < stacks.nodes.len() { node.parent } else { Self::NOWHERE };
            stacks.nodes.push(StackNode { parent, ..node });
        }
        stacks
    }

    /// True when every node was called from an earlier one, and every number is a node's.
    pub(super) fn is_sound(&self) -> bool {
        let called = |(node, place): (u32, &StackNode)| place.parent < node || node == Stacks::NOWHERE;
        !self.nodes.is_empty()
            && (0..).zip(&self.nodes).all(called)
            && self.numbers.values().chain(self.lines.values()).all(|node| (*node as usize) < self.nodes.len())
    }

    /// Takes in the node with this id in logs; one that is known stays as it is. False when there is no room.
    pub(crate) fn add(&mut self, id: u64, parent: u64, node: StackNode) -> bool {
        if id == 0 || self.numbers.contains_key(&id) {
            return true;
        }
        if self.nodes.len() > MOST_NODES {
            return false;
        }
        self.numbers.insert(id, self.nodes.len() as u32);
        self.nodes.push(StackNode { parent: self.number(parent), ..node });
        true
    }

    /// True when the node with this id in logs is known.
    pub(crate) fn knows(&self, id: u64) -> bool {
        id == 0 || self.numbers.contains_key(&id)
    }

    /// Takes in the node with this id in logs, which stands for these places, the outermost first. False when there is no room.
    pub(crate) fn add_places(&mut self, id: u64, parent: u64, places: &[Place], names: &mut Names) -> bool {
        let mut at = self.number(parent);
        for place in places {
            let (file, function) = (names.number_of(&place.file), names.number_of(&place.function));
            let node = StackNode { parent: at, file, line: place.line, function };
            let next = self.nodes.len() as u32;
            if next as usize > MOST_NODES && !self.lines.contains_key(&node) {
                return false;
            }
            at = *self.lines.entry(node).or_insert(next);
            if at == next {
                self.nodes.push(node);
            }
        }
        self.numbers.insert(id, at);
        true
    }

    /// The node with this id in logs.
    pub(crate) fn number(&self, id: u64) -> u32 {
        self.numbers.get(&id).copied().unwrap_or(Self::NOWHERE)
    }

    /// A node; nowhere for a number that there is not.
    pub fn node(&self, number: u32) -> StackNode {
        self.nodes.get(number as usize).copied().unwrap_or_default()
    }

    /// The nodes from this one outwards, without nowhere.
    pub fn outwards(&self, number: u32) -> impl Iterator<Item = (u32, StackNode)> + '_ {
        let there = |number: u32| Some(number).filter(|number| *number != Self::NOWHERE);
        std::iter::successors(there(number), move |number| there(self.node(*number).parent))
            .map(|number| (number, self.node(number)))
    }

    /// The innermost node from which both were called; a node is called from itself.
    pub(crate) fn around(&self, mut one: u32, mut other: u32) -> u32 {
        while one != other {
            let inner = one.max(other);
            (one, other) = (one.min(other), self.node(inner).parent);
        }
        one
    }

    /// How many nodes there are, nowhere included.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// True when no place is known.
    pub fn is_empty(&self) -> bool {
        self.nodes.len() <= 1
    }

    /// True for a line of the program's own: not one of what is installed, of Python's own library, or a remark.
    pub fn is_own(&self, number: u32, names: &Names) -> bool {
        let file = self.node(number).file;
        file != 0 && !is_library(&names.text(file))
    }

    /// A node as text: `train.py:12 in forward`, a remark as it is; empty for nowhere.
    pub fn text(&self, number: u32, names: &Names) -> String {
        let node = self.node(number);
        let function = names.text(node.function);
        if node.file == 0 {
            return function;
        }
        let (file, line) = (short(&names.text(node.file)).to_owned(), node.line);
        if line == 0 {
            let address = function.starts_with("+0x");
            return if address { format!("{file}{function}") } else { format!("{function} ({file})") };
        }
        if function == "<module>" { format!("{file}:{line}") } else { format!("{file}:{line} in {function}") }
    }
}

/// A file as people call it: from its package on where it is installed, else with the folder that it is in.
fn short(file: &str) -> &str {
    for installed in INSTALLED {
        if let Some((_, inside)) = file.rsplit_once(installed) {
            return inside;
        }
    }
    file.rmatch_indices('/').nth(1).map_or(file, |(slash, _)| &file[slash + 1..])
}

const INSTALLED: [&str; 2] = ["/site-packages/", "/dist-packages/"];

/// How the paths of sources and machine code begin that come with the system, a compiler or CUDA.
const SYSTEM: [&str; 18] = [
    "/lib/",
    "/lib32/",
    "/lib64/",
    "/usr/include/",
    "/usr/lib/",
    "/usr/lib32/",
    "/usr/lib64/",
    "/usr/libexec/",
    "/usr/local/cuda",
    "/usr/src/",
    "/opt/nvidia/",
    "/rustc/",
    // Sources of the C library, as its makers wrote their paths.
    "./csu/",
    "./elf/",
    "./nptl/",
    "../sysdeps/",
    // And of Python.
    "Objects/",
    "Python/",
];
/// What else is in such paths.
const OF_OTHERS: [&str; 3] = ["/.cargo/registry/", "/.cargo/git/", "/rustlib/src/rust/"];

/// True for what is no code of the program's own: what is installed, Python's own library, and what is made up by these.
fn is_library(file: &str) -> bool {
    if SYSTEM.iter().any(|begin| file.starts_with(begin)) || OF_OTHERS.iter().any(|part| file.contains(part)) {
        return true;
    }
    let standard = file.match_indices("/lib/python").any(|(at, found)| {
        let rest = file[at + found.len()..].trim_start_matches(|char: char| char.is_ascii_digit() || char == '.');
        rest.starts_with('/')
    });
    let made = ["<frozen ", "<eval_with_key", "<__array_function__", "<memscope"];
    let within = INSTALLED.iter().chain(&["/torchinductor_"]);
    standard || within.into_iter().any(|part| file.contains(part)) || made.iter().any(|part| file.starts_with(part))
}

/// The site of each node: the innermost line that is the program's own, else the innermost line. Nodes whose sites are the same
/// line of the same function have the same one.
#[derive(Debug, Default)]
pub struct Sites(Vec<u32>);

impl Sites {
    /// Of all nodes; takes time by how many there are.
    pub fn of(stacks: &Stacks, names: &Names) -> Sites {
        let mut libraries: HashMap<u32, bool> = HashMap::from([(0, true)]);
        let mut same: HashMap<(u32, u32, u32), u32> = HashMap::new();
        // Of each node the innermost line of the program.
        let mut own: Vec<u32> = Vec::with_capacity(stacks.len());
        let mut sites = Vec::with_capacity(stacks.len());
        for (number, node) in stacks.nodes.iter().enumerate() {
            let library = *libraries.entry(node.file).or_insert_with(|| is_library(&names.text(node.file)));
            let innermost = *same.entry((node.file, node.line, node.function)).or_insert(number as u32);
            let outside = |of: &[u32]| of.get(node.parent as usize).copied().unwrap_or(Stacks::NOWHERE);
            let here = if library { outside(&own) } else { innermost };
            own.push(here);
            // A remark is no line.
            let any = if node.file == 0 { outside(&sites) } else { innermost };
            sites.push(if here == Stacks::NOWHERE { any } else { here });
        }
        Sites(sites)
    }

    /// The site of a node, itself a node; nowhere when none is known.
    pub fn site(&self, node: u32) -> u32 {
        self.0.get(node as usize).copied().unwrap_or(Stacks::NOWHERE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A stack, the outermost first, in a tree; the number of its innermost node.
    fn stack(stacks: &mut Stacks, names: &mut Names, frames: &[(&str, u32, &str)]) -> u32 {
        frames
            .iter()
            .fold((0, 0), |(id, _), (file, line, function)| {
                let (file, function) = (names.number_of(file), names.number_of(function));
                let next = id * 31 + u64::from(file) * 1000 + u64::from(*line) * 7 + u64::from(function) + 1;
                assert!(stacks.add(next, id, StackNode { parent: 0, file, line: *line, function }));
                (next, stacks.number(next))
            })
            .1
    }

    #[test]
    fn a_stack_is_told_from_its_innermost_place_outwards() {
        let (mut stacks, mut names) = (Stacks::default(), Names::new());
        assert!(stacks.is_empty());
        let here =
            stack(&mut stacks, &mut names, &[("/home/me/train.py", 9, "<module>"), ("/a/b/net.py", 3, "Net.forward")]);
        let texts: Vec<String> = stacks.outwards(here).map(|(number, _)| stacks.text(number, &names)).collect();
        assert_eq!(texts, ["b/net.py:3 in Net.forward", "me/train.py:9"]);
        assert_eq!(stacks.outwards(Stacks::NOWHERE).count(), 0);
        assert_eq!(stacks.text(99, &names), "");
        let again = Stacks::of(stacks.nodes.iter().copied());
        assert_eq!(again.nodes, stacks.nodes);
    }

    #[test]
    fn the_site_is_the_innermost_line_of_the_program() {
        let (mut stacks, mut names) = (Stacks::default(), Names::new());
        let linear = "/usr/lib/python3/dist-packages/torch/nn/linear.py";
        let program = ("train.py", 9, "main");
        let through = |line| [program, (linear, line, "Linear.forward")];
        let one = stack(&mut stacks, &mut names, &through(3));
        let other = stack(&mut stacks, &mut names, &through(4));
        let library = stack(&mut stacks, &mut names, &[("/opt/py/lib/python3.11/runpy.py", 1, "run")]);
        let remark = stack(&mut stacks, &mut names, &[program, ("", 0, "<backward>")]);
        let sites = Sites::of(&stacks, &names);
        let text = |node| stacks.text(sites.site(node), &names);
        assert_eq!((text(one), text(remark)), ("train.py:9 in main".into(), "train.py:9 in main".into()));
        assert!(sites.site(one) == sites.site(other) && sites.site(one) == sites.site(remark));
        assert_eq!(text(library), "python3.11/runpy.py:1 in run");
        assert_eq!(sites.site(0), 0);
    }

    #[test]
    fn libraries_are_known_by_where_they_lie() {
        for (file, expected) in [
            ("/x/lib/python3.11/threading.py", true),
            ("/x/lib/python3.11/site-packages/torch/nn.py", true),
            ("<frozen runpy>", true),
            ("<eval_with_key>.1", true),
            ("/tmp/torchinductor_me/ab/cab12.py", true),
            ("<string>", false),
            ("/home/lib/python-games/train.py", false),
            ("train.py", false),
            ("./train.py", false),
            ("/home/me/src/train.cpp", false),
            ("/home/me/build/libmodel.so", false),
            ("/usr/include/c++/12/bits/stl_vector.h", true),
            ("/usr/lib/x86_64-linux-gnu/libc.so.6", true),
            ("/usr/local/cuda-13.0/lib64/libcudart.so.13", true),
            ("/rustc/0123/library/core/src/ops/function.rs", true),
            ("/home/me/.cargo/registry/src/index/cudarc-0.19.10/src/driver.rs", true),
            ("./nptl/pthread_create.c", true),
        ] {
            assert_eq!(is_library(file), expected, "{file}");
        }
    }
}
