"""A probe: what a model makes of the same input, again and again while it is trained."""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from regard.viewer.trace import Frame

if TYPE_CHECKING:
    from regard.viewer.record import Recorder

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn

MOST = 200
"""Frames that a film keeps: with one more, every second goes, and from then on they are taken half as often."""


class Probe:
    """Call it after each step of a training, with the step and its loss."""

    def __init__(self, recorder: "Recorder", count: int, examples: Callable[[], Any] | tuple[Any, ...]):
        if count < 1:
            raise ValueError(f"every needs a number of steps from 1 on, got {count}")
        self.recorder, self.count, self.examples = recorder, count, examples

    def __call__(self, step: int, loss: float | None = None) -> bool:
        """True if a frame was taken at this step: it was due, and not there yet."""
        frames = self.recorder.frames
        if step % interval(step, self.count) or any(frame.step == step for frame in frames):
            return False
        self.shoot(step, loss)
        return True

    def shoot(self, step: int, loss: float | None = None) -> None:
        """Take a frame now. The examples of the trace are those of the last one."""
        recorder = self.recorder
        recorder.runs.clear()
        with undisturbed(recorder.model), recorder.drawing():
            recorder.paused = False
            try:
                self.examples() if callable(self.examples) else recorder.model(*self.examples)
            finally:
                recorder.paused = True
        examples = recorder.examples()
        taken = [
            Frame(
                step,
                loss,
                {
                    attention_map.name: attention_map.weights
                    for attention_map in example.attentions
                    if attention_map.weights is not None
                },
                number,
            )
            for number, example in enumerate(examples)
        ]
        recorder.frames[:] = thinned([*recorder.frames, *taken], self.count)


def interval(step: int, every: int) -> int:
    """Number of steps between frames, so that there are at most MOST up to this step: a power of two times `every`."""
    while step // every + 1 > MOST:
        every *= 2
    return every


def thinned(frames: Iterable[Frame], every: int) -> list[Frame]:
    """The frames that stay, and the last in any case."""
    frames = list(frames)
    last = max((frame.step for frame in frames), default=0)
    return [frame for frame in frames if frame.step % interval(last, every) == 0 or frame.step == last]


@contextmanager
def undisturbed(model: nn.Module) -> Iterator[None]:
    """Inside, the model is in evaluation mode and without gradients; afterwards, it and all generators are as before."""
    training = {module: module.training for module in model.modules()}
    devices = {parameter.device.index for parameter in model.parameters() if parameter.device.type == "cuda"}
    with torch.random.fork_rng(sorted(device or 0 for device in devices)), torch.no_grad():
        model.eval()
        try:
            yield
        finally:
            for module, before in training.items():
                module.training = before
