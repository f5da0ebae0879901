//! Nodes as they lie: who is around whom, which are the largest, and which of them the selection is about.
//!
//! Owns: what is made once an answer and not once a frame. Refuses: pixels.

use std::cmp::Reverse;
use std::sync::Arc;

use memscope_core::MemoryKind;
use memscope_core::explorer::{AllocationDetail, FlameBy, FlameView, Frame, StackLine};
use memscope_core::report::lies_in;

use crate::panels::selected;
use crate::shared::Selection;
use crate::view::ViewContext;

/// Nodes that have a name for whoever hears the window: the largest.
const NAMED: usize = 20;
/// An allocation's lines are cut here; those further out are not known.
const MOST_LINES: usize = 64;

/// A node, as it is found again in the next answer.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Mark {
    /// Nodes from the outermost on, the root not among them.
    pub path: Vec<Frame>,
    /// True for the smaller ones inside that are told together.
    pub together: bool,
}

/// What the selection is about.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Chosen {
    /// No node in particular.
    #[default]
    Nothing,
    /// These, none inside another.
    Nodes(Vec<usize>),
    /// One of the smaller ones that are told together here.
    Among(usize),
    /// None that is seen.
    Nowhere,
}

/// The nodes of an answer.
pub struct Scene {
    pub view: Arc<FlameView>,
    pub chosen: Chosen,
    parents: Vec<usize>,
    largest: Vec<usize>,
    rows: usize,
    /// By position; all of them where it is empty.
    lit: Vec<bool>,
    /// Of which selection, and whether the selected allocation was known.
    selection: (Selection, bool),
}

impl Scene {
    /// The nodes of the last answer, made anew where something has changed.
    pub fn of(before: Option<Scene>, context: &ViewContext<'_>, view: &Arc<FlameView>) -> Scene {
        let detail = selected::of(context.answer, context.shared);
        let selection = (context.shared.selection.clone(), detail.is_some());
        let mut scene = match before {
            Some(scene) if Arc::ptr_eq(&scene.view, view) && scene.selection == selection => return scene,
            Some(scene) if Arc::ptr_eq(&scene.view, view) => scene,
            _ => Scene::arranged(Arc::clone(view)),
        };
        scene.selection = selection;
        scene.choose(detail);
        scene
    }

    fn arranged(view: Arc<FlameView>) -> Scene {
        let mut around: Vec<usize> = Vec::new();
        let mut parents = Vec::with_capacity(view.nodes.len());
        for (position, node) in view.nodes.iter().enumerate() {
            around.truncate(node.depth as usize);
            parents.push(around.last().copied().unwrap_or(0));
            around.push(position);
        }
        let seen = view.zoomed..view.nodes.len();
        let first = view.nodes.get(view.zoomed).map_or(0, |node| node.depth);
        let rows = view.nodes[seen.clone()].iter().map(|node| (node.depth - first) as usize + 1).max().unwrap_or(0);
        let mut largest: Vec<usize> = seen.collect();
        largest.sort_by_key(|position| (Reverse(view.nodes[*position].bytes()), *position));
        largest.truncate(NAMED);
        Scene { view, chosen: Chosen::Nothing, parents, largest, rows, lit: Vec::new(), selection: Default::default() }
    }

    /// How many rows of nodes are seen.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The largest nodes, and those that are meant.
    pub fn named(&self, marked: Option<usize>) -> Vec<usize> {
        let mut named = self.largest.clone();
        let more: Vec<usize> = match &self.chosen {
            Chosen::Nodes(nodes) => nodes.iter().copied().take(NAMED).collect(),
            Chosen::Among(position) => vec![*position],
            Chosen::Nothing | Chosen::Nowhere => Vec::new(),
        };
        for position in more.into_iter().chain(marked).filter(|position| *position >= self.view.zoomed) {
            if !named.contains(&position) {
                named.push(position);
            }
        }
        named
    }

    /// The node around one; that around the root is the root.
    pub fn parent(&self, position: usize) -> usize {
        self.parents.get(position).copied().unwrap_or(0)
    }

    /// In which row a node is.
    pub fn row(&self, position: usize) -> usize {
        self.view.nodes[position].depth.saturating_sub(self.view.nodes[self.view.zoomed].depth) as usize
    }

    /// Where a node begins and ends, as shares of the node that is seen.
    pub fn sides(&self, position: usize) -> (f64, f64) {
        let node = &self.view.nodes[position];
        let whole = self.view.nodes[self.view.zoomed].bytes().max(1) as f64;
        (node.begin as f64 / whole, node.begin.saturating_add(node.bytes()) as f64 / whole)
    }

    /// Which node is there.
    pub fn at(&self, row: usize, share: f64) -> Option<usize> {
        let holds = |position: &usize| {
            let (left, right) = self.sides(*position);
            self.row(*position) == row && left <= share && share < right
        };
        (self.view.zoomed..self.view.nodes.len()).find(holds)
    }

    /// The nodes beside one in its row, before and after it.
    pub fn beside(&self, position: usize) -> (Option<usize>, Option<usize>) {
        let depth = self.view.nodes[position].depth;
        let same = |at: &usize| self.view.nodes[*at].depth == depth;
        ((self.view.zoomed..position).rev().find(same), (position + 1..self.view.nodes.len()).find(same))
    }

    /// What finds a node again.
    pub fn mark(&self, position: usize) -> Mark {
        let together = self.view.nodes.get(position).is_some_and(|node| node.merged > 0);
        Mark { path: self.view.zoom_to(position), together }
    }

