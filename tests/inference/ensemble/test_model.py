import pytest
import torch
from torch.testing import assert_close

from regard.data.batch import pad
from regard.decoding.beam import beam
from regard.decoding.greedy import greedy
from regard.decoding.score import rate
from regard.inference.ensemble.model import Ensemble, shares
from regard.models.types import Decoder
from regard.tree import repeat, select

from ...models.small import batch, made

TRANSFORMER = {"encoder": "transformer", "decoder": "transformer", "attention": "transformer"}
CONVOLUTION = {"encoder": "convolution", "decoder": "convolution", "layers": 2}
MEMBERS = {
    "alike": ({}, {}),
    "mixed": ({}, TRANSFORMER, CONVOLUTION),
    "transformers": (TRANSFORMER, TRANSFORMER),
    "none": ({"attention": "none"}, {}),
}
every = pytest.mark.parametrize("average", ["probabilities", "logits", "memories"])
any_kind = pytest.mark.parametrize("average", ["probabilities", "logits"])
kinds = pytest.mark.parametrize("kind", MEMBERS)


def members(kind="alike"):
    return [sharp(made(**options)) for options in MEMBERS[kind]]


def sharp(model):
    """A model that is surer of itself than one that has learned nothing."""
    with torch.no_grad():
        model.decoder.output.bias.copy_(2 * torch.randn(13))
        model.decoder.embedding.table.weight.mul_(3)
    return model.eval()


@any_kind
@kinds
def test_it_is_what_the_formula_says(kind, average):
    models, (source, target) = members(kind), batch()
    weights = [0.5, 0.3, 0.2][: len(models)]
    made_of = [model(source, target).output.double().softmax(-1) for model in models]
    weights = [each / sum(weights) for each in weights]
    if average == "probabilities":
        expected = sum(weight * each for weight, each in zip(weights, made_of, strict=True))
    else:
        product = torch.stack([each**weight for weight, each in zip(weights, made_of, strict=True)]).prod(0)
        expected = product / product.sum(-1, keepdim=True)
    found = Ensemble(models, weights, average)(source, target).output
    assert_close(found.exp().double(), expected, atol=1e-6, rtol=1e-5)


def test_mean_memories_are_read_by_the_first_decoder():
    models, (source, target) = members(), batch()
    found = Ensemble(models, [0.25, 0.75], "memories")
    one, two = (model.encoder(source) for model in models)
    final = tuple(0.25 * a + 0.75 * b for a, b in zip(one.final, two.final, strict=True))
    mean = one._replace(data=0.25 * one.data + 0.75 * two.data, final=final)
    expected = models[0].decoder(target, models[0].decoder.remember(mean)).output.log_softmax(-1)
    assert_close(found(source, target).output, expected)


@every
def test_equal_members_answer_as_one_of_them_does(average):
    [model, _], (source, target) = members(), batch()
    found = Ensemble([model, model, model], [3.0, 2.0, 1.0], average).eval()
    assert_close(found(source, target).output, model(source, target).output.log_softmax(-1))
    alone, together = model.encode(source), found.encode(source)
    for one, many in zip(
        beam(model.decoder, alone, beams=4, length=8), beam(found.decoder, together, beams=4, length=8), strict=True
    ):
        assert one[0].tokens == many[0].tokens
        assert one[0].score == pytest.approx(many[0].score, abs=1e-5)


@every
@kinds
def test_step_by_step_is_the_same_as_all_at_once_with_one_memory_for_all_beams(kind, average):
    if average == "memories" and kind in ("mixed", "none"):
        kind = "transformers"
    model, (source, target) = Ensemble(members(kind), average=average).eval(), batch()
    memory = model.encode(source)
    state, found = repeat(model.decoder.start(memory), 2), []
    for token in repeat(target, 2).unbind(1):
        step = model.decoder.step(token, memory, state)
        state = step.state
        found.append(step.output)
    assert_close(torch.stack(found, dim=1), model.decoder(target, memory).output.repeat_interleave(2, dim=0))
    assert_close(model(source, target).output.exp().sum(-1), torch.ones(3, 3))


@every
def test_a_score_of_search_is_what_rate_gives(average):
    model, (source, _) = Ensemble(members("transformers"), [2.0, 1.0], average).eval(), batch()
    memory = model.encode(source)
    found = [each for [each] in beam(model.decoder, memory, beams=4, length=10)]
    rated = rate(model.decoder, memory, pad([each.tokens for each in found]))
    assert rated.scores.tolist() == pytest.approx([each.score for each in found], abs=1e-5)
    assert [each.tokens for [each] in beam(model.decoder, memory, beams=1, length=10)] == [
        each.tokens for each in greedy(model.decoder, memory, length=10)
    ]


