"""Recurrent layers of all kinds, two steps of Adam each, whole and packed: `recurrent.py`."""

from figures import say
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence

STEPS, BATCH, LENGTHS = 12, 8, [12, 12, 9, 9, 7, 3, 2, 1]
KINDS = {
    "rnn": nn.RNN(24, 32, nonlinearity="relu"),
    "lstm": nn.LSTM(24, 32, num_layers=3, bidirectional=True, dropout=0.1),
    "gru": nn.GRU(24, 32, num_layers=2, bias=False),
    "projected": nn.LSTM(24, 32, num_layers=2, proj_size=16, bidirectional=True),
    "half": nn.LSTM(24, 32, num_layers=2).half(),
}

kinds = {}
for name, layers in KINDS.items():
    layers.cuda()
    weights = list(layers.parameters())
    optimizer = torch.optim.Adam(weights)
    inputs = torch.randn(STEPS, BATCH, 24, device="cuda", dtype=weights[0].dtype)
    for batch in (inputs, pack_padded_sequence(inputs, LENGTHS)):
        output, _ = layers(batch)
        node = output.grad_fn if isinstance(output, torch.Tensor) else output.data.grad_fn
        kept = node._saved_result3
        (output if isinstance(output, torch.Tensor) else output.data).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
        kinds.setdefault(name, {}).setdefault("kept", []).append(kept.untyped_storage().nbytes())
    kinds[name] |= {
        "weights": sum(weight.numel() * weight.element_size() for weight in weights),
        "storages": {weight.untyped_storage().data_ptr(): weight.untyped_storage().nbytes() for weight in weights},
    }
    with torch.no_grad():
        layers(inputs)
say(kinds=kinds)
