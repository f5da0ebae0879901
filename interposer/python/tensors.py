"""Tensors: where their memory is, and which are in a batch. And what is known of objects, by their identity."""


def address(tensor):
    """Where a tensor's own memory is; 0 where it has none (meta, fake, sparse tensors, those of functorch, and what wraps others)."""
    try:
        return data_ptr(tensor)
    except Exception:
        return 0


def addresses(tensor):
    """Where a tensor's memory is: at several places for what wraps other tensors (DTensor, quantized weights)."""
    at = address(tensor)
    if at:
        return [at]
    if type(tensor) in (Tensor, torch.nn.Parameter):
        return []
    try:
        inner, _ = tensor.__tensor_flatten__()
        return [at for name in inner for at in addresses(getattr(tensor, name))]
    except Exception:
        return []


def tag(tensor, category, name=0):
    for at in addresses(tensor):
        send_tag(at, category, name)


# How deep a batch is looked into, and how many items in one list or dictionary and in all.
DEEPEST_ITEM, MOST_ITEMS, MOST_IN_ALL = 8, 1000, 10000
SIMPLE = frozenset((int, float, bool, str, bytes, type(None)))


def tensors_in(value):
    """The tensors in nested lists, tuples, dictionaries and objects."""
    level, room = [value], MOST_IN_ALL
    for _ in range(DEEPEST_ITEM):
        inside = []
        for item in level:
            kind = type(item)
            if issubclass(kind, Tensor):
                yield item
            elif kind not in SIMPLE and len(inside) < room:
                inside += parts_of(item, kind)
        level = inside[:room]
        room -= len(level)
        if not level:
            return


def parts_of(item, kind):
    if issubclass(kind, (list, tuple)):
        values = (list if issubclass(kind, list) else tuple).__iter__(item)
    elif issubclass(kind, dict):
        values = dict.values(item)
    else:
        table = attributes_of(item, kind)
        values = dict.values(table) if type(table) is dict else ()
    return list(itertools.islice(values, MOST_ITEMS))


def attributes_of(item, kind):
    """An object's own table of attributes, read past what its class makes of them; None of what holds no batch."""
    if issubclass(kind, (torch.nn.Module, type, types.ModuleType, types.FunctionType)):
        return None
    tables = [type.__getattribute__(base, "__dict__") for base in type.__getattribute__(kind, "__mro__")]
    # Optimizers, loaders and the like.
    if str(tables[0].get("__module__")).startswith("torch."):
        return None
    descriptor = next((table["__dict__"] for table in tables if "__dict__" in table), None)
    return descriptor.__get__(item) if type(descriptor) is types.GetSetDescriptorType else None


class Facts:
    """What is known of objects, by their identity, until they are gone. (Modules may define their own equality.)"""

    def __init__(self):
        self.by_id = {}

    def get(self, thing):
        known = self.by_id.get(id(thing))
        return known[1] if known is not None and known[0]() is thing else None

    def put(self, thing, facts):
        key, by_id = id(thing), self.by_id
        by_id[key] = (weakref.ref(thing, lambda _: by_id.pop(key, None)), facts)
        return facts
