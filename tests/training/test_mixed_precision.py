from contextlib import nullcontext

import torch
from torch import nn

from regard.attention.multihead import MultiHead
from regard.config import AttentionPart, Dropout, Model
from regard.data.batch import Batch, Padded, shifted
from regard.models.layers.residual import Residual
from regard.models.seq2seq import build
from regard.training.mixed_precision import CastTogether, CastWeights, CopyTarget, can_pack, list_attention_targets

MODEL = Model(
    encoder="transformer",
    decoder="transformer",
    attention=AttentionPart("transformer", heads=2),
    hidden_size=16,
    heads=2,
    layers=2,
)
PADDED = Padded(torch.arange(12).view(2, 6) % 7 + 4, torch.arange(6) < torch.tensor([[6], [4]]))
BATCH = Batch(PADDED, PADDED)


def model(**changed):
    made = build(MODEL if not changed else Model(**{**vars(MODEL), **changed}), Dropout(0.0, 0.0), 12, 12, True)
    for each in made.parameters():
        if each.ndim == 1:
            nn.init.normal_(each, 1.0, 0.2)
    return made.train()


def learned(made, halved):
    """What a model says under autocast, and the gradient of every parameter."""
    with torch.autocast("cpu", torch.bfloat16), halved:
        said = made(BATCH.source, shifted(BATCH.target.data)).output
    return [said.detach(), *torch.autograd.grad(said.float().square().sum(), list(made.parameters()))]


def test_a_model_says_and_learns_what_it_does_by_autocast():
    made = model()
    exact = learned(made.double(), torch.autocast("cpu", enabled=False))
    made.float()
    plain, found = learned(made, nullcontext()), learned(made, CastWeights(made))
    for place, (mine, theirs, right) in enumerate(zip(found, plain, exact, strict=True)):
        error, usual = ((each.double() - right).abs().max() for each in (mine, theirs))
        assert error <= 3 * usual + 0.01 * right.abs().max(), place


def test_matrices_that_read_the_same_data_are_one_and_the_others_their_own():
    made = model()
    halved, names = CastWeights(made), {module: name for name, module in made.named_modules()}
    first = [
        (names[to], [names[each] for each in parts]) for to, parts, _ in halved.lent if names[to].startswith("decoder.0")
    ]
    own, cross = "decoder.0.self", "decoder.0.cross"
    assert first == [
        (own, [f"{own}.query", f"{own}.key", f"{own}.value"]),
        (f"{own}.output", [f"{own}.output"]),
        (cross, [f"{cross}.key", f"{cross}.value"]),
        (f"{cross}.query", [f"{cross}.query"]),
        (f"{cross}.output", [f"{cross}.output"]),
        ("decoder.0.feedforward.0", ["decoder.0.feedforward.0"]),
        ("decoder.0.feedforward.2", ["decoder.0.feedforward.2"]),
    ]


def test_copies_are_lent_while_it_is_entered_and_only_under_autocast():
    made = model()
    halved, layer = CastWeights(made), made.encoder.get_submodule("0")
    with torch.autocast("cpu", torch.bfloat16), halved:
        assert layer.self.packed.weight.shape == (48, 16)
        assert layer.self.packed.bias.dtype == layer.feedforward[0].weight.dtype == torch.bfloat16
        assert list(made.state_dict()) == list(model().state_dict())
    assert layer.self.packed is None
    assert layer.feedforward[0].weight.dtype == torch.float32
    with halved:
        assert layer.self.packed is None


def test_a_model_without_biases_has_none_to_lend():
    made = model(bias=False)
    with torch.autocast("cpu", torch.bfloat16), CastWeights(made):
        layer = made.encoder.get_submodule("0")
        assert layer.self.packed.bias is None
        assert layer.feedforward[0].bias is None
        assert made(BATCH.source, BATCH.target.data).output.isfinite().all()


def test_projections_that_differ_stay_apart():
    grouped = MultiHead(8, heads=4, key_heads=2)
    assert can_pack((grouped.key, grouped.value))
    assert not can_pack((grouped.query, grouped.key))
    assert not can_pack((grouped.query, nn.Identity()))
    around, apart = Residual(8), [CopyTarget(each, (each,)) for each in (grouped.query, grouped.key, grouped.value)]
    assert list(list_attention_targets(grouped, around)) == [*apart, CopyTarget(grouped.output, (grouped.output,), around)]
    assert list(list_attention_targets(grouped)) == [
        CopyTarget(grouped, (grouped.key, grouped.value)),
        apart[0],
        CopyTarget(grouped.output, (grouped.output,)),
    ]


def test_a_bias_whose_sum_nobody_sees_is_added_on_the_way_around():
    made = model()
    halved, layer = CastWeights(made), made.decoder.layers[1]
    with torch.autocast("cpu", torch.bfloat16), halved:
        assert layer.around_self.added is layer.self.output._parameters["bias"]
        assert layer.around_feedforward.added is layer.feedforward[2]._parameters["bias"]
        assert layer.self.output.bias is layer.feedforward[2].bias is None
        assert layer.cross.output.bias.dtype == torch.bfloat16
        assert layer.around_cross.added is None
    assert layer.around_self.added is None
    assert layer.self.output.bias is not None


def test_a_model_that_is_no_transformer_has_nothing_to_lend():
    with torch.autocast("cpu", torch.bfloat16), CastWeights(nn.Linear(2, 2)) as nothing:
        assert nothing is None


def test_copies_are_joined_and_their_gradients_come_back_to_each():
    one, other, alone = (torch.tensor(each, requires_grad=True) for each in ([[1.0, 2.0]], [[3.0, 4.0]], [5.0]))
    joined, single = CastTogether.apply(torch.bfloat16, [2, 1], one, other, alone)
    assert joined.tolist() == [[1, 2], [3, 4]]
    assert (single.tolist(), single.dtype) == ([5], torch.bfloat16)
    flow = torch.tensor([[0.5, 1.0], [1.5, 2.0]], dtype=torch.bfloat16)
    found = torch.autograd.grad(joined, (one, other, alone), flow, allow_unused=True)
    assert [None if each is None else (each.dtype, each.tolist()) for each in found] == [
        (torch.float32, [[0.5, 1.0]]),
        (torch.float32, [[1.5, 2.0]]),
        None,
    ]
