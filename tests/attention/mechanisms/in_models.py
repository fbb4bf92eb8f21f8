"""What a mechanism owes a model that names it: padding and neighbours change nothing, and steps equal all at once."""

import pytest
from torch.nn import functional as F
from torch.testing import assert_close

from regard.data.batch import Padded
from regard.tree import repeat

from ...models.small import batch, made

KINDS = {
    "recurrent, bahdanau": {"order": "bahdanau"},
    "recurrent, luong": {"order": "luong"},
    "recurrent, without feeding": {"input_feeding": False},
    "transformer": {"encoder": "transformer", "decoder": "transformer"},
}
every_kind = pytest.mark.parametrize(
    "kind", [next(iter(KINDS)), *(pytest.param(kind, marks=pytest.mark.soak) for kind in list(KINDS)[1:])]
)
"""One decoder in every run, since the contracts ask every decoder, and the others in the soak."""

CLOSE = {"atol": 1e-5, "rtol": 1e-5}


def check_learning_and_padding(name, kind):
    """Every parameter gets a gradient, and a row is what it would be alone."""
    model, (source, target) = made(name, **KINDS[kind]), batch()
    longer = Padded(F.pad(source.data, (0, 3), value=5), F.pad(source.keep, (0, 3)))
    step = model(longer, target)
    F.cross_entropy(step.output[:, :2].flatten(0, 1), target[:, 1:].flatten()).backward()
    for path, parameter in model.named_parameters():
        assert parameter.grad is not None, path
        assert parameter.grad.isfinite().all(), path
    alone = Padded(source.data[1:2, :2], source.keep[1:2, :2])
    assert_close(step.output[1:2], model(alone, target[1:2]).output, **CLOSE)


def check_steps_and_beams(name, kind):
    """Step by step with one memory for two beams of each source equals all positions at once, weights included."""
    model, (source, target) = made(name, **KINDS[kind]).eval(), batch()
    memory = model.encode(source)
    beams = repeat(target, 2)
    beams[1::2] = target.flip(0)
    taught = model.decoder(beams, repeat(memory, 2), weights=True)
    state = repeat(model.decoder.start(memory), 2)
    for place in range(target.shape[1]):
        step = model.decoder.step(beams[:, place], memory, state, weights=True)
        state = step.state
        assert_close(step.output, taught.output[:, place], **CLOSE)
        for path, attended in taught.attended.items():
            found = step.attended[path].weights
            assert_close(found, attended.weights[:, :, place : place + 1, : found.shape[3]], **CLOSE)
