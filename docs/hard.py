"""Draw how noisy the gradient of hard attention is under each baseline, measured while a model learns to reverse strings.

python docs/hard.py > docs/hard.svg

One model is trained. Now and then its gradient is taken many times on one batch, each time with new draws, and from the same
draws once for each baseline: what is subtracted from the rewards is the only difference.
"""

import math
from dataclasses import replace
from typing import NamedTuple

import torch
from torch import Tensor, nn

from regard import tasks
from regard.config import AttentionPart, Data, Dropout, Model, Train
from regard.data.batch import Batch, shifted
from regard.losses.hard_attention import Reinforce, find_hard_attentions
from regard.losses.teacher_forcing import TeacherForcing, compute_target_logprobs
from regard.losses.types import Progress
from regard.training.optimizer import build_optimizer, clip_gradient

DRAWS = 32
COLOURS = {"none": "#8c8c8c", "moving_average": "#0072b2", "learned": "#d55e00"}
NOTES = {"none": "no baseline", "moving_average": "moving average", "learned": "learned baseline"}
WIDTH, HEIGHT, LEFT, TOP, RIGHT, BOTTOM = 760, 360, 80, 64, 610, 310
SIZES = f'viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}"'
DARK = 'font-family="system-ui, sans-serif" fill="#222"'


class Curve(NamedTuple):
    """The variance at each of the steps, under one baseline."""

    baseline: str
    steps: list[int]
    variances: list[float]


def measure(steps: int = 480, every: int = 40, draws: int = DRAWS) -> list[Curve]:
    """Train, and look at the variances every so many steps."""
    torch.manual_seed(0)
    settings = Train(max_steps=steps, learning_rate=5e-3, reinforce_baseline="learned")
    config = replace(
        tasks.find("reverse").Config(),
        data=Data(samples=1500, batch_tokens=512),
        model=Model(hidden_size=32, attention=AttentionPart("additive+hard")),
        dropout=Dropout(embedding=0.0, residual=0.0),
        train=settings,
    )
    experiment, _ = tasks.experiment("reverse", config)
    model, teacher = experiment.model.train(), experiment.loss
    assert isinstance(teacher, TeacherForcing)
    learning = build_optimizer(model, settings, teacher)
    curves = [Curve(baseline, [], []) for baseline in COLOURS]
    for step in range(steps + 1):
        if step and step % every == 0:
            found = variances(model, teacher, experiment.train.batch(0), draws)
            for curve in curves:
                curve.steps.append(step)
                curve.variances.append(found[curve.baseline])
        loss = teacher(model, experiment.train.batch(step), Progress(step, steps))
        learning.zero_grad()
        loss.total.backward()
        for learner in (model, teacher):
            clip_gradient(learner.parameters(), loss.tokens, settings.gradient_clip)
        learning.step()
        teacher.update_baseline(loss)
    return curves


def variances(model: nn.Module, teacher: TeacherForcing, batch: Batch, draws: int) -> dict[str, float]:
    """The variance of the gradient of the score's parameters, summed over all of them, under each baseline."""
    settings, names = teacher.settings, find_hard_attentions(model)
    each = {
        baseline: Reinforce(replace(settings, reinforce_baseline=baseline, entropy_bonus=0.0), names) for baseline in COLOURS
    }
    assert teacher.looks is not None
    assert batch.target is not None
    each["learned"].baseline = teacher.looks.baseline
    each["moving_average"].baseline = teacher.looks.baseline.average
    parameters = [parameter for name, parameter in model.named_parameters() if ".score." in name]
    found: dict[str, list[Tensor]] = {baseline: [] for baseline in COLOURS}
    for _ in range(draws):
        step = model(batch.source, shifted(batch.target.data))
        rewards = compute_target_logprobs(step.output, batch.target)
        for baseline, looks in each.items():
            total, _ = looks(step.attended, batch.target.keep, rewards)
            slopes = torch.autograd.grad(total / batch.target.keep.sum(), parameters, retain_graph=True)
            found[baseline].append(torch.cat([slope.flatten() for slope in slopes]))
    return {baseline: torch.stack(gradients).var(0).sum().item() for baseline, gradients in found.items()}


