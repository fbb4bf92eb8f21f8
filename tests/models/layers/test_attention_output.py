from copy import deepcopy
from functools import partial

import pytest
import torch
from torch.nn import functional as F
from torch.testing import assert_close

from regard.attention import Attention, Encoded, Pointer
from regard.data.batch import Padded
from regard.decoding.beam import beam
from regard.decoding.greedy import greedy
from regard.models.attention_factory import build_attention
from regard.models.decoders.convolution import Convolution
from regard.models.decoders.recurrent import Recurrent
from regard.models.decoders.transformer import Transformer
from regard.models.layers.attention_output import AttentionOutput, build_attention_output
from regard.tree import repeat

from ..small import batch, made

KEEP = torch.tensor([[True, True, True, True], [True, True, False, False]])
TOKENS = torch.tensor([[4, 5, 4, 2], [6, 2, 0, 0]])
TARGET = torch.tensor([[1, 4, 5], [1, 6, 2]])
OPTIONS = {
    "recurrent": partial(Recurrent, input_feeding=False),
    "convolution": partial(Convolution, layers=2),
    "transformer": partial(Transformer, layers=2, heads=2),
}
FEEDING = {"luong": Recurrent, "bahdanau": partial(Recurrent, order="bahdanau", cell="gru")}
every_decoder = pytest.mark.parametrize("kind", OPTIONS)
close = {"atol": 1e-5, "rtol": 1e-5}


def decoder(kind, name, **options):
    return (OPTIONS | FEEDING)[kind](9, 6, 8, attention=partial(build_attention, name), **options).eval()


def encoded(keep=KEEP):
    return Encoded(torch.randn(2, 4, 6), keep, (torch.randn(2, 1, 6), torch.randn(2, 1, 6)), tokens=TOKENS)


def last(model):
    """The highest attention over the source, by name."""
    return [(name, module) for name, module in model.named_modules() if name.rpartition(".")[2] == "cross"][-1]


class Fixed:
    """All attention on one key."""

    sums_to_one = True

    def __init__(self, key):
        self.key = key

    def __call__(self, scores, allowed=None):
        return torch.zeros_like(scores).index_fill(-1, torch.tensor(self.key), 1.0)


@every_decoder
def test_the_marginal_mixes_what_follows_from_a_look_at_each_key_alone(kind):
    model = decoder(kind, "additive+marginal")
    memory = model.remember(encoded())
    step = model(TARGET, memory, weights=True)
    name, cross = last(model)
    weights = step.attended[f"decoder.{name}"].weights[:, 0]
    expected = 0
    for key in range(4):
        looking = deepcopy(model)
        looking.outcome = None
        last(looking)[1].normalise = Fixed(key)
        alone = looking(TARGET, memory).output.softmax(-1)
        expected = expected + weights[..., key, None] * alone
    assert_close(step.output.exp(), expected)
    assert isinstance(cross, Attention)
    soft = deepcopy(model)
    soft.outcome = None
    assert not torch.allclose(soft(TARGET, memory).output.softmax(-1), step.output.exp(), atol=1e-4)


@pytest.mark.parametrize("order", ["luong", "bahdanau"])
def test_what_is_fed_to_the_cells_stays_soft(order):
    model = decoder(order, "additive+marginal")
    source = encoded()
    memory = model.remember(source)
    step = model(TARGET, memory, weights=True)
    soft = deepcopy(model)
    soft.outcome = None
    plain = soft(TARGET, memory, weights=True)
    assert_close(step.attended["decoder.cross"].weights, plain.attended["decoder.cross"].weights)
    assert_close(step.state, plain.state)
    start = model.start(memory)
    unroll = model.luong if order == "luong" else model.bahdanau
    top, _, attended, _ = unroll(model.cross, model.embedding(TARGET), memory.memories["decoder.cross"], start, True)
    for row, place in ((0, 0), (0, 2), (1, 1)):
        total = 0
        for key in range(4):
            parts = [top[row, place], source.data.masked_fill(~KEEP[..., None], 0.0)[row, key]]
            parts += [model.embedding(TARGET)[row, place]] if order == "bahdanau" else []
            logits = model.output(torch.tanh(model.readout(torch.cat(parts))), model.embedding.table.weight)
            total = total + attended.weights[row, 0, place, key] * logits.softmax(-1)
        assert_close(step.output[row, place].exp(), total)


@every_decoder
def test_a_pointer_mixes_its_weights_into_the_output(kind):
    table = [-1, -1, 2, 3, 7, 8, -1]
    model = decoder(kind, "pointer", counterparts=table)
    memory = model.remember(encoded())
    assert memory.tokens.tolist() == [[7, 8, 7, 2], [-1, 2, -1, -1]]
    step = model(TARGET, memory, weights=True)
    plain = deepcopy(model)
    plain.outcome = None
    writes = plain(TARGET, memory, weights=True)
    weights = step.attended[f"decoder.{last(model)[0]}"].weights[:, 0]
    assert_close(weights, writes.attended[f"decoder.{last(model)[0]}"].weights[:, 0])
    copied = torch.zeros(2, 3, 9)
    copied[0, :, 7], copied[0, :, 8], copied[0, :, 2] = (
        weights[0, :, 0] + weights[0, :, 2],
        weights[0, :, 1],
        weights[0, :, 3],
    )
    copied[1, :, 2] = weights[1, :, 1]
    # p = g P + (1 - g) copied, of which P is known; what cannot be copied is written too
    p, P = step.output.exp(), writes.output.softmax(-1)
    left = 1 - copied.sum(-1, keepdim=True)
    g = (p[..., :1] / P[..., :1] - left) / (1 - left)  # token 0 is never copied
    assert ((g > 0) & (g < 1)).all()
    assert_close(p, g * P + (1 - g) * (left * P + copied), **close)
    assert_close(p.sum(-1), torch.ones(2, 3))


