"""Contracts of mechanisms: properties that hold for every attention with a source and, where it has one, a state.

Each contract is a function of a case that raises AssertionError where the property is broken; the first line of its
docstring is the property.
"""

from copy import deepcopy
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd import grad, gradcheck
from torch.func import functional_call
from torch.testing import assert_close

from regard import registry
from regard.attention.module import Attention
from regard.attention.scope.padding import Padding
from regard.attention.stateful import concatenate_steps
from regard.attention.statistics import measure
from regard.attention.types import Encoded
from regard.models.layers.beam_attention import attend_beams
from regard.testing.mechanism_cases import (
    BATCH,
    BEAMS,
    KEEP,
    KEY,
    KEYS,
    LENGTHS,
    OFFSETS,
    QUERIES,
    QUERY,
    MakeAttention,
    MechanismCase,
    amplify,
    make_query,
    make_source,
    perturb,
    read_values,
    require_values,
    spoil_padding,
)
from regard.testing.stages import add, all_finite
from regard.tree import map_tree, repeat, select

close = partial(assert_close, rtol=1e-10, atol=1e-10)
STATISTICS = ("entropy", "max", "argmax", "top_2", "received", "mean_position", "spread")


def check_variety(case: MechanismCase) -> None:
    """Most queries read something, and not all of them the same."""
    module, query, encoded = case.build(), make_query(), make_source(None)
    attended = module(query, module.remember(encoded), offset=1, weights=True)
    assert attended.weights is not None
    assert attended.weights.any(-1).float().mean() > 0.5, "most queries have no weights"
    assert len(attended.context.flatten(0, 1).unique(dim=0)) > BATCH, "the context does not depend on the query"  # type: ignore[no-untyped-call]


def check_steps(case: MechanismCase) -> None:
    """Queries one at a time equal all at once."""
    module, query = case.build(), make_query()
    memory = module.remember(make_source())
    together = module(query, memory, module.start(memory), offset=1, weights=True)
    state, steps = module.start(memory), []
    for place in range(QUERIES):
        offset = torch.full((BATCH,), 1 + place)
        steps.append(module(query[:, place : place + 1], memory, state, offset=offset, weights=True))
        state = steps[-1].state
    alone = concatenate_steps(steps)
    close((together.context, together.weights, together.state), (alone.context, alone.weights, alone.state))
    close(module(query, memory, offset=1).context, together.context)  # without a state it begins by itself


def check_padding(case: MechanismCase) -> None:
    """Padding might as well not exist."""
    module, query, whole = case.build(), make_query(), make_source()
    padded = module(query, module.remember(spoil_padding(whole)), offset=1, weights=True)
    assert padded.weights is not None
    assert not padded.weights.masked_select(~KEEP[:, None, None]).any(), "padding has weights"
    for row, length in enumerate(LENGTHS):
        short = Encoded(whole.data[row : row + 1, :length], values=require_values(whole)[row : row + 1, :length])
        alone = module(query[row : row + 1], module.remember(short), offset=1, weights=True)
        close(padded.context[row : row + 1], alone.context)
        close(padded.weights[row : row + 1, ..., :length], alone.weights)


def check_padding_gradient(case: MechanismCase) -> None:
    """No gradient depends on padding or reaches it."""
    module, query, whole = case.build(), make_query(), make_source()
    clean, spoiled = (compute_gradients(module, query, encoded) for encoded in (whole, spoil_padding(whole)))
    close(spoiled, clean)
    for gradient in spoiled[1:3]:
        assert not gradient[~KEEP].any(), "padding has a gradient"


def compute_gradients(module: Attention, query: Tensor, encoded: Encoded, rows: Any = slice(None)) -> tuple[Tensor, ...]:
    """Gradients of some rows' context and weights in query, source, values and parameters; zeros where there is none."""
    inputs = [side.clone().requires_grad_() for side in (query, encoded.data, require_values(encoded))]
    memory = module.remember(encoded._replace(data=inputs[1], values=inputs[2]))
    attended = module(inputs[0], memory, offset=1, weights=True)
    assert attended.weights is not None
    results = [result[rows] for result in (attended.context, attended.weights)]
    loss = add((torch.arange(1, result.numel() + 1) * result.flatten()).sum() for result in results)
    return grad(loss, [*inputs, *module.parameters()], allow_unused=True, materialize_grads=True)


def check_rows(case: MechanismCase) -> None:
    """A row alone equals the row in a batch."""
    module, query, whole = case.build(), make_query(), make_source()
    together = module(query, module.remember(whole), offset=torch.tensor(OFFSETS), weights=True)
    for row, offset in enumerate(OFFSETS):
        only = torch.tensor([row])
        alone = module(query[only], module.remember(select(whole, only)), offset=offset, weights=True)
        expected = select(together, only)
        close((alone.context, alone.weights, alone.state), (expected.context, expected.weights, expected.state))


