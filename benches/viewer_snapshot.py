"""A memory snapshot as PyTorch writes it, with the allocations of a memscope profile: same addresses, sizes, times, and lines.

For `benches/viewer`. What is documented of the format (torch.cuda.memory._snapshot) is there: segments with their blocks, and the
trace of the device: `segment_alloc`, `alloc`, `free_requested`, `free_completed`, each with its stack. A free has the stack of the
step, since a profile does not say where memory was given back. As torch.cuda.memory._dump_snapshot does, equal frames are one
object, and each event has a list of its own.
"""

import io
import pickle
import zipfile

import pyarrow.parquet

BLOCK, CONTAINER = 1, 2
STREAM = 0


def table(archive, name, *columns):
    """Columns as lists."""
    read = pyarrow.parquet.read_table(io.BytesIO(archive.read(f"{name}.parquet")), columns=list(columns) or None)
    return [column.to_pylist() for column in read.columns]


def stacks(archive):
    """The frames of each stack by its id, innermost first, and those that call all others."""
    rows = zip(*table(archive, "stacks", "id", "parent", "file", "line", "function"))
    texts = dict(zip(*table(archive, "names", "id", "text")))
    known = {0: []}
    # A caller comes before what it calls.
    for node, parent, file, line, function in rows:
        if node:
            # Where names are numbers, they are ids.
            named = [texts[value] if isinstance(value, int) else value for value in (file, function)]
            known[node] = [{"name": named[1], "filename": named[0], "line": line}, *known[parent]]
    return known, next((frames for frames in known.values() if len(frames) == 2), [])


def event(action, address, size, time, frames):
    return {
        "action": action,
        "addr": address,
        "size": size,
        "stream": STREAM,
        "time_us": time,
        "compile_context": "N/A",
        "user_metadata": "",
        "frames": list(frames),
    }


def trace(rows, frames_of, step):
    """The events of the device in their order."""
    changes = []
    for row, (birth, death, *_) in enumerate(rows):
        changes.append((birth, row, True))
        if death is not None:
            changes.append((death, row, False))
    changes.sort()
    events = []
    for _, row, born in changes:
        _, _, birth_ns, death_ns, address, bytes, _, flags, stack = rows[row]
        if flags & CONTAINER:
            if born:
                events.append(event("segment_alloc", address, bytes, birth_ns // 1000, frames_of[stack] or step))
        elif born:
            events.append(event("alloc", address, bytes, birth_ns // 1000, frames_of[stack]))
        else:
            for action in ("free_requested", "free_completed"):
                events.append(event(action, address, bytes, death_ns // 1000, step))
    return events


def segments(rows, frames_of):
    """What there was at the end: each segment with its blocks, free parts between them."""
    found = []
    containers = sorted((row[4], row[5]) for row in rows if row[7] & CONTAINER)
    live = sorted((row[4], row[5], row[6], row[8]) for row in rows if row[7] & BLOCK and row[1] is None)
    live.reverse()
    for start, total in containers:
        blocks, at = [], start

        def block(size, requested, state, frames):
            blocks.append({"address": at, "size": size, "requested_size": requested, "state": state, "frames": frames})

        while live and live[-1][0] < start + total:
            address, size, requested, stack = live.pop()
            if address > at:
                block(address - at, 0, "inactive", [])
                at = address
            block(size, requested, "active_allocated", list(frames_of[stack]))
            at += size
        if at < start + total:
            block(start + total - at, 0, "inactive", [])
        active = sum(one["size"] for one in blocks if one["state"] == "active_allocated")
        found.append(
            {
                "device": 0,
                "address": start,
                "total_size": total,
                "stream": STREAM,
                "segment_type": "large",
                "segment_pool_id": (0, 0),
                "is_expandable": False,
                "allocated_size": active,
                "active_size": active,
                "requested_size": sum(one["requested_size"] for one in blocks),
                "blocks": blocks,
                "frames": [],
            }
        )
    return found


def write(profile, path):
    """Writes the snapshot; how many events, blocks and frames a stack it has."""
    with zipfile.ZipFile(profile) as archive:
        columns = ("birth_order", "death_order", "birth_ns", "death_ns", "address", "bytes", "requested", "flags", "stack")
        rows = list(zip(*table(archive, "allocations", *columns)))
        frames_of, step = stacks(archive)
    events = trace(rows, frames_of, step)
    snapshot = {"segments": segments(rows, frames_of), "device_traces": [events], "allocator_settings": {}, "external_annotations": []}
    # PyTorch's own: the default protocol of its Python, which its viewer can read.
    path.write_bytes(pickle.dumps(snapshot, protocol=4))
    made = [one for one in events if one["action"] == "alloc"]
    return len(events), len(made), sum(len(one["frames"]) for one in made) / len(made)