@pytest.mark.parametrize("average", ["logits", "memories"])
def test_a_sentence_in_a_batch_is_answered_as_it_is_alone(average):
    model, (source, _) = Ensemble(members(), average=average).eval(), batch()
    together = beam(model.decoder, model.encode(source), beams=3, length=8, weights=True)
    for row, tokens in enumerate([[4, 5, 6, 2], [7, 2], [8, 9, 2]]):
        [[alone]] = beam(model.decoder, model.encode(pad([tokens])), beams=3, length=8, weights=True)
        assert alone.tokens == together[row][0].tokens
        assert alone.score == pytest.approx(together[row][0].score, abs=1e-5)
        for name, weights in alone.weights.items():
            assert_close(weights, together[row][0].weights[name])


def test_each_member_says_where_it_looked_and_the_mean_comes_last():
    models, (source, target) = members(), batch()
    found = Ensemble(models, [3.0, 1.0])(source, target, weights=True, statistics=("entropy",)).attended
    assert list(found) == ["0.decoder.cross", "1.decoder.cross", "decoder.cross"]
    one, two = (model(source, target, weights=True).attended["decoder.cross"].weights for model in models)
    assert_close(found["decoder.cross"].weights, 0.75 * one + 0.25 * two)
    assert_close(found["1.decoder.cross"].weights, two)
    assert found["0.decoder.cross"].statistics["entropy"].shape == (3, 1, 3)
    quiet = Ensemble(models)(source, target).attended
    assert list(quiet) == ["0.decoder.cross", "1.decoder.cross"]
    assert quiet["0.decoder.cross"].weights is None


def test_members_of_other_kinds_have_no_mean():
    models, (source, target) = members("mixed"), batch()
    found = Ensemble(models)(source, target, weights=True).attended
    assert all(name[0] in "012" for name in found)
    heads = made(**TRANSFORMER | {"attention": "transformer"}), made(**TRANSFORMER | {"attention": "additive"})
    assert "decoder.0.self" in Ensemble(heads)(source, target, weights=True).attended
    assert "decoder.0.cross" not in Ensemble(heads)(source, target, weights=True).attended


def test_coverage_is_that_of_the_mean():
    model, (source, _) = Ensemble(members()).eval(), batch()
    memory = model.encode(source)
    plain = beam(model.decoder, memory, beams=3, length=2)
    covered = beam(model.decoder, memory, beams=3, length=2, coverage_penalty=0.5)
    named = beam(model.decoder, memory, beams=3, length=2, coverage_penalty=0.5, attention="decoder.cross")
    assert [each.normalised for [each] in covered] == [each.normalised for [each] in named]
    assert [each.normalised for [each] in covered] != [each.normalised for [each] in plain]


def test_attentions_and_parameters_are_those_of_the_members_each_once():
    models = members()
    model = Ensemble(models)
    assert list(model.attentions()) == ["0.decoder.cross", "1.decoder.cross"]
    assert sum(1 for _ in model.parameters()) == sum(1 for each in models for _ in each.parameters())
    assert model.members == models
    assert isinstance(model.decoder, Decoder)


def test_rows_of_a_memory_and_a_state_are_chosen_in_every_member():
    model, (source, target) = Ensemble(members("mixed")).eval(), batch()
    memory, rows = model.encode(source), torch.tensor([2, 0])
    state = model.decoder.step(target[:, 0], memory, model.decoder.start(memory)).state
    expected = model.decoder.step(target[:, 1], memory, state).output
    found = model.decoder.step(target[rows, 1], select(memory, rows), select(state, rows)).output
    assert_close(found, expected[rows])


def test_weights_are_shares():
    assert shares(3, None) == (1 / 3, 1 / 3, 1 / 3)
    assert shares(2, [3.0, 1.0]) == (0.75, 0.25)
    with pytest.raises(ValueError, match="an ensemble needs two members or more, got 1; one is used as it is"):
        shares(1, None)
    with pytest.raises(ValueError, match="an ensemble of 2 members needs as many weights, got 3"):
        shares(2, [1.0, 1.0, 1.0])
    for wrong in ([0.0, 0.0], [-1.0, 2.0], [float("nan"), 1.0], [float("inf"), 1.0]):
        with pytest.raises(ValueError, match="weights need to be 0 or more and finite, and one of them above 0"):
            shares(2, wrong)


def test_an_average_has_a_name():
    with pytest.raises(ValueError, match="average needs to be one of probabilities, logits, memories, got 'mean'"):
        Ensemble(members(), average="mean")


def test_memories_of_different_architectures_are_refused():
    text = r"average=memories needs members of one architecture: .* in member 0 and .* in member 1; probabilities and logits"
    with pytest.raises(ValueError, match=text):
        Ensemble(members("mixed"), average="memories")
    with pytest.raises(ValueError, match=r"decoder\.output\.weight is missing in member 0 and \(13, 8\) in member 1"):
        Ensemble([made(), made(tie_embeddings=False)], average="memories")
