import pytest
import torch
from torch.testing import assert_close

from regard import registry
from regard.config import AttentionPart, Model, OutputPart
from regard.data.batch import Batch, pad
from regard.losses.cross_entropy import is_fusable
from regard.losses.teacher_forcing import teacher_forcing_loss
from regard.models.output_heads import build_weight, make_output_factory
from regard.models.output_heads.attention import Attention
from regard.models.output_heads.projection import Projection
from regard.tasks import TextConfig
from regard.tasks._validate import buildable, heeded
from regard.training.state_dict import named_tensors, restore, weights

from ..small import KINDS, made

OPTIONS = {
    "projection": OutputPart(),
    "attention": OutputPart("attention"),
    "attention, cosine": OutputPart("attention", score="cosine", scale=8.0),
    "attention, bilinear": OutputPart("attention", score="bilinear"),
    "attention, additive": OutputPart("attention", score="additive"),
    "mixture": OutputPart("mixture", heads=3),
}
DECODERS = {
    "recurrent": {},
    "recurrent, bahdanau, narrow": {"order": "bahdanau", "embedding_size": 6},
    "convolution": {"decoder": "convolution", "layers": 2, "embedding_size": 6},
    "transformer": {"encoder": "transformer", "decoder": "transformer"},
}
every = pytest.mark.parametrize("part", OPTIONS.values(), ids=OPTIONS)
CASES = {
    **{name: (part, {}, True) for name, part in OPTIONS.items()},
    **{
        f"{name}, {decoder}, {'tied' if tie else 'loose'}": (OPTIONS[name], options, tie)
        for name in ("projection", "attention", "mixture")
        for (decoder, options), tie in zip(DECODERS.items(), (False, True, True, False), strict=True)
    },
}
everywhere = pytest.mark.parametrize(("part", "options", "tie"), CASES.values(), ids=CASES)
SOURCE, TARGET = pad([[4, 5, 6, 2], [7, 2], [8, 9, 2]]), pad([[4, 5, 2], [8, 2], [2]])
INPUT, BATCH = torch.tensor([[1, 4, 5], [1, 8, 2], [1, 2, 0]]), Batch(SOURCE, TARGET)


def test_a_layer_is_made_by_its_name_and_told_what_it_has_a_place_for():
    assert isinstance(make_output_factory("projection")(8, 5, 6, True), Projection)
    assert isinstance(make_output_factory("attention", score="cosine")(8, 5, 6, True), Attention)
    assert make_output_factory("mixture", heads=3)(8, 5, 6, True).heads == 3
    with pytest.raises(LookupError, match="no output layer is called 'projektion'; did you mean 'projection'"):
        make_output_factory("projektion")(8, 5, 6, True)


def test_a_tied_layer_has_no_matrix_of_its_own():
    assert build_weight(5, 3, tie=True) is None
    assert build_weight(5, 3, tie=False).shape == (5, 3)


def test_every_layer_is_under_these_contracts():
    assert {each.name for each in OPTIONS.values()} == set(registry.names("output_heads"))


@everywhere
def test_step_by_step_is_the_same_as_all_at_once_and_sums_to_one(part, options, tie):
    model = made(output=part, tie_embeddings=tie, **options).eval()
    memory = model.encode(SOURCE)
    whole = model.decoder(INPUT, memory).output
    state, found = model.decoder.start(memory), []
    for token in INPUT.unbind(1):
        step = model.decoder.step(token, memory, state)
        state = step.state
        found.append(step.output)
    assert_close(torch.stack(found, dim=1), whole)
    assert_close(whole.softmax(-1).sum(-1), torch.ones(3, 3))
    assert whole.shape == (3, 3, 13)


@everywhere
def test_a_gradient_reaches_every_parameter(part, options, tie):
    model = made(output=part, tie_embeddings=tie, **options)
    teacher_forcing_loss(model, BATCH).total.backward()
    left = [name for name, each in model.named_parameters() if each.grad is None or not each.grad.abs().sum() > 0]
    assert not left


@every
@pytest.mark.parametrize("attention", ["pointer", "additive+marginal", "additive+hard"])
def test_copying_and_the_exact_marginal_work_with_every_layer(part, attention):
    model = made(attention, output=part, joint=True, source=13).eval()
    logits = model(SOURCE, INPUT).output
    assert_close(logits.softmax(-1).sum(-1), torch.ones(3, 3))
    model.train()(SOURCE, INPUT).output.log_softmax(-1)[..., 4].sum().backward()
    assert all(each.grad.isfinite().all() for each in model.decoder.output.parameters())


@every
def test_what_is_saved_is_what_is_loaded(part):
    model = made(output=part).eval()
    other = made(output=part).eval()
    assert any(not torch.equal(each, named_tensors(other)[name]) for name, each in named_tensors(model).items())
    restore(other, weights(model))
    assert torch.equal(other(SOURCE, INPUT).output, model(SOURCE, INPUT).output)


@pytest.mark.parametrize(("name", "steps"), [("attention, cosine", 20), ("mixture", 60)])
def test_it_learns_a_few_sentences_by_heart(name, steps):
    model = made(output=OPTIONS[name], hidden_size=16)
    optimiser = torch.optim.Adam(model.parameters(), lr=0.05)
    losses = []
    for _ in range(steps):
        optimiser.zero_grad()
        loss = teacher_forcing_loss(model, BATCH).total
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    assert losses[-1] < 0.4 * losses[0]  # to know how frequent each word is brings it to 0.49


@every
def test_only_a_projection_is_left_to_the_loss(part):
    model = made(output=part)
    assert is_fusable(model) == (part.name == "projection")
    if part.name != "projection":
        with pytest.raises(ValueError, match="project=False needs an output that is nothing but a projection"):
            model(SOURCE, INPUT, project=False)


@pytest.mark.parametrize("kind", ["recurrent, recurrent, lstm, luong", "transformer, transformer, post"])
def test_the_layer_that_nobody_names_is_the_projection(kind):
    assert isinstance(made(**KINDS[kind]).decoder.output, Projection)


def test_options_of_another_layer_and_names_of_none_are_refused():
    default = TextConfig()

    def config(**options):
        return TextConfig(model=Model(attention=AttentionPart(), output=OutputPart(**options)))

    heeded([config(name="attention", score="cosine", scale=8.0), config(name="mixture", heads=2)], default)
    for options, needed in (
        ({"score": "cosine"}, r"model.output.score=cosine would change nothing: it needs model.output=attention"),
        ({"name": "mixture", "scale": 2.0}, r"model.output.scale=2.0 would change nothing: it needs model.output=attention"),
        ({"name": "attention", "heads": 2}, r"model.output.heads=2 would change nothing: it needs model.output=mixture"),
    ):
        with pytest.raises(ValueError, match=needed):
            heeded([config(**options)], default)
    buildable(config(name="mixture"))
    with pytest.raises(ValueError, match="no output layer is called 'mixtur'; did you mean 'mixture'"):
        buildable(config(name="mixtur"))
    with pytest.raises(ValueError, match=r"model.output.score=rotary looks at positions"):
        buildable(config(name="attention", score="rotary"))
