import torch

from regard.losses.types import Loss, Progress


def test_a_loss_without_parts_has_none_to_log():
    loss = Loss(torch.tensor(2.0), 4)
    assert loss.total / loss.tokens == 0.5
    assert dict(loss.parts) == {}


def test_progress_says_where_a_training_stands():
    assert Progress(step=3, steps=10) == (3, 10)
