"""What is written out by hand comes to what the stage gave, and gets there by itself."""

import math

import pytest
import torch

from regard import registry
from regard.attention import Entmax, Softmax, Structured
from regard.attention.mechanisms.monotonic import MonotonicNormaliser
from regard.cli.show.example import Stages, StatefulStages, run_example, stages
from regard.cli.show.worked import products, work_out_score, work_out_weight

WORKED = [(kind, name) for kind in ("score", "normalise", "scope", "mechanisms") for name in registry.names(kind)]


def last(text):
    return torch.tensor(float(text.rpartition("= ")[2]))


def close(printed, computed):
    torch.testing.assert_close(printed, computed.detach(), atol=5.1e-4, rtol=0)


def row(scores, normalise, allowed=None):
    """The stages of one query and one head: scores that are given, and the shares a normaliser makes of them."""
    scores = torch.tensor([[scores]])
    allowed = torch.ones_like(scores, dtype=torch.bool) if allowed is None else torch.tensor([[allowed]])
    weights = normalise(scores[None], allowed[None])[0]
    return Stages(scores, allowed, weights, weights)


@pytest.mark.parametrize(("kind", "name"), WORKED, ids=str)
def test_what_is_worked_out_by_hand_gives_what_the_stage_gave(kind, name):
    example = run_example(name, kind)
    found = stages(example)
    query, key = found.pair
    close(last(work_out_score(example, found)[-1][-1]), found.scores[0, query, key])
    close(last(work_out_weight(example.request.normalise, found)), found.weights[0, query, key])


@pytest.mark.parametrize(
    ("name", "labels"),
    [
        ("additive", ["q", "k", "W q", "U k", "tanh of their sum", "v", "vᵀ tanh"]),
        ("scaled_dot", ["q", "k", "q / √d", "q / √d · k"]),
        ("dot", ["q", "k", "q · k"]),
        ("rotary", ["q", "k", "R_i q / √d", "R_j k", "R_i q / √d · R_j k"]),
        ("relative", ["q", "k", "q / √d", "a_-1", "q / √d · (k + a_-1)"]),
        ("shaw", ["q", "k", "q / √d", "a_-1", "q / √d · (k + a_-1)"]),
        ("t5", ["q", "k", "q · k", "bucket(-2)", "and b[2]"]),
        ("alibi", ["q", "k", "q / √d", "q / √d · k", "less m·2"]),
        ("softcap", ["q", "k", "q / √d", "q / √d · k", "score"]),
    ],
)
def test_each_line_of_a_score_is_labelled_with_what_it_is(name, labels):
    example = run_example(name, "score")
    assert [label for label, _ in work_out_score(example, stages(example))] == labels


def test_a_key_that_was_told_where_attention_looked_says_so():
    example = run_example("coverage", "mechanisms")
    labels = [label for label, _ in work_out_score(example, stages(example))]
    assert labels == ["q", "k", "W q", "U k", "U k + w c + b", "tanh of their sum", "v", "vᵀ tanh"]


def test_a_stage_nobody_wrote_out_by_hand_says_what_the_call_gave():
    class Halves(Softmax):
        pass

    example = run_example("softmax", "normalise")
    assert work_out_weight(Halves(), stages(example)).startswith("Halves gives for 1.340 among")


@pytest.mark.parametrize("alpha", [1.2, 1.5, 2.0, 3.0])
@pytest.mark.parametrize("scores", [[0.3, 0.2, 0.1], [2.0, -1.0, 1.8], [5.0, 0.0, 0.0]], ids=str)
def test_entmax_by_hand_agrees_with_entmax(alpha, scores):
    found = row(scores, Entmax(alpha))
    close(last(work_out_weight(Entmax(alpha), found)), found.weights[0].amax())


def test_entmax_by_hand_finds_its_threshold_from_the_scores_and_not_from_the_shares():
    found = row([1.34, 0.2, 0.635], Entmax())
    wrong = found._replace(weights=torch.tensor([[[0.5, 0.3, 0.2]]]))
    assert work_out_weight(Entmax(), wrong) == work_out_weight(Entmax(), found)
    assert work_out_weight(Entmax(), found) == "τ = -0.165,  (0.5·1.340 + 0.165)^2.0 = 0.697"


def test_entmax_by_hand_leaves_out_what_may_not_be_seen():
    found = row([1.0, 1.0, 9.0], Entmax(2.0), allowed=[True, True, False])
    assert work_out_weight(Entmax(2.0), found) == "τ = 0.500,  (1.0·1.000 - 0.500)^1.0 = 0.500"


def test_a_chain_by_hand_leaves_out_what_may_not_be_seen():
    normalise = Structured().requires_grad_(False)
    normalise.transition.data = torch.tensor([[[0.0, 0.0], [math.log(5), math.log(7)]]])
    found = row([math.log(2), 9.0, math.log(3)], normalise, allowed=[True, False, True])
    assert work_out_weight(normalise, found) == "(10.000 (10) + 42.000 (11)) / 56.000, the sum of all 4 = 0.929"


def test_a_walk_by_hand_says_where_it_begins_and_where_it_stops():
    scores = torch.tensor([[[-1.0, 2.0, 3.0], [9.0, -1.0, -1.0]]])
    weights = MonotonicNormaliser().eval()(scores[None])[0]
    stages = scores, torch.ones_like(scores, dtype=torch.bool), weights, weights
    stopped = "the first score above 0 from key 0 on is 2.000 at key 1, which gets all = 1.000"
    assert work_out_weight(MonotonicNormaliser(), Stages(*stages)) == stopped
    assert (
        work_out_weight(MonotonicNormaliser(), StatefulStages(*stages))
        == "from key 1 on no score is above 0, so nothing is read = 0.000"
    )


def test_a_dot_product_is_written_number_by_number():
    assert products(torch.tensor([1.0, 2.0]), torch.tensor([0.5, -1.0])) == "1.000·0.500 + 2.000·-1.000 = -1.500"