def check_blind_row(case: MechanismCase) -> None:
    """A row that may see nothing reads zeros and passes no gradient.

    A projection behind the heads has a bias, and that is all that is left of it.
    """
    module, query, blind = case.build(), make_query(), torch.tensor([False, True, False])
    encoded = make_source(~blind[:, None].expand_as(KEEP))
    memory = module.remember(encoded)
    attended = module(query, memory, offset=1, weights=True)
    assert attended.weights is not None
    nothing = read_values(module, torch.zeros_like(attended.weights), memory)
    assert not attended.weights[blind].any(), "there are weights where nothing may be seen"
    assert torch.equal(attended.context[blind], nothing[blind]), "a context where nothing may be seen is not that of zeros"
    assert isinstance(module.output, nn.Linear) or not nothing.any()
    assert all_finite(*compute_gradients(module, query, encoded)), "a gradient has NaN beside a row that may see nothing"
    names = ["query", "source", "values", *(name for name, _ in module.named_parameters())]
    gradients = zip(names, compute_gradients(module, query, encoded, blind), strict=True)
    assert [name for name, gradient in gradients if gradient.any()] == ["output.bias"] * isinstance(module.output, nn.Linear)


def check_empty_source(case: MechanismCase) -> None:
    """A source without positions is like one of padding alone."""
    module, query, nothing = case.build(), make_query(), make_source(torch.zeros_like(KEEP))
    padded = module(query, module.remember(nothing), offset=1, weights=True)
    assert padded.weights is not None
    assert not padded.weights.any(), "padding has weights"
    assert all_finite(*compute_gradients(module, query, nothing)), "a gradient has NaN where nothing may be seen"
    for keep in (None, KEEP[:, :0]):
        empty = module(query, module.remember(make_source(keep, keys=0)), offset=1, weights=True)
        assert empty.weights is not None
        assert empty.weights.shape == (*padded.weights.shape[:3], 0)
        close(empty.context, padded.context)


def check_weights(case: MechanismCase) -> None:
    """Weights are shares of what may be seen."""
    module = case.build()
    weights = module(make_query(), module.remember(make_source()), offset=1, weights=True).weights
    assert weights is not None
    allowed = (module.scope & Padding(KEEP)).allowed(BATCH, 1, QUERIES, KEYS, 1, weights.device)
    assert allowed is not None
    total = weights.sum(-1)
    assert (weights >= 0).all(), "a weight is negative"
    assert not weights.masked_select(~allowed).any(), "a masked key has a weight"
    if case.partial_weights:
        assert module.normalise.sums_to_one
        assert (total <= 1 + 1e-9).all(), "weights add up to more than one"
        assert (total < 0.99).any(), "it need not be among those whose weights add up to less than one"
    elif module.normalise.sums_to_one:
        close(total, allowed.any(-1).double().expand_as(total))


def check_context(case: MechanismCase) -> None:
    """The context is weights @ values."""
    module = case.build()
    memory = module.remember(make_source())
    attended = module(make_query(), memory, offset=1, weights=True)
    assert attended.weights is not None
    expected = read_values(module, attended.weights, memory)
    if case.several_reads:
        assert (expected - attended.context).abs().amax() > 0.1, "it need not be among those that read several times"
    else:
        close(expected, attended.context)


def check_requests(case: MechanismCase) -> None:
    """Asking for weights or statistics does not change the context."""
    module, query = case.build(), make_query()
    memory = module.remember(make_source())
    plain, weighted, measured, both = (
        module(query, memory, offset=1, weights=weights, statistics=statistics)
        for weights, statistics in ((False, ()), (True, ()), (False, STATISTICS), (True, STATISTICS))
    )
    for attended in (weighted, measured, both):
        close((attended.context, attended.state), (plain.context, plain.state))
    assert plain.weights is None
    assert measured.weights is None
    assert (dict(plain.statistics), dict(weighted.statistics)) == ({}, {})
    assert weighted.weights is not None
    expected = measure(weighted.weights, None, STATISTICS)
    close((dict(measured.statistics), dict(both.statistics)), (expected, expected))
    close(both.weights, weighted.weights)


def check_purity(case: MechanismCase) -> None:
    """A call changes none of its arguments, and a second one gives the same."""
    module, query, encoded = case.build(), make_query(), make_source()
    memory = module.remember(encoded)
    state = module(query, memory, offset=1).state
    arguments = query, encoded, memory, state, module.state_dict()
    before = map_tree(torch.clone, arguments)
    first, second = (module(query, memory, state, offset=1, weights=True) for _ in range(2))
    assert torch.equal(first.context, second.context), "a second call gives another context"
    assert_close(arguments, before, rtol=0, atol=0)


