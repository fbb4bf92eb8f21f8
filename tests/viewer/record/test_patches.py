import numpy as np
import pytest
import torch

import regard
from regard.attention import MultiHead
from regard.data.batch import pad
from regard.decoding import beam

from ...models.small import NO_DROPOUT as NONE
from ...models.small import batch, made


def test_dropout_falls_as_without_a_recorder():
    model, (source, target) = (
        made("transformer", dropout=NONE, encoder="transformer", decoder="transformer").train(),
        batch(),
    )
    for module in model.attentions().values():
        module.dropout = 0.5
    torch.manual_seed(3)
    plain = model(source, target).output
    torch.manual_seed(3)
    with regard.record(model) as rec:
        recorded = model(source, target).output
    assert torch.equal(plain, recorded)
    np.testing.assert_allclose(rec.trace().attention().weights.sum(-1, dtype=np.float32), 1.0, atol=2e-3)  # before dropout


def test_hypotheses_of_a_search_are_refused_for_they_cannot_be_told_apart():
    model = made().eval()
    with torch.no_grad(), regard.record(model) as rec:
        beam(model.decoder, model.encode(pad([[4, 5, 2]])), beams=3, length=4)
    with pytest.raises(ValueError, match=r"only the search knows; SequencePredictor.trace\(texts, beam=4\) follows them"):
        rec.trace()


def test_what_looks_at_itself_is_known_by_the_tensor_that_asks():
    heads, data = MultiHead(8, heads=2), torch.randn(1, 4, 8)
    with regard.record(heads) as rec:
        heads(data, heads.remember(data))
    assert rec.itself == {"attention": True}
    with regard.record(heads) as rec:
        heads(data, heads.remember(data.clone()))  # as long, and gone when the question comes
    assert rec.itself == {"attention": False}
    with regard.record(heads) as rec:
        memory = heads.remember(data)
        heads(torch.randn(1, 4, 8), memory)
    assert rec.itself == {"attention": False}


def test_a_caller_gets_the_weights_and_statistics_that_it_asked_for_and_no_others():
    heads, data = MultiHead(8, heads=2), torch.randn(1, 4, 8)
    for settings in ({}, {"statistics": True}):
        with regard.record(heads, **settings):
            attended = heads(data, heads.remember(data), weights=True, statistics=("max", "argmax"))
        plain = heads(data, heads.remember(data), weights=True, statistics=("max", "argmax"))
        assert torch.equal(attended.weights, plain.weights)
        assert set(attended.statistics) == {"max", "argmax"}
