"""Three steps on the CPU, the second with four times the batch: bytes of the parameters and of the largest module's output."""

from figures import say
import torch


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.small = torch.nn.Linear(256, 256)
        self.large = torch.nn.Linear(256, 16384, bias=False)

    def forward(self, batch):
        return self.large(self.small(batch).relu())


model = Net()
optimizer = torch.optim.SGD(model.parameters(), 0.01)
outputs = []
for batch in (128, 512, 128):
    output = model(torch.randn(batch, 256))
    outputs.append(output.untyped_storage().nbytes())
    output.square().mean().backward()
    del output
    optimizer.step()
    optimizer.zero_grad()
say(parameters=sum(parameter.untyped_storage().nbytes() for parameter in model.parameters()), outputs=outputs)
