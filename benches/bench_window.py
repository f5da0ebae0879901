"""Programs of benches, and a display that nobody sees: for the benches of real windows."""

import contextlib
import json
import os
import pathlib
import signal
import subprocess

# Whoever ends a bench ends what it has started.
signal.signal(signal.SIGTERM, signal.default_int_handler)
root = pathlib.Path(__file__).resolve().parent.parent


def built(package, bench):
    """Builds a bench; its program."""
    command = ["cargo", "bench", "--quiet", "-p", package, "--bench", bench, "--no-run", "--message-format=json"]
    lines = subprocess.run(command, cwd=root, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()
    made = [json.loads(line) for line in lines if line.startswith("{")]
    return next(one["executable"] for one in made if "target" in one and one["target"]["kind"] == ["bench"] and one["executable"])


@contextlib.contextmanager
def screen():
    """An X server without a screen; its display."""
    command = ["Xvfb", "-displayfd", "1", "-screen", "0", "1280x820x24", "-nolisten", "tcp"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        yield f":{server.stdout.readline().strip()}"
    finally:
        server.terminate()
        server.wait()


def environment(display, data, **more):
    """Variables for a window there, painted in software, that keeps its state in a folder."""
    own = {name: value for name, value in os.environ.items() if not name.startswith("WAYLAND_")}
    return own | {"DISPLAY": display, "LIBGL_ALWAYS_SOFTWARE": "1", "XDG_DATA_HOME": str(data)} | more
