"""Video classifier: the motion of a clip, with attention over frames and within each frame."""

import math
from collections.abc import Sequence

import torch
from jaxtyping import Float, Shaped, UInt8
from torch import Tensor
from torch.nn import functional as F

from regard.data.axis import Axis, Text
from regard.data.image.axis import image_axis
from regard.data.image.types import ImageExample
from regard.inference.forward_predictor import AxisWeights, ForwardTrace
from regard.tasks.classify.predictor import Classifier, ClassifierOutput, Where
from regard.tasks.classify.synthetic import SyntheticClip

SPACE, TIME, BOTH = "space.attention", "time.attention", "clip"
WHITE = 255


class Watcher(Classifier):
    """It looks at places of each frame, and at frames of the clip."""

    says = "clips whose largest weight lies on a frame that shows the motion, in per cent"

    def where(self, example: ImageExample, row: int, output: ClassifierOutput, labels: Sequence[int]) -> Where:
        """Attention over the frames."""
        weights = self.average_weights(output, row, labels)[
            :, : len(self.codec.read_image(example))
        ]  # a shorter clip has empty frames
        return Where(frames(weights.shape[1]), [self.codec.labels[label] for label in labels], weights)

    def average_weights(self, output: ClassifierOutput, row: int, labels: Sequence[int]) -> Float[Tensor, "labels frames"]:
        """Attention weights of the frames, the mean of the heads; equal for all labels."""
        return output.weights[TIME][row].float().mean(0).cpu().expand(len(labels), -1)

    def pointed(self, example: ImageExample) -> bool:
        """True where the frames of the motion are known."""
        return isinstance(example.picture, SyntheticClip)

    def hits(self, example: ImageExample, row: int, output: ClassifierOutput) -> tuple[int, int]:
        """Numbers, 0 or 1: the frame with the largest weight shows the motion, and the motion is known."""
        if not isinstance(example.picture, SyntheticClip):
            return 0, 0
        return int(self.average_weights(output, row, [0])[0].argmax()) in example.picture.clip.moving, 1

    def trace_parts(self, example: ImageExample, output: ClassifierOutput) -> ForwardTrace:
        """Frames on one sheet: where each was looked at, how much each counted, and the two multiplied."""
        clip, stride = self.codec.read_image(example), self.codec.stride
        space, time = (output.weights[name][0].float().cpu() for name in (SPACE, TIME))
        grid = (-(-clip.shape[2] // stride), -(-clip.shape[3] // stride))
        own = torch.diag_embed(space.mT).permute(0, 2, 3, 1)  # heads frames frames places: of its own frame each has some
        apart = torch.stack([sheet(torch.unflatten(weights, -1, grid)).flatten() for weights in own.flatten(0, 1)])
        apart = torch.unflatten(apart, 0, space.shape[:2])
        both = (time.mean(0)[0, :, None] * apart.mean(0)).sum(0)
        chances = self.likely(output.logits)[0]
        said = self.select_labels(chances)[0]
        axes: dict[str, Axis] = {
            "answer": Text.of([", ".join(self.codec.labels[label] for label in said) or "none"]),
            "frame": Text.of(frames(len(clip))),
            "picture": image_axis(sheet(filled(clip, stride), WHITE), stride),
        }
        looks = {
            SPACE: AxisWeights("frame", "picture", apart),
            TIME: AxisWeights("answer", "frame", time),
            BOTH: AxisWeights("answer", "picture", both[None, None]),
        }
        return ForwardTrace(axes, looks, tuple(self.choice(0, label, chances) for label in said))


def frames(count: int) -> list[str]:
    """Names of the frames: their numbers, from 1."""
    return [str(number + 1) for number in range(count)]


def filled(clip: UInt8[Tensor, "frames channels height width"], stride: int) -> UInt8[Tensor, "frames channels tall wide"]:
    """Frames filled up with white to whole squares."""
    height, width = clip.shape[2:]
    return F.pad(clip, (0, -width % stride, 0, -height % stride), value=WHITE)


def sheet(clip: Shaped[Tensor, "frames *channels height width"], empty: int = 0) -> Shaped[Tensor, "*channels down across"]:
    """Frames row by row on a sheet, as many in a row as there are rows, or one more."""
    across = math.ceil(math.sqrt(len(clip)))
    down = -(-len(clip) // across)
    more = clip.new_full((across * down - len(clip), *clip.shape[1:]), empty)
    rows = torch.split(torch.cat((clip, more)), across)
    return torch.cat([torch.cat(list(row), dim=-1) for row in rows], dim=-2)
