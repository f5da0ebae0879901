"""Executes a notebook in a kernel of its own, a child process, and prints what each cell said or raised."""

import os
import re
import sys
import tempfile

try:
    import nbformat
    from nbclient import NotebookClient
except ImportError as error:
    print("missing", error.name)
    sys.exit(0)

CELLS = [
    "import torch\nimport torch.nn as nn\ntorch.set_num_threads(1)\ntorch.manual_seed(0)",
    """class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.head = nn.Linear(300, 300), nn.Linear(300, 2)

    def forward(self, x, ends=None):
        if ends:
            ends()
        return self.head(self.layer(x))

model = Net()
model""",
    """%%time
optimizer = torch.optim.Adam(model.parameters(), 0.01)
for step in range(3):
    loss = model(torch.ones(7, 300)).pow(2).sum()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    print(step, loss.item().hex())""",
    "model(torch.ones(7, 301))",
    "import os, signal\nmodel(torch.ones(7, 300), lambda: os.kill(os.getpid(), signal.SIGINT))",
    "%%capture words\nprint(model(torch.ones(7, 300)).shape)",
    "words.stdout",
    # What a user does when the model was wrong.
    "del model, optimizer, loss\nmodel = Net()\nmodel(torch.ones(7, 300)).sum().backward()\nmodel.layer.weight.grad.sum().item().hex()",
    "import sys\n[name for name in sys.modules if 'memscope' in name], nn.Module.__call__.__name__",
]


def plain(text):
    """Text without what differs from kernel to kernel: colours, folders of cells, times, addresses of objects."""
    text = re.sub(r"\x1b\[[0-9;]*m", "", text)
    text = re.sub(r"ipykernel_\d+/\d+\.py", "CELL", text)
    text = re.sub(r"\d+(\.\d+)?(e\+\d+)? (ns|[µμ]s|us|ms|s|min)\b", "TIME", text)
    return re.sub(r"0x[0-9a-f]{6,}", "ADDRESS", text)


with tempfile.TemporaryDirectory() as folder:
    for name in ("IPYTHONDIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "JUPYTER_CONFIG_DIR"):
        os.environ[name] = os.path.join(folder, name)
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in CELLS])
    NotebookClient(notebook, timeout=120, kernel_name="python3", allow_errors=True).execute()
for number, cell in enumerate(notebook.cells):
    for output in cell.outputs:
        said = output.get("text") or output.get("data", {}).get("text/plain") or "\n".join(output.get("traceback", []))
        print(f"== cell {number}, {output.output_type}\n{plain(said)}")