def check_dropout(case: MechanismCase) -> None:
    """Weights are those before dropout."""
    module = case.build(dropout=0.5).train()
    memory, query, contexts, weights = module.remember(make_source()), make_query(), [], []
    for module.dropout in (0.0, 0.5):
        torch.manual_seed(1)  # random draws of the mechanism come before those of dropout
        attended = module(query[:, :1], memory, offset=1, weights=True)
        contexts.append(attended.context)
        weights.append(attended.weights)
    # later hops attend with a query from which nothing was dropped
    close(*(weight[:, :1] if case.several_reads else weight for weight in weights if weight is not None))
    assert not torch.allclose(contexts[0], contexts[1]), "dropout changes nothing"


def check_gradient(case: MechanismCase) -> None:
    """Gradients equal finite differences.

    They are compared in one random direction of the space that holds query, source, values and all parameters.
    """
    whole, encoded = Whole(case.build()), make_source()
    parameters = dict(whole.named_parameters())
    parts = [make_query(2), encoded.data, require_values(encoded), *parameters.values()]
    sizes = [part.numel() for part in parts]

    def run(together: Tensor) -> Any:
        pieces = [piece.view_as(part) for piece, part in zip(together.split(sizes), parts, strict=True)]  # type: ignore[no-untyped-call]
        return functional_call(whole, dict(zip(parameters, pieces[3:], strict=True)), tuple(pieces[:3]))

    together = torch.cat([part.detach().flatten() for part in parts]).requires_grad_()
    assert gradcheck(run, together, fast_mode=True, rtol=1e-5, atol=1e-7, check_undefined_grad=False)


class Whole(nn.Module):
    """A source remembered and attended to: the context as it comes, and the context and weights as the stages give them."""

    def __init__(self, attention: Attention):
        super().__init__()
        self.attention = attention

    def forward(self, query: Tensor, data: Tensor, values: Tensor) -> tuple[Tensor, Tensor, Tensor | None]:
        memory = self.attention.remember(Encoded(data, KEEP, values=values))
        return self.attention(query, memory, offset=1).context, *self.attention(query, memory, offset=1, weights=True)[:2]


def check_precision(case: MechanismCase, dtype: torch.dtype) -> None:
    """Every precision stays finite at scores of ten thousand."""
    module, query, encoded = amplify(case)
    module = deepcopy(module).to(dtype)
    inputs = [side.to(dtype).requires_grad_() for side in (query, encoded.data, require_values(encoded))]
    memory = module.remember(Encoded(inputs[1], KEEP, values=inputs[2]))
    attended = module(inputs[0], memory, offset=1, weights=True)
    plain = module(inputs[0], memory, offset=1)
    assert attended.weights is not None
    results = attended.context, attended.weights, plain.context
    assert [result.dtype for result in results] == [dtype] * 3, f"in {dtype} it gives another precision"
    loss = add(result.float().mean() for result in results)
    gradients = grad(loss, [*inputs, *module.parameters()], allow_unused=True, materialize_grads=True)
    assert all_finite(*results), f"there is NaN or infinity in {dtype}"
    assert all_finite(*gradients), f"a gradient has NaN or infinity in {dtype}"


def check_beams(case: MechanismCase) -> None:
    """Beams that share a memory get what they would get alone, also after beams of a source change places."""
    module, whole = case.build(), make_source()
    position = repeat(torch.tensor(OFFSETS), BEAMS)
    memory, query = module.remember(whole), make_query(3, BEAMS * BATCH)
    swapped = torch.tensor([1, 0, 3, 2, 5, 4])
    first = attend_beams(module, query[:, :1], memory, repeat(module.start(memory), BEAMS), position=position, weights=True)
    first = select(first, swapped)
    second = attend_beams(module, query[:, 1:], memory, first.state, position=position + 1, weights=True)
    steps = concatenate_steps([first, second])
    together = torch.cat((query[swapped, :1], query[:, 1:]), dim=1)
    alone = module(together, module.remember(repeat(whole, BEAMS)), offset=position, weights=True)
    close((steps.context, steps.weights, steps.state), (alone.context, alone.weights, alone.state))


def check_options(make: MakeAttention) -> None:
    """It takes the options of a config: size, dropout and scope."""
    module = make(QUERY, KEY, size=6, dropout=0.25, scope="causal")
    assert module is not None
    module = perturb(module).eval()
    assert (module.dropout, module.scope) == (0.25, registry.build("causal", "scope"))
    attended = module(make_query(), module.remember(Encoded(make_source().data)), offset=1, weights=True)
    assert attended.context.shape == (BATCH, QUERIES, module.size)
    assert not attended.weights.triu(2).any(), "it attends beyond a causal scope"
    assert attended.weights.any(), "it attends to nothing"
