"""Faithfulness check: a model whose output hangs on some keys changes without them, and not without others."""

from types import SimpleNamespace

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from regard.viewer.record.external.faithfulness import check_faithfulness, measure_change


class Reader(nn.Module):
    """Answers with what it reads at the places of the number 7, which all its queries look for."""

    def __init__(self, uniform=False):
        super().__init__()
        self.uniform = uniform

    def forward(self, input_ids, attention_mask=None):
        batch, length = input_ids.shape
        scores = torch.zeros(batch, 1, length, length) if self.uniform else 6.0 * (input_ids == 7)[:, None, None].float()
        value = F.one_hot(input_ids, 9).float()[:, None]
        query = torch.zeros(batch, 1, length, 4)
        read = F.scaled_dot_product_attention(query, query, value, scores.expand(batch, 1, length, length))
        return SimpleNamespace(logits=5 * read[:, 0].mean(1))


IDS = torch.tensor([[1, 7, 2, 3, 7, 4, 5, 6, 1, 2], [7, 7, 1, 2, 3, 4, 5, 6, 1, 2]])


def test_hiding_what_an_output_hangs_on_changes_it_more_than_hiding_others():
    model = Reader().train()
    trace = check_faithfulness(model, {"input_ids": IDS}, count=2, trials=5)
    assert model.training
    first, second = (example.faithfulness for example in trace.examples)
    assert set(first.keys) == {1, 4}
    assert set(second.keys) == {0, 1}
    assert first.largest > 0.5 > 0.1 > first.random
    assert (first.trials, first.measure) == (5, "probability")
    assert "Without the 2 keys of the largest weight ('7', '7') the probability of the output moves by" in trace.notes[1]


def test_equal_weights_are_worth_no_more_than_random_ones():
    check = check_faithfulness(Reader(uniform=True), {"input_ids": IDS[:1]}, count=2, trials=30).example().faithfulness
    assert abs(check.largest - check.random) < 4 * max(check.deviation, 0.02)


def test_equal_seeds_choose_equal_keys():
    first, second = (check_faithfulness(Reader(), {"input_ids": IDS}, count=2, trials=3, seed=4) for _ in range(2))
    assert first.example().faithfulness == second.example().faithfulness


def test_states_are_compared_by_the_length_of_their_change():
    assert measure_change(torch.tensor([3.0, 4.0]), torch.tensor([3.0, 1.0]), "state", None) == pytest.approx(0.6)
    before, after = torch.tensor([[0.0, 0.0], [9.0, 0.0]]), torch.tensor([[0.0, 99.0], [9.0, 0.0]])
    assert measure_change(before, after, "probability", 0) == pytest.approx(0.5)
    assert measure_change(before, after, "probability", None) == pytest.approx(0.25)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"count": 0}, "needs a count of 1 or more and 2 trials or more, got count=0 and trials=20"),
        (
            {"count": 6},
            "a check of 6 keys needs at least 12 that can be hidden, and this input has 10; give a smaller count",
        ),
    ],
)
def test_a_check_that_cannot_be_made_is_refused(options, text):
    with pytest.raises(ValueError, match=text):
        check_faithfulness(Reader(), {"input_ids": IDS}, **options)


def test_an_output_without_logits_or_states_is_refused():
    model = Reader()
    model.forward = lambda input_ids: SimpleNamespace(answer=input_ids)
    with pytest.raises(
        ValueError, match="needs logits or a last_hidden_state to compare, and a SimpleNamespace has neither"
    ):
        check_faithfulness(model, {"input_ids": IDS})
