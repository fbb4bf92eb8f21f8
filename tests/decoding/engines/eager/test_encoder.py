import pytest
import torch

from regard.data.batch import pad
from regard.decoding.engines.eager import encoder as file
from regard.decoding.engines.eager.encoder import covers, encode, find_engine
from regard.tree import leaves

from ....models.small import made
from .test_transformer import OPTIONS
from .walked import SOURCE

FULL = pad([[4, 5, 2], [6, 7, 2]])


def built(**options):
    torch.manual_seed(5)
    return made("transformer", **{"encoder": "transformer", "decoder": "transformer", "layers": 2} | options).eval()


@pytest.mark.parametrize("kind", OPTIONS)
@pytest.mark.parametrize("source", [SOURCE, FULL], ids=["padded", "full"])
@torch.no_grad()
def test_sources_are_remembered_as_the_model_does(kind, source):
    model = built(**OPTIONS[kind])
    assert find_engine(model, source) is not None
    found, right = model.encoder(source), find_engine(model, source)(source)
    torch.testing.assert_close(found, right, atol=1e-5, rtol=1e-5)
    for mine, theirs in zip(
        leaves(encode(model, source), torch.Tensor), leaves(model.encode(source), torch.Tensor), strict=True
    ):
        torch.testing.assert_close(mine, theirs, atol=1e-5, rtol=1e-5)


@torch.no_grad()
def test_it_is_kept_until_a_weight_changes():
    model = built()
    first = find_engine(model, SOURCE)
    assert find_engine(model, SOURCE) is first
    model.encoder.embedding.table.weight += 1.0
    second = find_engine(model, SOURCE)
    assert second is not first
    torch.testing.assert_close(second(SOURCE).data, model.encoder(SOURCE).data, atol=1e-5, rtol=1e-5)


def test_who_learns_or_is_listened_to_or_has_an_empty_source_encodes_itself():
    model, heard = built(), []
    assert find_engine(model, SOURCE) is None
    with torch.no_grad():
        assert find_engine(model, SOURCE) is not None
        assert find_engine(model.train(), SOURCE) is None
        model.eval()
        assert find_engine(model, pad([[4, 2], []])) is None
        assert find_engine(model, pad([])) is None
        hook = model.encoder.norm.register_forward_hook(lambda *_: heard.append(1))
        encode(model, SOURCE)
        hook.remove()
        encode(model, SOURCE)
    assert heard == [1]


def test_it_goes_with_its_model():
    model = built()
    with torch.no_grad():
        find_engine(model, SOURCE)
    before = len(file.ENGINES)
    del model
    assert len(file.ENGINES) == before - 1


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"encoder": "recurrent", "decoder": "recurrent"}, "needs the Transformer encoder, got Recurrent"),
        ({"self_attention": "t5", "positions": "none"}, "needs self-attention by scaled_dot and softmax, got T5"),
        ({"gated": True}, "needs feed-forward networks without gates"),
    ],
)
@torch.no_grad()
def test_any_other_encoder_reads_by_itself(options, reason):
    model = built(**options)
    assert covers(model.encoder).startswith(reason)
    for mine, theirs in zip(
        leaves(encode(model, SOURCE), torch.Tensor), leaves(model.encode(SOURCE), torch.Tensor), strict=True
    ):
        assert torch.equal(mine, theirs)


def test_other_numbers_and_other_heads_are_refused_with_the_reason():
    assert covers(built().double().encoder) == "needs weights in float32, got torch.float64"
    model = built()
    model.encoder.get_submodule("0").self.how = "mean"
    assert covers(model.encoder).startswith("needs as many heads of keys as of queries, joined by concat")


@torch.no_grad()
def test_where_numbers_are_double_by_default_the_encoder_reads_by_itself():
    model = built()
    torch.set_default_dtype(torch.float64)
    try:
        assert find_engine(model, SOURCE) is None
    finally:
        torch.set_default_dtype(torch.float32)
    assert find_engine(model, SOURCE) is not None
