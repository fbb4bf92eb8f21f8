import math

import pytest
import torch

from regard.data.batch import Padded, shifted
from regard.training.losses import cross_entropy, entropy, perplexity, taught, teach

from .small import Copies, Network, Plain

HALF = torch.tensor([[[0.0, 0.0], [0.0, math.log(3.0)], [7.0, -7.0]]])  # p = (1/2, 1/2), (1/4, 3/4), padding
TARGET = Padded(torch.tensor([[0, 1, 0]]), torch.tensor([[True, True, False]]))


def test_cross_entropy_is_a_sum_over_kept_tokens():
    assert cross_entropy(HALF, TARGET).item() == pytest.approx(math.log(2) + math.log(4 / 3))


def test_smoothing_spreads_a_share_over_the_vocabulary():
    plain, even = math.log(2) + math.log(4 / 3), math.log(2) + (math.log(4) + math.log(4 / 3)) / 2
    assert cross_entropy(HALF, TARGET, 0.1).item() == pytest.approx(0.9 * plain + 0.1 * even)


def test_entropy_counts_kept_tokens_alone():
    assert entropy(HALF, TARGET).item() == pytest.approx(math.log(2) + 0.25 * math.log(4) + 0.75 * math.log(4 / 3))


def test_a_padded_position_gets_no_gradient():
    logits = HALF.clone()
    logits[0, 2] = 1e30
    logits.requires_grad_()
    loss = taught(logits, TARGET)
    loss.total.backward()
    assert loss.total.isfinite()
    assert logits.grad[0, 2].tolist() == [0, 0]


def test_the_confidence_penalty_takes_a_share_of_the_entropy_away():
    loss = taught(HALF, TARGET, smoothing=0.1, confidence=0.3)
    wanted = cross_entropy(HALF, TARGET, 0.1) - 0.3 * entropy(HALF, TARGET)
    assert loss.total.item() == pytest.approx(wanted.item())
    assert loss.tokens == 2
    assert loss.parts["nll"].item() == pytest.approx(cross_entropy(HALF, TARGET).item())
    assert loss.parts["entropy"].item() == pytest.approx(entropy(HALF, TARGET).item())


def test_the_input_is_the_target_one_place_later():
    assert shifted(torch.tensor([[5, 6, 2], [7, 2, 0]])).tolist() == [[1, 5, 6], [1, 7, 2]]


def test_teaching_feeds_the_shifted_target_and_scores_the_target():
    model, batch = Network(dropout=0.0), Copies().batch(0)
    loss = teach(model, batch)
    logits = model(batch.source, shifted(batch.target.data)).output
    assert loss.total.item() == pytest.approx(cross_entropy(logits, batch.target).item())
    assert loss.tokens == batch.target.keep.sum()


def test_a_model_is_told_to_use_its_own_output_only_when_it_should():
    seen = []

    class Watched(Plain):
        def forward(self, source, target, **options):
            seen.append(options)
            return super().forward(source, target)

    teach(Watched(), Copies().batch(0))
    teach(Watched(), Copies().batch(0), own=0.25)
    assert seen == [{}, {"own": 0.25}]


def test_teaching_needs_targets():
    with pytest.raises(ValueError, match="teach needs a batch with targets"):
        teach(Plain(), Copies().batch(0)._replace(target=None))


def test_perplexity_is_the_exponential_of_the_mean():
    assert perplexity(2 * math.log(8), 2) == pytest.approx(8)
    assert perplexity(1e6, 1) == math.inf
