import math

import pytest
import torch
from torch.testing import assert_close

from regard.attention import Encoded
from regard.attention.local import Centre
from regard.attention.mechanisms.local_m import LocalM, MonotoneCentre
from regard.models.attention_factory import build_attention

from .in_models import check_learning_and_padding, check_steps_and_beams, every_kind


def test_a_plain_case_can_be_worked_by_hand():
    found = LocalM(1, score="dot", width=1)
    query, source = torch.tensor([[[1.0], [2.0], [0.0]]]), torch.tensor([[[0.0], [1.0], [3.0], [5.0]]])
    attended = found(query, found.remember(source), offset=0, weights=True)
    e = math.exp
    expected = torch.tensor(
        [
            [1 / (1 + e(1)), e(1) / (1 + e(1)), 0, 0],  # at 0: keys 0 and 1, scores 0 and 1; there is nothing before 0
            [1 / (1 + e(2) + e(6)), e(2) / (1 + e(2) + e(6)), e(6) / (1 + e(2) + e(6)), 0],  # at 1: twice 0, 1 and 3
            [0, 1 / 3, 1 / 3, 1 / 3],  # at 2: a query of zero finds all three alike
        ]
    )
    assert_close(attended.weights[0, 0], expected)
    assert_close(attended.context[0], expected @ source[0])


def test_the_window_moves_with_the_position_of_the_query():
    found = LocalM(2, width=1)
    memory = found.remember(torch.randn(1, 9, 2))
    seen = found(torch.randn(1, 3, 2), memory, offset=4, weights=True).weights[0, 0] > 0
    assert seen.nonzero().tolist() == [[0, 3], [0, 4], [0, 5], [1, 4], [1, 5], [1, 6], [2, 5], [2, 6], [2, 7]]
    assert found.positional
    assert isinstance(found.centre, Centre)


def test_behind_the_end_of_a_source_nothing_is_left_to_see():
    found = LocalM(2, width=1)
    keep = torch.tensor([[True] * 6, [True] * 2 + [False] * 4])
    attended = found(torch.randn(2, 6, 2), found.remember(Encoded(torch.randn(2, 6, 2), keep)), offset=0, weights=True)
    assert_close(attended.weights.sum(-1)[:, 0], torch.tensor([[1.0] * 6, [1, 1, 1, 0, 0, 0]]))
    assert not attended.context[1, 3:].any()


def test_positions_are_counted_without_rounding():
    centre = MonotoneCentre()(torch.zeros(2, 3, 1, dtype=torch.bfloat16), torch.tensor([9, 9]), torch.tensor([1001, 7]))
    assert centre.tolist() == [[1001, 1002, 1003], [7, 8, 9]]


def test_its_defaults_are_those_of_the_paper():
    found = LocalM(4, 6)
    assert type(found.score).__name__ == "Bilinear"
    assert (found.width, found.size, found.renormalise) == (10, 6, False)


@pytest.mark.parametrize(
    ("name", "score"), [("local_m", "Bilinear"), ("local_m+location", "Location"), ("dot+local_m", "Dot")]
)
@pytest.mark.parametrize("key", [4, 6])
def test_it_is_built_by_a_word_with_any_score(name, score, key):
    found = build_attention(name, 4, key, dropout=0.1)
    assert type(found) is LocalM
    assert type(found.score).__name__ == score
    assert found(torch.randn(2, 3, 4), found.remember(torch.randn(2, 5, key))).context.shape == (2, 3, found.size)


@every_kind
@pytest.mark.parametrize("name", ["local_m", "local_m+location"])
def test_it_works_in_every_decoder(name, kind):
    check_learning_and_padding(name, kind)
    check_steps_and_beams(name, kind)
