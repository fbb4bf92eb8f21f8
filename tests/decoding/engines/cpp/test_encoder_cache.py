import pytest
import torch

from regard.data.batch import pad
from regard.decoding.engines.cpp import encoder_cache as file
from regard.decoding.engines.cpp.encoder_cache import find_encoding
from regard.decoding.engines.eager.beam import beam
from regard.decoding.engines.eager.encoder import encode
from regard.decoding.engines.select import select_engine as engine
from regard.models.seq2seq import Seq2Seq
from regard.tree import leaves

from ....models.small import KINDS, made
from ..eager.test_encoder import FULL, built
from ..eager.walked import SOURCE
from .test_transformer import OPTIONS

MODELS = {
    **OPTIONS,
    "recurrent": {"encoder": "recurrent"},
    "recurrent, one way": {"encoder": "recurrent", "bidirectional": False},
}


def alike(found, right):
    for mine, theirs in zip(leaves(found, torch.Tensor), leaves(right, torch.Tensor), strict=True):
        torch.testing.assert_close(mine, theirs, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("source", [SOURCE, FULL], ids=["padded", "full"])
@torch.no_grad()
def test_sources_are_remembered_as_the_model_does(kind, source):
    model = built(**MODELS[kind])
    assert find_encoding(model) is not None
    alike(encode(model, source, compiled=True), model.encode(source))


@pytest.mark.parametrize("encoder", ["transformer", "recurrent"])
@torch.no_grad()
def test_another_decoder_remembers_by_itself_what_was_read(encoder):
    torch.manual_seed(5)
    model = made("additive", layers=2, **KINDS[f"{encoder}, recurrent, lstm, luong"]).eval()
    assert find_encoding(model).remember is None
    alike(encode(model, SOURCE, compiled=True), model.encode(SOURCE))


@torch.no_grad()
def test_it_is_kept_until_a_weight_changes_and_the_search_goes_with_it():
    model = built()

    def found():
        memory = encode(model, SOURCE, compiled=True)
        return beam(engine(model.decoder, memory, compiled=True), memory, beams=3, length=8)

    found()
    first, before = find_encoding(model), found()
    assert find_encoding(model) is first
    model.decoder.layers[0].cross.key.weight += 1.0
    model.decoder.output.bias[5] += 9.0
    assert find_encoding(model) is not first
    after = found()
    assert after == found()
    assert after != before
    assert {5} < set(after[0][0].tokens) or set(after[0][0].tokens) == {5}


@torch.no_grad()
def test_who_is_listened_to_or_has_an_empty_source_encodes_itself():
    model, heard = built(), []
    encode(model, SOURCE, compiled=True)
    hook = model.encoder.norm.register_forward_hook(lambda *_: heard.append(1))
    encode(model, SOURCE, compiled=True)
    hook.remove()
    encode(model, SOURCE, compiled=True)
    assert heard == [1]
    empty = pad([[4, 2], []])
    alike(encode(model, empty, compiled=True), model.encode(empty))


@torch.no_grad()
def test_where_nothing_can_be_compiled_the_usual_engine_encodes(monkeypatch):
    monkeypatch.setattr(file, "is_usable", lambda precision: False)
    model = built()
    assert find_encoding(model) is None
    alike(encode(model, SOURCE, compiled=True), encode(model, SOURCE))


@torch.no_grad()
def test_an_encoder_that_is_not_covered_encodes_itself():
    model = Seq2Seq(made("bilinear", encoder="convolution").encoder, built().decoder).eval()
    assert find_encoding(model) is None
    alike(encode(model, SOURCE, compiled=True), model.encode(SOURCE))
