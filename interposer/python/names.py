"""Paths of modules and names of their parameters: the class of the outermost module, and the names from there."""

# Of a module: the id of its path.
paths = Facts()
# Of a module: (a weak reference to the whole that it was named in, the names from there).
wholes = Facts()

WRAPPERS = ("_orig_mod", "_fsdp_wrapped_module", "_checkpoint_wrapped_module")
# Wrappers whose part of a name is an ordinary one.
PARALLEL = ("DistributedDataParallel", "DataParallel")


def clean(name):
    """A name without the parts that wrappers add."""
    if "_orig_mod" in name or "_wrapped_module" in name:
        name = ".".join(part for part in name.split(".") if part not in WRAPPERS)
    return name


def held(module, kind):
    """A module's own table of `_modules`, `_parameters` or `_buffers`, without what it has none of."""
    table = vars(module).get(kind)
    return [(name, part) for name, part in list(table.items()) if part is not None] if table else []


def walk(root, prefix="", seen=None):
    """(path, module) of `root` and all that is in it, each once; wrappers are not in the paths."""
    seen = set() if seen is None else seen
    if id(root) not in seen:
        seen.add(id(root))
        yield prefix, root
        parallel = type(root).__name__ in PARALLEL
        for name, module in held(root, "_modules"):
            hidden = name in WRAPPERS or parallel and name == "module"
            yield from walk(module, prefix if hidden else f"{prefix}.{name}" if prefix else name, seen)


def whole_of(root):
    """What `root` is a part of, and the names from there: itself and none, unless it was called in a whole that still has it."""
    for path, module in walk(root):
        known = None if path else wholes.get(module)
        if known is not None and known[1]:
            whole = known[0]()
            if whole is not None and any(part is module for _, part in walk(whole)):
                return whole, known[1]
    return root, ""


def name_modules(root):
    """Gives each module in `root` its path: the class of the whole, and the names from there."""
    whole, prefix = whole_of(root)
    # A wrapper has the path of what it wraps.
    top = type([module for path, module in walk(whole) if not path][-1]).__name__
    reference = weakref.ref(whole)
    for path, module in list(walk(root, prefix)):
        paths.put(module, text(f"{top}.{path}" if path else top))
        wholes.put(module, (reference, path))
