import pytest
import torch

from regard.data.batch import pad
from regard.decoding.engines.cpp import recurrent as machine_recurrent
from regard.decoding.engines.cpp import transformer as machine_transformer
from regard.decoding.engines.eager import modules as as_it_is
from regard.decoding.engines.eager import recurrent, transformer
from regard.decoding.engines.types import Engine, SearchEngine, Steps

from ...models.small import KINDS, made


@pytest.mark.parametrize(
    ("make", "kind", "attention"),
    [
        (as_it_is.EagerEngine, "convolution, recurrent", "additive"),
        (recurrent.Engine, "recurrent, recurrent, lstm, luong", "bilinear"),
        (transformer.Engine, "transformer, transformer, pre", "transformer"),
        (machine_recurrent.Engine, "recurrent, recurrent, lstm, luong", "bilinear"),
        (machine_transformer.Engine, "transformer, transformer, pre", "transformer"),
    ],
)
def test_every_engine_has_the_face_that_the_search_asks_for(make, kind, attention):
    model = made(attention, **KINDS[kind]).eval()
    engine = make(model.decoder)
    assert isinstance(engine, Engine)
    assert isinstance(engine, SearchEngine) == make.__module__.startswith("regard.decoding.engines.cpp")
    with torch.no_grad():
        steps = engine.begin(model.encode(pad([[4, 5, 2], [6, 2]])))
        assert isinstance(steps, Steps)
        assert steps.step(torch.tensor([1, 1]), None).shape == (2, 13)
        steps.leave(torch.tensor([1]))
        assert steps.step(torch.tensor([4, 5]), torch.tensor([1, 1])).shape == (2, 13)


def test_what_cannot_leave_is_no_engine_at_work():
    assert not isinstance(object(), Steps)
    assert not isinstance(made().decoder, Engine)
