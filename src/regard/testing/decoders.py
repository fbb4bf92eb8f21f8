"""Contracts of decoders: an attention in every kind of decoder gives step by step what it gives all at once."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.autograd import grad
from torch.testing import assert_close

from regard.attention.module import Attention
from regard.attention.multihead import MultiHead
from regard.attention.stateful import concatenate_steps
from regard.attention.types import Encoded
from regard.models.decoders.convolution import Convolution
from regard.models.decoders.recurrent import Recurrent
from regard.models.decoders.transformer import Transformer
from regard.testing.mechanism_cases import (
    BATCH,
    BEAMS,
    KEY,
    KEYS,
    QUERY,
    MakeAttention,
    make_source,
    perturb,
    require_values,
)
from regard.testing.mechanisms import close
from regard.tree import repeat

TARGET = torch.tensor([[1, 4, 5], [1, 3, 3], [1, 6, 2], [1, 2, 2], [1, 5, 4], [1, 5, 3]])  # of both beams of each source
DECODERS: dict[str, Any] = {
    "luong": partial(Recurrent, 7, KEY, QUERY),
    "bahdanau": partial(Recurrent, 7, KEY, QUERY, order="bahdanau"),
    "convolution": partial(Convolution, 7, KEY, QUERY, layers=2),
    "transformer": partial(Transformer, 7, KEY, QUERY, layers=2, heads=2),
}
SMALL: dict[str, Any] = {
    "luong": partial(Recurrent, 9, 6, 4),
    "luong without feeding": partial(Recurrent, 9, 6, 4, input_feeding=False),
    "bahdanau": partial(Recurrent, 9, 6, 4, order="bahdanau"),
    "transformer": partial(Transformer, 9, 6, 4, heads=2),
}
SMALL_KEEP = torch.tensor([[True, True, True, True], [True, True, False, False]])
SMALL_TARGET = torch.tensor([[1, 4, 5], [1, 6, 2]])


def check_decoder(make: MakeAttention, kind: str) -> None:
    """A decoder step by step equals teacher forcing, and itself after saving; gradients included.

    The steps have one memory for the beams of a source, teacher forcing has one for each row; it runs without weights, with
    weights, and as a second stretch that goes on from the state after a step.
    """
    decoder = build_decoder(make, kind)
    final = torch.randn(BATCH, 1, KEY, dtype=torch.float64)
    encoded = make_source()._replace(final=(final,), tokens=torch.randint(7, (BATCH, KEYS)))
    inputs = [encoded.data.requires_grad_(), require_values(encoded).requires_grad_(), *decoder.parameters()]
    memory = decoder.remember(encoded)
    output, steps = run_steps(decoder, memory, TARGET)
    forced, weighted = (decoder(TARGET, repeat(memory, BEAMS), weights=weights) for weights in (False, True))
    rest = decoder.write(TARGET[:, 1:], repeat(memory, BEAMS), steps[0].state)
    close((forced.output, weighted.output, rest.output), (output, output, output[:, 1:]))
    for result, expected in ((forced.output, output), (rest.output, output[:, 1:])):
        assert_close(compute_gradients(result, inputs), compute_gradients(expected, inputs), rtol=1e-7, atol=1e-7)
    for path in memory.memories:
        joined = concatenate_steps([step.attended[path] for step in steps])
        close(weighted.attended[path].weights, joined.weights)
        close((weighted.attended[path].state, forced.attended[path].state), (joined.state, joined.state))
    saved = build_decoder(make, kind)
    saved.load_state_dict(decoder.state_dict())
    loaded = run_steps(saved, saved.remember(encoded), TARGET[:, :1])[0]
    assert torch.equal(loaded, output[:, :1]), "a decoder from saved weights gives another output"


def build_decoder(make: MakeAttention, kind: str) -> Any:
    """A decoder of one kind with the attention that a factory makes."""
    return perturb(DECODERS[kind](attention=make)).eval()


def run_steps(decoder: Any, memory: Any, target: Tensor) -> tuple[Tensor, list[Any]]:
    """The output of each step, and the steps."""
    state, steps = repeat(decoder.start(memory), BEAMS), []
    for token in target.unbind(1):
        steps.append(decoder.step(token, memory, state, weights=True))
        state = steps[-1].state
    return torch.stack([step.output for step in steps], dim=1), steps


def compute_gradients(output: Tensor, inputs: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """Gradients of the squared output in each input; zeros where there is none."""
    return grad(output.square().sum(), inputs, retain_graph=True, allow_unused=True, materialize_grads=True)


def check_positional_decoder(make: MakeAttention, kind: str) -> None:
    """Check that with a positional score a decoder gives equal results at every step and in every beam."""
    decoder = SMALL[kind](attention=make).eval()
    memory = decoder.remember(Encoded(torch.randn(2, 4, 6), SMALL_KEEP, (torch.randn(2, 1, 6),) * 2))
    expected, state, outputs = decoder(SMALL_TARGET, memory).output, repeat(decoder.start(memory), 2), []
    for token in repeat(SMALL_TARGET, 2).unbind(1):
        step = decoder.step(token, memory, state)
        state = step.state
        outputs.append(step.output)
    assert_close(torch.stack(outputs, dim=1), repeat(expected, 2))


def check_growing_memory(score: Any, key_heads: int) -> None:
    """Check that with a positional score a memory that grows equals one of all keys at once."""
    heads = MultiHead(16, heads=4, key_heads=key_heads, score=score, scope="causal")
    data = torch.randn(2, 6, 16)
    expected, memory = heads(data, heads.remember(data)).context, None
    for chunk in data.split((1, 2, 1, 2), dim=1):  # type: ignore[no-untyped-call]
        memory = heads.extend(memory, chunk)
        first = memory.keys.shape[2] - chunk.shape[1]
        assert_close(heads(chunk, memory).context, expected[:, first : memory.keys.shape[2]])


def check_position(score: Any) -> None:
    """Check that with a positional score the weights depend on the position of the query."""
    heads = MultiHead(16, heads=4, score=score)
    assert heads.positional
    memory, query = heads.remember(torch.randn(2, 5, 16)), torch.randn(2, 1, 16)
    with torch.no_grad():
        first, shifted = (heads(query, memory, offset=offset, weights=True).weights for offset in (0, 3))
    assert first is not None
    assert shifted is not None
    assert not torch.allclose(first, shifted, atol=1e-4), "the weights do not depend on the position of the query"


def make_attention(**stages: Any) -> MakeAttention:
    """Factory of a single-head attention with these stages: make_attention(score=ScaledDot)."""
    return partial(Attention, **stages)