@pytest.mark.parametrize("kind", OPTIONS | FEEDING)
@pytest.mark.parametrize("name", ["additive+marginal", "pointer", "pointer+marginal", "pointer+sparsemax"])
def test_all_at_once_equals_step_by_step_in_every_beam(kind, name):
    model = decoder(kind, name)
    memory = model.remember(encoded())
    expected = model(TARGET, memory)
    assert all(each.weights is None for each in expected.attended.values())
    state, found = repeat(model.start(memory), 2), []
    for token in repeat(TARGET, 2).unbind(1):
        step = model.step(token, memory, state)
        state = step.state
        found.append(step.output)
    assert_close(torch.stack(found, dim=1), repeat(expected.output, 2), **close)
    assert_close(expected.output.logsumexp(-1), torch.zeros(2, 3), **close)


@every_decoder
@pytest.mark.parametrize("name", ["additive+marginal", "pointer"])
def test_a_source_of_padding_alone_says_what_the_context_says(kind, name):
    model = decoder(kind, name)
    memory = model.remember(encoded(torch.tensor([[True] * 4, [False] * 4])))
    output = model(TARGET, memory).output
    plain = deepcopy(model)
    plain.outcome = None
    assert_close(output[1], plain(TARGET, memory).output[1].log_softmax(-1))
    output[1].square().sum().backward()
    assert all(each.grad.isfinite().all() for each in model.parameters() if each.grad is not None)


LEARNING = {
    "recurrent": {"decoder": "recurrent"},
    "bahdanau": {"decoder": "recurrent", "order": "bahdanau"},
    "convolution": {"decoder": "convolution"},
    "transformer": {"decoder": "transformer", "norm": "post"},
}


@pytest.mark.parametrize("kind", LEARNING)
@pytest.mark.parametrize("name", ["additive+marginal", "pointer", "pointer+marginal"])
def test_everything_learns_and_padding_changes_nothing(kind, name):
    model = made(name, layers=2, **LEARNING[kind])
    source, target = batch()
    longer = Padded(F.pad(source.data, (0, 3), value=5), F.pad(source.keep, (0, 3)))
    output = model(longer, target).output
    assert_close(output, model(source, target).output, **close)
    alone = Padded(source.data[1:2, :2], source.keep[1:2, :2])
    assert_close(output[1:2], model(alone, target[1:2]).output, **close)
    F.cross_entropy(output.flatten(0, 1), target.flatten()).backward()
    for parameter_name, parameter in model.named_parameters():
        assert parameter.grad is not None, parameter_name
        assert parameter.grad.isfinite().all(), parameter_name


@every_decoder
@pytest.mark.parametrize("name", ["additive+marginal", "pointer"])
def test_searches_and_self_decoding_take_it_as_any_other(kind, name):
    model = made(name, decoder=kind).eval()
    source, target = batch()
    memory = model.encode(source)
    one = greedy(model.decoder, memory, length=4, weights=True)
    assert [each[0].tokens for each in beam(model.decoder, memory, beams=1, length=4)] == [each.tokens for each in one]
    for found in one:
        fed = torch.tensor([[1, *found.tokens[:-1]]])
        row = one.index(found)
        alone = Padded(source.data[row : row + 1], source.keep[row : row + 1])
        output = model(alone, fed).output
        chosen = output[0].gather(-1, torch.tensor(found.tokens)[:, None]).sum()
        assert found.score == pytest.approx(chosen.item(), abs=1e-4)
    step = model(source, target, own=1.0, draws=torch.zeros(3, 3), weights=True, statistics=("entropy",))
    assert step.output.shape == (3, 3, 13)
    assert len(step.attended[f"decoder.{last(model.decoder)[0]}"].statistics) == 1


@every_decoder
@pytest.mark.parametrize("name", ["additive+marginal", "pointer"])
def test_half_precision_trains_by_autocast(kind, name):
    model = made(name, decoder=kind)
    source, target = batch()
    with torch.autocast("cpu", dtype=torch.float16):
        output = model(source, target).output
        F.cross_entropy(output.flatten(0, 1), target.flatten()).backward()
    assert output.dtype == torch.float32
    assert_close(output, model(source, target).output, atol=0.05, rtol=0.05)
    assert all(each.grad.isfinite().all() for each in model.parameters())


def test_only_the_highest_attention_has_a_say():
    for kind in ("transformer", "convolution"):
        model = decoder(kind, "pointer")
        assert isinstance(model.layers[0].cross, Pointer)
        assert [name for name, module in model.named_modules() if isinstance(module, AttentionOutput)] == ["outcome"]


def test_an_attention_that_only_reads_has_no_outcome():
    sizes = {"state": 3, "token": 2, "vocabulary": 5}
    assert build_attention_output(None, **sizes) is None
    assert build_attention_output(Attention(3), **sizes) is None
    marginal, pointer = (
        build_attention_output(each, **sizes) for each in (Attention(3, normalise="marginal"), Pointer(3, 4))
    )
    assert marginal.exact
    assert marginal.copying is None
    assert marginal.tokens(Encoded(torch.zeros(1, 2, 1))) == ()
    assert not pointer.exact
    assert pointer.copying.gate.in_features == 4 + 3 + 2
