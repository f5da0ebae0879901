"""PyTorch's own viewer of memory snapshots in headless Chromium, for `benches/viewer`.

The viewer's JavaScript is served as it is, from a folder. It loads d3 from the network; an import map gives it the same versions
from a folder of npm's instead. Chromium is driven by its DevTools protocol over two pipes, which needs no library.
"""

import base64
import functools
import http.server
import json
import os
import pathlib
import re
import subprocess
import tempfile
import threading
import time

# Seconds.
LONGEST = 300

PAGE = """<!DOCTYPE html>
<html><head><script type="importmap">{imports}</script></head><body><script type="module">
import {{add_remote_files}} from "/viewer/MemoryViz.js";
// Called when page and libraries are there. Resolves when the browser has drawn the frame that has the timeline in it.
window.measure = () => new Promise((resolve, reject) => {{
  window.addEventListener("unhandledrejection", event => reject(event.reason));
  const begin = performance.now();
  add_remote_files([{{name: "snapshot", url: "/snapshot"}}]);
  const look = () => {{
    const shapes = document.querySelectorAll("svg polygon").length;
    // The callbacks of a frame come before it is painted: those of the next one after.
    if (shapes) requestAnimationFrame(() => resolve({{shapes, seconds: (performance.now() - begin) / 1000}}));
    else requestAnimationFrame(look);
  }};
  requestAnimationFrame(look);
}});
</script></body></html>"""


def imports(viewer):
    """The addresses from which the viewer loads its libraries, and the version of d3 that they mean."""
    text = (viewer / "MemoryViz.js").read_text()
    found = dict(re.findall(r'from "(https://[^"]*?/(d3[\w-]*)@\d+[^"]*)"', text))
    major = re.search(r"/d3@(\d+)", text)
    return found, major and major[1]


def libraries(npm, addresses):
    """An import map: each package of the folder by its name, and under the viewer's addresses."""
    found = {}
    for file in sorted((npm / "node_modules").glob("*/package.json")):
        package = json.loads(file.read_text())
        module = package.get("module") or package.get("main") or "index.js"
        found[package["name"]] = f"/npm/{file.parent.name}/{module}"
    return found | {address: found[name] for address, name in addresses.items()}


class Handler(http.server.BaseHTTPRequestHandler):
    """Gives page, viewer, libraries and snapshot."""

    def __init__(self, page, folders, snapshot, *arguments):
        self.page, self.folders, self.snapshot = page, folders, snapshot
        super().__init__(*arguments)

    def do_GET(self):
        first, _, rest = self.path.lstrip("/").partition("/")
        if first in self.folders:
            file = self.folders[first] / rest
            if not file.is_file():
                # Older packages are written for bundlers, which add the ending.
                file = file.with_name(f"{file.name}.js")
            found = file.read_bytes() if file.is_file() else None
        else:
            found = {"": self.page, "snapshot": self.snapshot}.get(first)
        self.send_response(404 if found is None else 200)
        kind = {"": "text/html", "snapshot": "application/octet-stream"}.get(first, "text/javascript")
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(found or b"")))
        self.end_headers()
        self.wfile.write(found or b"")

    def log_message(self, *_):
        pass


class Chromium:
    """A browser of its own, with one page."""

    def __init__(self, program, folder):
        self.count = 0
        to_browser, self.write = os.pipe()
        self.read, from_browser = os.pipe()
        command = [program, "--headless=new", "--remote-debugging-pipe", f"--user-data-dir={folder}", "--no-first-run"]
        command += ["--window-size=1280,820", "--disable-background-networking", "--disable-extensions"]
        # Its sandbox needs rights that the superuser of a container lacks.
        command += ["--no-sandbox"] if os.geteuid() == 0 else []
        script = f'exec "$@" 3<&{to_browser} 4>&{from_browser}'
        self.process = subprocess.Popen(
            ["bash", "-c", script, "bash", *command],
            pass_fds=(to_browser, from_browser),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_browser)
        os.close(from_browser)
        self.input = os.fdopen(self.read, "rb")
        # A page that never draws ends with its browser.
        self.limit = threading.Timer(LONGEST, self.process.kill)
        self.limit.start()

    def ask(self, method, session=None, **parameters):
        self.count += 1
        message = {"id": self.count, "method": method, "params": parameters}
        if session:
            message["sessionId"] = session
        os.write(self.write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.message()
            if answer.get("id") == self.count:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                return answer["result"]
            if answer.get("method") in ("Inspector.targetCrashed", "Target.targetCrashed"):
                raise RuntimeError("the page has crashed")

    def message(self):
        text = bytearray()
        while not text.endswith(b"\0"):
            chunk = self.input.read(1)
            if not chunk:
                raise RuntimeError(f"the browser has ended, or drew nothing in {LONGEST} s")
            text += chunk
        return json.loads(text[:-1])

    def evaluate(self, session, expression):
        answer = self.ask("Runtime.evaluate", session, expression=expression, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in answer:
            details = answer["exceptionDetails"]
            raise RuntimeError(details.get("exception", {}).get("description") or details["text"])
        return answer["result"].get("value")

    def renderers(self):
        return [one["id"] for one in self.ask("SystemInfo.getProcessInfo")["processInfo"] if one["type"] == "renderer"]

    def end(self):
        self.limit.cancel()
        try:
            self.ask("Browser.close")
        except (RuntimeError, OSError):
            self.process.kill()
        self.process.wait()
        self.input.close()
        os.close(self.write)


def largest(pid):
    """Largest resident memory of a process so far, bytes."""
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    return int(re.search(r"VmHWM:\s+(\d+) kB", status)[1]) * 1024


def measure(program, viewer, npm, snapshot, picture=None):
    """Seconds until the snapshot's timeline is drawn, the renderer's largest memory in bytes, and how many shapes there are."""
    addresses, _ = imports(viewer)
    page = PAGE.format(imports=json.dumps({"imports": libraries(npm, addresses)})).encode()
    folders = {"viewer": viewer, "npm": npm / "node_modules"}
    handler = functools.partial(Handler, page, folders, snapshot.read_bytes())
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory(prefix="memscope-bench-chromium-", ignore_cleanup_errors=True) as folder:
        browser = Chromium(program, folder)
        try:
            url = f"http://127.0.0.1:{server.server_address[1]}/"
            target = browser.ask("Target.createTarget", url=url)["targetId"]
            session = browser.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
            begin = time.monotonic()
            while not browser.evaluate(session, "typeof measure === 'function' && document.readyState === 'complete'"):
                if time.monotonic() > begin + 60:
                    raise RuntimeError("the viewer's libraries cannot be loaded")
                time.sleep(0.1)
            found = browser.evaluate(session, "measure()")
            memory = max(largest(pid) for pid in browser.renderers())
            if picture:
                taken = browser.ask("Page.captureScreenshot", session, format="png")
                picture.write_bytes(base64.b64decode(taken["data"]))
            return found["seconds"], memory, found["shapes"]
        finally:
            browser.end()
            server.shutdown()
            server.server_close()
