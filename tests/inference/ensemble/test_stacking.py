import pytest
import torch

import regard
from regard.data.table import Record
from regard.decoding.score import rate
from regard.errors import DataError
from regard.inference.ensemble.stacking import _batches as batches
from regard.inference.ensemble.stacking import log_linear, mixture, moments, stack

RECORDS = [
    Record(source, target, f"dev:{number}")
    for number, (source, target) in enumerate(
        [("Tom chases Jerry", "汤姆追逐杰瑞"), ("Mary likes Tom", "玛丽喜欢汤姆"), ("Tom", "汤姆")] * 2
    )
]
GRID = torch.linspace(0, 1, 1001, dtype=torch.float64)


def test_a_mixture_by_hand():
    """Of four tokens one member is sure of three, the other of one: p = (w, w, w, 1 - w) is likeliest at w = 3/4."""
    logs = torch.tensor([[1.0, 1.0, 1.0, 0.0], [0.0, 0.0, 0.0, 1.0]]).log()
    found = mixture(logs)
    assert found.weights == pytest.approx([0.75, 0.25])
    assert found.equal == pytest.approx(0.6931, abs=1e-4)
    assert found.learned == pytest.approx(0.5623, abs=1e-4)


def test_a_mixture_is_the_best_of_a_grid():
    logs = torch.rand(2, 50, dtype=torch.float64).log()
    costs = [-(logs + torch.stack([w, 1 - w]).log()[:, None]).logsumexp(0).mean() for w in GRID]
    found = mixture(logs)
    assert found.learned <= min(costs) + 1e-6
    assert found.weights[0] == pytest.approx(float(GRID[torch.stack(costs).argmin()]), abs=0.01)


def test_a_member_that_knows_nothing_is_not_heard():
    logs = torch.rand(3, 200).add(0.01).clamp_max(1).log()
    logs[2] = -20.0
    assert mixture(logs).weights[2] < 1e-6


def test_members_that_are_equal_stay_so():
    found = mixture(torch.rand(1, 30).log().expand(3, -1))
    assert found.weights == pytest.approx([1 / 3] * 3)
    assert found.equal == pytest.approx(found.learned)


def test_the_derivatives_are_those_that_autograd_finds():
    logs, wanted = torch.randn(3, 5, 7, dtype=torch.float64).log_softmax(-1), torch.tensor([0, 3, 6, 2, 2])

    def cost(weights):
        mixed = torch.einsum("k,knv->nv", weights, logs).log_softmax(-1)
        return -mixed.gather(1, wanted[:, None]).sum()

    weights = torch.tensor([0.5, 0.3, 0.2], dtype=torch.float64)
    found = moments(logs, wanted, weights)
    assert found.cost == pytest.approx(float(cost(weights)))
    torch.testing.assert_close(found.gradient, torch.autograd.functional.jacobian(cost, weights))
    torch.testing.assert_close(found.curvature, torch.autograd.functional.hessian(cost, weights))


@pytest.mark.parametrize("average", ["probabilities", "logits"])
def test_learned_weights_cost_no_more_than_any_of_a_grid(runs, average):
    members = [regard.load(runs[name]) for name in ("first", "second")]
    found = stack(members, RECORDS, average)

    def cost(weights):
        model = regard.ensemble(members, average=average, weights=weights)
        [batch] = batches(model, RECORDS, 1)
        with torch.no_grad():
            rated = rate(model.model.decoder, model.model.encode(batch.source), batch.target)
        return -rated.scores.sum().item() / int(batch.target.keep.sum())

    costs = [cost([w, 1 - w]) for w in (0.0, 0.5, 1.0)]
    assert found.learned <= min(costs) + 1e-5
    assert found.learned == pytest.approx(cost(found.weights), abs=1e-5)
    assert found.equal == pytest.approx(costs[1], abs=1e-5)
    assert sum(found.weights) == pytest.approx(1)


def test_logits_of_equal_members_keep_equal_weights(runs):
    first = regard.load(runs["first"])
    found = log_linear([first, first], list(batches(first, RECORDS, 2)))
    assert found.weights == pytest.approx([0.5, 0.5])
    assert found.learned == pytest.approx(found.equal)


def test_what_cannot_be_stacked_is_refused(runs):
    first = regard.load(runs["first"])
    with pytest.raises(ValueError, match="stacking is for averages of probabilities or logits, got 'memories'"):
        stack([first, first], RECORDS, "memories")
    for records in ([], [Record("Tom", None, "dev:1")]):
        with pytest.raises(DataError, match="stacking learns from records with targets, got"):
            stack([first, first], records)