    /// The node that was marked, if it is seen.
    pub fn find(&self, mark: &Mark) -> Option<usize> {
        let mut at = 0;
        for frame in &mark.path {
            let is = |child: &usize| self.view.nodes[*child].merged == 0 && self.view.nodes[*child].frame == *frame;
            at = self.view.children(at).find(is)?;
        }
        let found = if mark.together { self.together(at)? } else { at };
        (found >= self.view.zoomed).then_some(found)
    }

    /// The smaller ones inside a node that are told together.
    fn together(&self, position: usize) -> Option<usize> {
        self.view.children(position).find(|child| self.view.nodes[*child].merged > 0)
    }

    /// True for what the selection is about, what is around it, and, of a scope, what is in it.
    pub fn lit(&self, position: usize) -> bool {
        self.lit.get(position).is_none_or(|lit| *lit)
    }

    fn choose(&mut self, detail: Option<&AllocationDetail>) {
        let by = self.view.query.by;
        self.chosen = match (&self.selection.0, detail, by) {
            (Selection::Scope(path) | Selection::Group(_, path), _, FlameBy::Scope) => {
                self.nodes(|scope| lies_in(scope, path))
            }
            (Selection::Allocation(_), Some(detail), _) if !on_device(detail) => Chosen::Nowhere,
            (Selection::Allocation(_), Some(detail), FlameBy::Scope) => self.made_in(&detail.row.scope),
            (Selection::Allocation(_), Some(detail), FlameBy::Stack) => self.made_at(&detail.row.stack),
            _ => Chosen::Nothing,
        };
        self.lit = Vec::new();
        let inside = matches!(self.selection.0, Selection::Scope(_) | Selection::Group(..));
        let chosen = match &self.chosen {
            Chosen::Nodes(nodes) => nodes.clone(),
            Chosen::Among(position) => vec![*position],
            Chosen::Nothing | Chosen::Nowhere => return,
        };
        self.lit = vec![false; self.view.nodes.len()];
        for position in chosen {
            let all = if inside { self.view.nodes[position].inside } else { 0 };
            self.lit[position..=position + all].fill(true);
            let mut at = self.parent(position);
            while !self.lit[at] {
                self.lit[at] = true;
                at = self.parent(at);
            }
        }
    }

    /// The outermost nodes of scopes that are meant.
    fn nodes(&self, is: impl Fn(&str) -> bool) -> Chosen {
        let is = |position: usize| self.view.nodes[position].scope.as_deref().is_some_and(&is);
        let meant = |position: &usize| is(*position) && (*position == 0 || !is(self.parent(*position)));
        let nodes: Vec<usize> = (0..self.view.nodes.len()).filter(meant).collect();
        match nodes.iter().any(|position| position + self.view.nodes[*position].inside >= self.view.zoomed) {
            true => Chosen::Nodes(nodes),
            false => Chosen::Nowhere,
        }
    }

    fn made_in(&self, path: &str) -> Chosen {
        if path.is_empty() {
            return Chosen::Nodes(vec![0]);
        }
        let exact = self.nodes(|scope| scope == path);
        if exact != Chosen::Nowhere {
            return exact;
        }
        // Inwards those around it are known; the innermost of them holds it among its smaller ones.
        let around = |position: &usize| {
            let scope = self.view.nodes[*position].scope.as_deref();
            *position == 0 || scope.is_some_and(|scope| !self.view.query.invert && lies_in(path, scope))
        };
        self.among((0..self.view.nodes.len()).rev().find(around))
    }

    /// The node of a stack: its lines from the outermost on, or, of a tree from the innermost on, the other way.
    fn made_at(&self, stack: &[StackLine]) -> Chosen {
        // A line after those is not where the last of them was called.
        let mut lines: Vec<Frame> = stack.iter().take(MOST_LINES).map(|line| line.frame).collect();
        if lines.len() >= MOST_LINES && !self.view.query.invert {
            let is = |position: &usize| self.outwards(*position).take(lines.len()).eq(lines.iter().copied());
            let deep = |position: &usize| self.view.nodes[*position].depth as usize >= lines.len();
            return (0..self.view.nodes.len())
                .filter(deep)
                .find(is)
                .map_or(Chosen::Nowhere, |position| Chosen::Nodes(vec![position]));
        }
        if !self.view.query.invert {
            lines.reverse();
        }
        let mut at = 0;
        for frame in lines {
            let is = |child: &usize| self.view.nodes[*child].merged == 0 && self.view.nodes[*child].frame == frame;
            match self.view.children(at).find(is) {
                Some(child) => at = child,
                None => return self.among(Some(at)),
            }
        }
        Chosen::Nodes(vec![at])
    }

    fn among(&self, around: Option<usize>) -> Chosen {
        around.and_then(|around| self.together(around)).map_or(Chosen::Nowhere, Chosen::Among)
    }

    /// Frames of a node and those around it, the root not among them.
    fn outwards(&self, position: usize) -> impl Iterator<Item = Frame> + '_ {
        let next = |at: &usize| Some(self.parent(*at)).filter(|at| *at > 0);
        std::iter::successors(Some(position).filter(|at| *at > 0), next).map(|at| self.view.nodes[at].frame)
    }
}

/// The tree is of device memory.
fn on_device(detail: &AllocationDetail) -> bool {
    matches!(detail.row.memory, MemoryKind::Device | MemoryKind::Pool)
}
