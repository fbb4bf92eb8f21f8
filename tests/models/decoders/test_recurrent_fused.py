import os
from functools import partial

import pytest
import torch

from regard.attention.module import Attention
from regard.attention.types import Encoded
from regard.models.attention_factory import build_attention
from regard.models.decoders import recurrent_fused
from regard.models.decoders.recurrent import Recurrent

INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1" and recurrent_fused.INSTALLED
runs = pytest.mark.skipif(not INTERPRETED, reason="runs in Triton's interpreter; benchmarks/recurrent.py checks on a GPU")


def decoder(name="bilinear", size=5, source=6, **options):
    return Recurrent(11, source, size, embedding=4, attention=partial(build_attention, name), **options)


def encoded(source=6, keep=True):
    lengths = torch.tensor([7, 3, 0])
    kept = torch.arange(7) < lengths[:, None] if keep else None
    return Encoded(torch.randn(3, 7, source), kept, (torch.randn(3, 1, source),))


def taught(model, source, tokens, flow):
    """Everything that a loop leaves, and the gradient of every parameter and of the source."""
    data = source.data.clone().requires_grad_()
    memory = model.remember(source._replace(data=data))
    step = model(tokens, memory)
    cross = step.attended["decoder.cross"].context
    parts = (step.output, cross, step.state.hidden[0], step.state.hidden[1], step.state.fed)
    total = sum((part * given).sum() for part, given in zip(parts, flow, strict=True))
    gradients = torch.autograd.grad(total, [data, *model.parameters()])
    return [*(part.detach() for part in parts), *gradients]


@runs
@pytest.mark.parametrize("name", ["bilinear", "dot", "scaled_dot", "luong"])
@pytest.mark.parametrize("keep", [True, False])
def test_the_loop_equals_its_steps_one_by_one_and_so_does_every_gradient(monkeypatch, name, keep):
    size = 6 if "dot" in name else 5
    model, tokens = decoder(name, size), torch.randint(11, (3, 4))
    source = encoded(keep=keep)
    flow = [torch.randn(each) for each in ((3, 4, 11), (3, 4, 6), (3, 1, size), (3, 1, size), (3, size))]
    expected = taught(model, source, tokens, flow)
    monkeypatch.setattr(recurrent_fused, "DEVICES", ("cpu",))
    used = []
    monkeypatch.setattr(
        recurrent_fused, "run_loop", lambda *given, loop=recurrent_fused.run_loop: used.append(1) or loop(*given)
    )
    found = taught(model, source, tokens, flow)
    assert used
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)


@runs
def test_a_source_of_which_nothing_may_be_seen_is_read_as_zeros(monkeypatch):
    monkeypatch.setattr(recurrent_fused, "DEVICES", ("cpu",))
    model = decoder()
    step = model(torch.randint(11, (3, 4)), model.remember(encoded()))
    assert not step.attended["decoder.cross"].context[2].any()
    assert step.attended["decoder.cross"].context[1].any()


@runs
def test_a_target_cut_in_two_goes_on_from_the_state_between(monkeypatch):
    monkeypatch.setattr(recurrent_fused, "DEVICES", ("cpu",))
    model, tokens = decoder(), torch.randint(11, (3, 6))
    memory = model.remember(encoded())
    whole = model.write(tokens, memory, model.start(memory))
    first = model.write(tokens[:, :4], memory, model.start(memory))
    second = model.write(tokens[:, 4:], memory, first.state)
    torch.testing.assert_close(torch.cat((first.output, second.output), 1), whole.output)


@runs
def test_under_autocast_it_is_as_near_to_the_exact_result_as_its_steps_are(monkeypatch):
    model, source, tokens = decoder(size=8), encoded(), torch.randint(11, (3, 4))
    flow = [torch.randn(each) for each in ((3, 4, 11), (3, 4, 6), (3, 1, 8), (3, 1, 8), (3, 8))]
    exact = taught(model, source, tokens, flow)
    with torch.autocast("cpu", torch.bfloat16):
        steps = taught(model, source, tokens, flow)
        monkeypatch.setattr(recurrent_fused, "DEVICES", ("cpu",))
        found = taught(model, source, tokens, flow)
    for one, other, right in zip(found, steps, exact, strict=True):
        assert (one - right).abs().max() <= 3 * (other - right).abs().max() + 0.02 * right.abs().max()


def asked(model=None, time=4, **changed):
    model = model or decoder()
    memory = model.remember(encoded()).memories["decoder.cross"]
    known = torch.randn(3, time, 4, dtype=changed.pop("dtype", torch.float32))
    return recurrent_fused.covers(
        model.layers, changed.pop("cross", model.cross), known, memory, changed.pop("weights", False)
    )


def made(**options):
    chosen = {"score": "bilinear"} | options
    return Attention(5, 6, **chosen)


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"weights": True}, "returns no weights"),
        ({"time": 1}, "is for whole targets"),
        ({"dtype": torch.float64}, "needs float32, float16 or bfloat16, got float64"),
        ({"model": decoder(layers=2)}, "needs one layer of LSTM, got 2 of LSTM"),
        ({"model": decoder(cell="gru")}, "needs one layer of LSTM, got 1 of GRU"),
        ({"cross": build_attention("coverage", 5, 6)}, "needs an attention of stages alone, got Coverage"),
        ({"cross": build_attention("local_p", 5, 6)}, "needs an attention of stages alone, got LocalP"),
        ({"cross": made(score="additive")}, "needs one of Dot, ScaledDot, Bilinear, got Additive"),
        ({"cross": made(normalise="sparsemax")}, "needs Softmax and Everywhere, got Sparsemax and Everywhere"),
        ({"cross": made(size=4)}, "needs a query as it is"),
        ({"cross": made(dropout=0.5)}, "never drops weights"),
        ({"cross": made(impl="reference")}, "is for attentions whose impl is auto or fused"),
    ],
)
def test_what_it_does_not_cover_it_names(monkeypatch, given, reason):
    monkeypatch.setattr(recurrent_fused, "DEVICES", ("cpu",))
    monkeypatch.setattr(recurrent_fused, "INSTALLED", True)
    assert reason in asked(**given)


def test_it_is_for_a_gpu_with_triton(monkeypatch):
    assert asked() == "needs a GPU, got cpu"
    monkeypatch.setattr(recurrent_fused, "DEVICES", ("cpu",))
    monkeypatch.setattr(recurrent_fused, "INSTALLED", False)
    assert "needs Triton, which is not installed" in asked()
    monkeypatch.setattr(recurrent_fused, "INSTALLED", True)
    assert asked() is None
    monkeypatch.setattr(recurrent_fused, "MAX_KEYS", 6)
    assert asked() == "needs at most 6 keys, got 7"


def test_a_gpu_that_lacks_something_is_named_for_the_precision_of_the_products(monkeypatch):
    monkeypatch.setattr(recurrent_fused, "DEVICES", ("cpu",))
    monkeypatch.setattr(recurrent_fused, "INSTALLED", True)
    monkeypatch.setattr(recurrent_fused.capability, "find_obstacle", lambda device, dtype: f"lacks {dtype}")
    assert asked() == "lacks torch.float32"
    with torch.autocast("cpu", torch.bfloat16):
        assert asked() == "lacks torch.bfloat16"
