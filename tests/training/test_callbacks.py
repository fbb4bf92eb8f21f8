from dataclasses import replace

import pytest
import torch

from regard.training.callbacks import Callback
from regard.training.loop import train

from .small import experiment, fingerprint

pytestmark = pytest.mark.unhooked  # trainings


class Odd:
    """Notes the odd steps, and the last one."""

    def __init__(self, begun):
        self.begun, self.calls = begun, []

    def due(self, step, *, last=False):
        return last or step % 2 == 1

    def __call__(self, step, loss, *, last=False):
        self.calls.append((step, loss is None, last))


def with_callbacks(made, **settings):
    def make(experiment, directory, step):
        made.append(Odd(step))
        return made[-1]

    return replace(experiment(**settings), callbacks=(make, lambda experiment, directory, step: None))


def test_a_callback_is_called_when_it_is_due_and_after_the_last_step(tmp_path):
    made = []
    train(with_callbacks(made, max_steps=4), tmp_path, quiet=True)
    [odd] = made
    assert isinstance(odd, Callback)
    assert odd.begun == 0
    assert odd.calls == [(1, False, False), (3, False, False), (4, False, True)]


def test_a_callback_is_made_anew_at_a_resume_with_the_step_of_the_checkpoint(tmp_path):
    made = []
    for steps in (5, 10):
        train(with_callbacks(made, max_steps=steps), tmp_path, quiet=True)
    assert [odd.begun for odd in made] == [0, 5]
    assert [step for step, _, _ in made[1].calls] == [5, 7, 9, 10]


def test_a_training_with_callbacks_ends_with_the_same_bits(tmp_path):
    train(with_callbacks([], max_steps=6), tmp_path / "with", quiet=True)
    torch.manual_seed(1)
    train(experiment(max_steps=6), tmp_path / "without", quiet=True)
    assert fingerprint(tmp_path / "with") == fingerprint(tmp_path / "without")
