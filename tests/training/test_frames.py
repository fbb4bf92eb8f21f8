"""The way from the training loop to the arithmetic of a score is short: few frames of the package stand on it."""

import traceback
from pathlib import Path
from typing import ClassVar

import pytest

import regard
from regard import config as configuration
from regard import tasks
from regard.attention import Attention
from regard.attention.score import ScaledDot
from regard.training.loop import train

pytestmark = pytest.mark.unhooked
SOURCE = str(Path(regard.__file__).parent)
MOST = 15
OVERRIDES = ["encoder=transformer", "decoder=transformer", "attention=transformer", "hidden_size=16"]


class Recorder(ScaledDot):
    """Scaled dot product that records the frames of the package that called it; no kernel covers it."""

    stacks: ClassVar[list[list[str]]] = []

    def __call__(self, query, key):
        frames = [frame for frame in traceback.extract_stack() if frame.filename.startswith(SOURCE)]
        self.stacks.append([f"{Path(frame.filename).relative_to(SOURCE)} {frame.name}" for frame in frames])
        return super().__call__(query, key)


def test_from_the_training_loop_to_a_score_there_are_few_frames(tmp_path):
    overrides = [f"model.{each}" for each in OVERRIDES]
    overrides += ["data.samples=40", "train.max_steps=1", "train.evaluate_every=0", "train.device=cpu"]
    config = configuration.read(tasks.find("reverse").Config, overrides=overrides)
    experiment, _ = tasks.experiment("reverse", config)
    Recorder.stacks.clear()
    attentions = [module for module in experiment.model.modules() if isinstance(module, Attention)]
    for attention in attentions:
        attention.score = Recorder()
    train(experiment, tmp_path, quiet=True)
    steps = [stack for stack in Recorder.stacks if "training/step.py __call__" in stack]
    assert len(steps) == len(attentions) == 3  # of the encoder, and two of the decoder
    assert all(stack[0] == "training/loop.py train" for stack in steps)
    longest = max(steps, key=len)
    assert len(longest) <= MOST, "\n".join(longest)
