"""Examples that share a row cost, and teach, what they do in rows of their own."""

import pytest
import torch
from torch.testing import assert_close

import regard
from regard.data.batch import Batch, shifted
from regard.data.packing import Packed
from regard.data.table import Record
from regard.data.text.codec import Example
from regard.losses.teacher_forcing import teacher_forcing_loss
from regard.models.packing import check_model

from .small import made

TRANSFORMER = {"encoder": "transformer", "decoder": "transformer", "layers": 2, "attention": "transformer"}
MODELS = {
    "sinusoidal, pre": {},
    "sinusoidal, post": {"norm": "post"},
    "learned, pre": {"positions": "learned"},
    "learned, post": {"positions": "learned", "norm": "post"},
    "learned, beside": {"positions": "learned", "join": "concat"},
    "rms": {"norm": "rms"},
    "rotary": {"positions": "none", "self_attention": "rotary"},
    "t5": {"positions": "none", "self_attention": "t5"},
    "t5 shared": {"positions": "none", "self_attention": "t5", "shared_bias": True, "norm": "rms"},
    "alibi and a window": {"positions": "none", "self_attention": "alibi+local"},
    "relative": {"positions": "none", "self_attention": "relative"},
    "shaw": {"positions": "none", "self_attention": "shaw"},
    "transformer_xl": {"positions": "none", "self_attention": "transformer_xl"},
    "dilated": {"self_attention": "dilated"},
    "structured": {"self_attention": "structured"},
    "sparsemax": {"self_attention": "sparsemax"},
    "additive": {"attention": "additive"},
    "bilinear, entmax": {"attention": "bilinear+entmax"},
    "luong": {"attention": "luong"},
    "channelwise": {"attention": "channelwise"},
    "pointer": {"attention": "pointer"},
    "marginal": {"attention": "additive+marginal"},
}


def examples(count: int = 9) -> list[Example]:
    draw = torch.Generator().manual_seed(3)

    def side(longest: int, vocabulary: int) -> list[int]:
        length = int(torch.randint(1, longest, (), generator=draw))
        return [*torch.randint(4, vocabulary, (length,), generator=draw).tolist(), 2]

    return [Example(side(8, 11), side(7, 13), Record("", "", f"x:{number}")) for number in range(count)]


@pytest.fixture(autouse=True)
def _double():
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def batch() -> Batch:
    """Nine examples in rows of 16 places, and an empty row."""
    found = Packed(examples(), 16, 16 * 8).batch(0)
    assert not found.source.keep.any(1).all()
    assert found.source.documents.max() > 1
    return found


def gradients(model: torch.nn.Module, batch: Batch) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
    model.zero_grad()
    loss = teacher_forcing_loss(model, batch, smoothing=0.1)
    loss.total.backward()
    return loss.total.detach(), {name: each.grad.clone() for name, each in model.named_parameters()}


@pytest.mark.parametrize("options", MODELS.values(), ids=MODELS)
def test_packed_rows_cost_and_teach_what_rows_of_one_example_do(options):
    torch.manual_seed(0)
    model = made(**{**TRANSFORMER, **options})
    check_model(model)
    packed = batch()
    alone = packed.unpack()
    assert alone.source.documents is None
    assert alone.rows == 9
    total, slopes = gradients(model, packed)
    wanted, others = gradients(model, alone)
    close = 1e-9 if model.decoder.outcome is None else 1e-5  # logits of the whole vocabulary are judged in single precision
    assert_close(total, wanted, atol=close, rtol=close)
    assert slopes.keys() == others.keys()
    for name, slope in slopes.items():
        assert_close(slope, others[name], atol=close, rtol=close, msg=lambda told, name=name: f"{name}: {told}")


def test_what_another_example_of_the_row_says_changes_nothing():
    torch.manual_seed(0)
    model, packed = made(**TRANSFORMER), batch()
    others = [packed.source.documents != 1, packed.target.documents != 1]
    poisoned = [
        side._replace(data=torch.where(other & side.keep, 4, side.data))
        for side, other in zip((packed.source, packed.target), others, strict=True)
    ]
    assert not torch.equal(poisoned[0].data, packed.source.data)
    first, second = (
        model(source, shifted(target.data, target.documents), documents=target.documents).output
        for source, target in ((packed.source, packed.target), poisoned)
    )
    assert_close(first[~others[1]], second[~others[1]], atol=0, rtol=0)
    assert not torch.allclose(first[others[1] & packed.target.keep], second[others[1] & packed.target.keep])


def test_weights_and_statistics_are_those_of_the_example_alone():
    torch.manual_seed(0)
    model, packed = made(**TRANSFORMER), batch()
    fed = shifted(packed.target.data, packed.target.documents)
    step = model(packed.source, fed, documents=packed.target.documents, weights=True, statistics=("entropy",))
    weights = step.attended["decoder.1.cross"].weights
    other = packed.target.documents[:, None, :, None] != packed.source.documents[:, None, None]
    assert weights.masked_select(other).eq(0).all()
    alone = packed.unpack()
    single = model(alone.source, shifted(alone.target.data), weights=True, statistics=("entropy",))
    found = step.attended["decoder.1.cross"].statistics["entropy"].movedim(1, -1)[packed.target.keep]
    wanted = single.attended["decoder.1.cross"].statistics["entropy"].movedim(1, -1)[alone.target.keep]
    assert_close(found, wanted)


def test_an_empty_row_costs_nothing_and_is_never_nan():
    model, packed = made(**TRANSFORMER), batch()
    empty = packed.select_rows([int(packed.source.keep.any(1).logical_not().nonzero()[0])])
    total, slopes = gradients(model, empty)
    assert total == 0
    assert all(each.eq(0).all() for each in slopes.values())


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"encoder": "recurrent"}, "a recurrent encoder reads one example a row, got packed rows"),
        ({"encoder": "convolution"}, "a convolution encoder reads one example a row, got packed rows"),
        ({"decoder": "recurrent"}, "packed rows need a transformer decoder that is fed the target alone, got a recurrent"),
        ({"decoder": "convolution"}, "fed the target alone, got a convolution decoder; give each example a row"),
        ({"attention": "coverage"}, "Coverage cannot read a packed source: it carries a state from query to query"),
        ({"attention": "local_p"}, "LocalP cannot read a packed source: it has a window at a place of the row"),
        ({"attention": "scaled_dot+causal"}, "Attention cannot read a packed source: it goes by the positions of source"),
    ],
    ids=str,
)
def test_what_would_read_on_into_the_next_example_is_refused(options, told):
    with pytest.raises(ValueError, match=told):
        teacher_forcing_loss(made(**{**TRANSFORMER, **options}), batch())


def test_a_packed_source_is_not_asked_by_targets_of_nobody_knows_which_example():
    model, packed = made(**TRANSFORMER), batch()
    with pytest.raises(ValueError, match="got those of the memory and none of the queries"):
        model(packed.source, shifted(packed.target.data))


def test_a_decoder_that_is_fed_its_own_output_writes_one_example_a_row():
    model, packed = made(**TRANSFORMER), batch()
    with pytest.raises(ValueError, match=r"fed the target alone, got own=0\.5"):
        model(packed.source, shifted(packed.target.data), documents=packed.target.documents, own=0.5)


def test_a_recorder_may_listen():
    torch.manual_seed(0)
    model, packed = made(**TRANSFORMER).eval(), batch()
    fed, options = shifted(packed.target.data, packed.target.documents), {"documents": packed.target.documents}
    with torch.no_grad():
        wanted = model(packed.source, fed, **options).output
        with regard.record(model):
            found = model(packed.source, fed, **options).output
    assert_close(found, wanted)