class Frame(NamedTuple):
    """Where steps and powers of ten stand in the picture."""

    last: int
    low: int
    high: int

    def across(self, step: int) -> float:
        """Pixels from the left."""
        return LEFT + (RIGHT - LEFT) * step / self.last

    def down(self, exponent: float) -> float:
        """Pixels from the top."""
        return BOTTOM - (BOTTOM - TOP) * (exponent - self.low) / (self.high - self.low)


def axes(frame: Frame) -> list[str]:
    """A line for each power of ten, and the numbers on both sides."""
    lines = []
    for exponent in range(frame.low, frame.high + 1):
        y, number = frame.down(exponent), f'10<tspan dy="-5" font-size="9">{exponent}</tspan>'
        lines += [
            f'<line x1="{LEFT}" y1="{y:.1f}" x2="{RIGHT}" y2="{y:.1f}" stroke="#ddd"/>',
            f'<text x="{LEFT - 8}" y="{y + 4:.1f}" {DARK} font-size="12" text-anchor="end">{number}</text>',
        ]
    for step in range(0, frame.last + 1, max(1, frame.last // 6)):
        x = frame.across(step)
        lines.append(f'<text x="{x:.1f}" y="{BOTTOM + 20}" {DARK} font-size="12" text-anchor="middle">{step}</text>')
    middle = (LEFT + RIGHT) / 2
    return [*lines, f'<text x="{middle:g}" y="{BOTTOM + 40}" {DARK} font-size="12" text-anchor="middle">updates</text>']


def drawn(curve: Curve, frame: Frame, label: float) -> list[str]:
    """One curve, with its name behind its end at the height `label`."""
    points = zip(map(frame.across, curve.steps), (frame.down(math.log10(each)) for each in curve.variances), strict=True)
    path, colour = " ".join(f"{x:.1f},{y:.1f}" for x, y in points), COLOURS[curve.baseline]
    style = f'font-family="system-ui, sans-serif" font-size="13" fill="{colour}"'
    return [
        f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2.5"/>',
        f'<text x="{RIGHT + 10}" y="{label:.1f}" {style}>{NOTES[curve.baseline]}</text>',
    ]


def labels(curves: list[Curve], frame: Frame) -> list[float]:
    """Where each name stands: beside the end of its curve, but not upon another."""
    ends = [frame.down(math.log10(curve.variances[-1])) + 4 for curve in curves]
    placed: dict[int, float] = {}
    for place in sorted(range(len(ends)), key=ends.__getitem__):
        placed[place] = max([ends[place], *(above + 16 for above in placed.values())])
    return [placed[place] for place in range(len(ends))]


def picture(curves: list[Curve]) -> str:
    """The curves as SVG, the variances on a scale of powers of ten."""
    exponents = [math.log10(each) for curve in curves for each in curve.variances]
    frame = Frame(max(curves[0].steps), math.floor(min(exponents)), math.ceil(max(exponents)))
    note = "Variance over draws, all parameters of the score, while a model learns to reverse strings"
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {SIZES} role="img">',
        "<title>The variance of hard attention's gradient under three baselines</title>",
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
        f'<text x="20" y="26" {DARK} font-size="16" font-weight="600">Hard attention: how noisy its gradient is</text>',
        f'<text x="20" y="45" {DARK} font-size="12" opacity="0.75">{note}</text>',
        *axes(frame),
    ]
    for curve, label in zip(curves, labels(curves, frame), strict=True):
        lines += drawn(curve, frame, label)
    return "\n".join([*lines, "</svg>", ""])


if __name__ == "__main__":
    print(picture(measure()), end="")
