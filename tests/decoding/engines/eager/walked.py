"""A walk that every engine takes beside the decoder it was made from: rows are reordered, and some leave."""

import torch

from regard.data.batch import pad
from regard.tree import select

SOURCE = pad([[4, 5, 6, 2], [7, 2], [8, 9, 2]])
PATH = [
    (torch.tensor([1, 1, 1]), None, None),
    (torch.tensor([4, 5, 6, 7, 8, 9]), torch.tensor([0, 0, 1, 1, 2, 2]), None),
    (torch.tensor([9, 9, 4, 5]), torch.tensor([1, 0, 5, 5]), torch.tensor([0, 2])),
    (torch.tensor([7, 3, 4, 6]), torch.tensor([1, 1, 2, 3]), None),
    (torch.tensor([8, 5]), torch.tensor([3, 2]), torch.tensor([1])),
]
"""Tokens, the rows that they grow from, and the sentences that stay: one row each, two each, then fewer sentences."""


@torch.no_grad()
def walked(engine, model):
    """An engine's logits are the decoder's at every step."""
    decoder, memory = model.decoder, model.encode(SOURCE)
    steps, state = engine(decoder).begin(memory), decoder.start(memory)
    for tokens, parents, staying in PATH:
        if staying is not None:
            steps.leave(staying)
            memory = select(memory, staying)
        state = state if parents is None else select(state, parents)
        expected = decoder.step(tokens, memory, state)
        torch.testing.assert_close(steps.step(tokens, parents), expected.output, atol=1e-5, rtol=1e-5)
        state = expected.state


@torch.no_grad()
def near(engine, model):
    """An engine's logits in 8 bits differ from those in single precision, and not by much."""
    memory, tokens = model.encode(SOURCE), torch.tensor([1, 1, 1])
    exact, rounded = (engine(model.decoder, each).begin(memory).step(tokens, None) for each in ("float32", "int8"))
    assert 0 < (exact - rounded).abs().max() < 0.05 * exact.abs().max()
