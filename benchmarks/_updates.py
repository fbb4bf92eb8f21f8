"""Updates of a model as training does them; and whether losses go the same way with kernels and without.

Two small models learn one batch by heart, twice from the same numbers: with every kernel there is, on a GPU in a graph and
with matrices that are rounded in one go, and with none. Where the losses part, what each kernel gets right by itself does
not add up to a training.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import partial

import torch
from torch import Tensor, nn

import _bare  # noqa: F401
from _parity import DEVICE, GPU, Verdict
from _parity_models import without
from regard.attention import expected_monotonic, masked_norm
from regard.attention.module import Attention
from regard.attention.score.additive import Additive
from regard.config import AttentionPart, Dropout, Model, Train
from regard.data.batch import Batch, Padded
from regard.kernels import additive_gpu, flash, short
from regard.losses import linear_cross_entropy
from regard.losses.teacher_forcing import TeacherForcing
from regard.losses.types import Loss, Progress
from regard.models.decoders import recurrent_fused
from regard.models.layers import add_norm, feedforward
from regard.models.seq2seq import build
from regard.training.cuda_graphs import GraphedLoss
from regard.training.gradient import accumulate
from regard.training.mixed_precision import CastWeights
from regard.training.optimizer import LARGEST, build_optimizer, clip_gradient, is_fused, step_unless
from regard.training.seed import reseed
from regard.training.step import StepResult

KERNELS = (
    flash,
    short,
    additive_gpu,
    recurrent_fused,
    linear_cross_entropy,
    add_norm,
    feedforward,
    masked_norm,
    expected_monotonic,
)
SIZE, LAYERS, VOCABULARY, ROWS, LENGTH, COUNT = (128, 2, 16_000, 16, 24, 30) if GPU else (16, 1, 50, 2, 6, 5)
"""Of the models and their batch, and how many updates there are."""
BOUNDS = {torch.float32: 1e-3 if GPU else 1e-4, torch.bfloat16: 2e-2}
"""How far losses may be apart, of their size: rounding differs, and every update builds on those before."""
HALVES = {"encoder": "transformer", "decoder": "transformer", "attention": AttentionPart("transformer", heads=2)}
MODELS = {
    "transformer": Model(**HALVES, hidden_size=SIZE, layers=LAYERS, heads=2, feedforward_size=2 * SIZE),
    "additive": Model(encoder="recurrent", decoder="convolution", attention=AttentionPart("additive"), hidden_size=SIZE),
}


class Updates:
    """An update as training/step.py does it, from the same parts; `layers` is entered around each."""

    def __init__(
        self,
        model: nn.Module,
        batch: Batch,
        settings: Train,
        layers: AbstractContextManager[None] = nullcontext(),
        graph: bool = True,
    ):
        self.model, self.batch, self.settings, self.layers, self.count = model, batch, settings, layers, 0
        self.teacher, self.optimiser = TeacherForcing(settings, model), build_optimizer(model, settings)
        self.learned = list(model.parameters())
        self.device = self.learned[0].device
        self.gradients = GraphedLoss(self.cost, self.device, self.learned) if graph else self.eager

    def cost(self, batch: Batch) -> Loss:
        half = self.settings.precision == "bf16"
        with torch.autocast(self.device.type, torch.bfloat16, enabled=half), self.layers:
            return self.teacher(self.model, batch, Progress(0, 1))

    def eager(self, batch: Batch) -> Loss:
        """The loss, its gradients added, kernel by kernel."""
        loss = self.cost(batch.to(self.device))
        accumulate(loss.total, self.learned)
        return loss

    def __call__(self) -> float:
        """One update; its loss a token."""
        reseed(0, self.count, self.device)
        self.count += 1
        loss = self.gradients(self.batch)
        norm = clip_gradient(self.learned, loss.tokens, self.settings.gradient_clip)
        if is_fused(self.optimiser):
            step_unless(self.optimiser, ~(loss.total.isfinite() & (norm < LARGEST)))
        else:
            self.optimiser.step()
        self.optimiser.zero_grad(set_to_none=False)
        return StepResult(loss, norm).fetch().loss


def batch_of(rows: int, length: int, words: int) -> Batch:
    """Random tokens of full length, on the host, where a loader leaves them."""
    source, target = (
        Padded(torch.randint(4, words, (rows, length)), torch.ones(rows, length, dtype=torch.bool)) for _ in range(2)
    )
    return Batch(source, target)


def losses(name: str, dtype: torch.dtype, kernels: bool) -> Tensor:
    """Of every update of a small model, with all kernels or with none."""
    torch.manual_seed(0)
    model = build(MODELS[name], Dropout(0.0, 0.0), VOCABULARY, VOCABULARY, True).to(DEVICE).train()
    for each in model.modules():
        if isinstance(each, Attention) and type(each.score) is Additive:  # which auto leaves to PyTorch where it is small
            each.impl = additive_gpu if kernels else "reference"
    half = dtype == torch.bfloat16
    settings = Train(precision="bf16" if half else "fp32", optimizer="adamw", learning_rate=1e-3, label_smoothing=0.1)
    layers = CastWeights(model) if kernels and half else nullcontext()
    with without(*(() if kernels else KERNELS)):
        update = Updates(model, batch_of(ROWS, LENGTH, VOCABULARY), settings, layers, graph=kernels and GPU)
        return torch.tensor([update() for _ in range(COUNT)], dtype=torch.float64)


def check(name: str, dtype: torch.dtype) -> Verdict:
    """How far the losses with kernels are from those without, where they are furthest apart. Both must have become less."""
    ours, plain = (losses(name, dtype, kernels) for kernels in (True, False))
    apart = (ours - plain).abs() / plain
    place = int(apart.argmax())
    fell = bool(ours[-1] < ours[0]) and bool(plain[-1] < plain[0])
    told = f"update {place + 1} of {COUNT}, loss {ours[0]:.3f} to {ours[-1]:.3f}, without kernels {plain[-1]:.3f}"
    return Verdict(apart[place].item() if fell else torch.nan, BOUNDS[dtype], told, True)


def cases() -> dict[str, Callable[[torch.dtype], Verdict]]:
    """By name."""
    return {f"updates {name}": partial(check, name) for name in MODELS}
