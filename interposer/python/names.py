"""Paths of modules and names of their parameters: the class of the outermost module, and the names from there."""

# Of a module: the id of its path.
paths = Facts()

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


def name_modules(root):
    """Gives each module in `root` its path: the class of the root, and the names from there."""
    found = list(walk(root))
    # A wrapper has the path of what it wraps.
    top = type([module for path, module in found if not path][-1]).__name__
    for path, module in found:
        paths.put(module, text(f"{top}.{path}" if path else top))
