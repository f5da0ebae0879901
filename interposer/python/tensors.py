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


# Items that are looked at in one list or dictionary of a batch.
MOST_ITEMS = 1000


def tensors_in(value, depth=4):
    """The tensors in nested lists, tuples and dictionaries."""
    kind = type(value)
    if issubclass(kind, Tensor):
        yield value
    elif not depth:
        return
    elif issubclass(kind, (list, tuple)):
        for item in itertools.islice((list if issubclass(kind, list) else tuple).__iter__(value), MOST_ITEMS):
            yield from tensors_in(item, depth - 1)
    elif issubclass(kind, dict):
        for item in list(itertools.islice(dict.values(value), MOST_ITEMS)):
            yield from tensors_in(item, depth - 1)


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
