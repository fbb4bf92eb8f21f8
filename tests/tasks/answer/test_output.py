import pytest
import torch

from regard.tasks.answer.output import NO_WEIGHTS, StoryAnswer


def test_an_answer_has_no_other_weights_unless_there_are_some():
    answer = StoryAnswer(torch.zeros(2, 3), None)
    assert answer.inner is NO_WEIGHTS
    assert len(answer.inner) == 0
    with pytest.raises(TypeError, match="does not support item assignment"):
        NO_WEIGHTS["words"] = torch.zeros(1, 1, 1, 1)
    weights = {"words": torch.ones(2, 1, 1, 4)}
    assert StoryAnswer(torch.zeros(2, 3), torch.zeros(2, 1, 5), weights).inner is weights
