"""Packed rows beside padded ones: the share of places that are tokens, and target tokens a second of the same training.

Three ways to make batches of one budget: Loader, sentences of like length side by side; Loader with lengths rounded up for
CUDA graphs; Packed, several sentences a row (train.packing_length). On a GPU updates are replayed in bf16 as `regard train`
does; on a CPU they are computed in single precision, and nothing is rounded. Sides take turns over the same number of
batches, and medians of the time of a round are compared. Sentences are those of Multi30k En-De where REGARD_DATA names it,
of two text files by --files, and else of lengths drawn like Multi30k's. Rows are appended to results/packed.csv.

    python benchmarks/packed.py                               rows of 256 places, a budget of 4,096 tokens
    python benchmarks/packed.py --places 64 128 256 --files train.en train.de
"""

import argparse
import os
import statistics
import time
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

import torch

import _bare  # noqa: F401
from _timing import WHERE, append, where
from regard.config import AttentionPart, Data, Dropout, Model, Train
from regard.data.batch import Batch
from regard.data.loader import SequenceLoader
from regard.data.packing import Packed
from regard.data.table import Record, read
from regard.data.text.codec import Example, TextCodec
from regard.losses.teacher_forcing import TeacherForcing
from regard.losses.types import Loss, Progress
from regard.models.seq2seq import build
from regard.training.cuda_graphs import GraphedLoss
from regard.training.mixed_precision import CastWeights
from regard.training.optimizer import build_optimizer, clip_gradient

VOCABULARY = 8000
RESULTS = Path(__file__).parent / "results" / "packed.csv"
HEADER = [
    "name",
    "batch_tokens",
    "size",
    "tokens_share",
    "shapes",
    "ms",
    "spread_ms",
    "tokens_per_second",
    "threads",
    *WHERE,
]
DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def examples(files: list[str]) -> list[Example]:
    """Pairs of sentences in numbers."""
    folder = os.environ.get("REGARD_DATA")
    if not files and folder:
        files = [f"{folder}/multi30k/tok/train.lc.norm.tok.{side}.gz" for side in ("en", "de")]
    if files:
        records = list(read("::".join(files)))
        return (
            TextCodec.fit(records, Data(tokenizer="bpe", vocab_size=VOCABULARY, joint_vocab=True))
            .encode_all(records)
            .examples
        )
    draw = torch.Generator().manual_seed(0)
    source = 14 + 4.5 * torch.randn(29_000, generator=draw)
    target = source + 1 + 2.5 * torch.randn(29_000, generator=draw)
    lengths = torch.stack((source, target), 1).round().long().clamp(4, 45).tolist()

    def side(length: int) -> list[int]:
        return [*torch.randint(4, VOCABULARY, (length,), generator=draw).tolist(), 2]

    return [Example(side(first), side(second), Record("", "", "")) for first, second in lengths]


class Side:
    """A model and its updates, from the parts of training/step.py."""

    def __init__(self, model: Model, batches: list[Batch]):
        torch.manual_seed(0)
        self.batches = batches
        settings = Train(precision="bf16" if DEVICE.type == "cuda" else "fp32", label_smoothing=0.1, learning_rate=1e-4)
        self.model = build(model, Dropout(), VOCABULARY, VOCABULARY, True).to(DEVICE).train()
        self.teacher, self.optimiser = TeacherForcing(settings, self.model), build_optimizer(self.model, settings)
        self.clip = settings.gradient_clip
        self.halved = CastWeights(self.model) if DEVICE.type == "cuda" else nullcontext()
        self.graphs = GraphedLoss(self.cost, DEVICE, list(self.model.parameters())) if DEVICE.type == "cuda" else None

    def cost(self, batch: Batch) -> Loss:
        with torch.autocast(DEVICE.type, torch.bfloat16, enabled=DEVICE.type == "cuda"), self.halved:
            return self.teacher(self.model, batch, Progress(0, 1))

    def __call__(self) -> None:
        """One update for each batch."""
        for batch in self.batches:
            if self.graphs is None:
                loss = self.cost(batch)
                loss.total.backward()
            else:
                loss = self.graphs(batch)
            clip_gradient(self.model.parameters(), loss.tokens, self.clip)
            self.optimiser.step()
            self.optimiser.zero_grad(set_to_none=self.graphs is None)
        if DEVICE.type == "cuda":
            torch.cuda.synchronize()

    @property
    def tokens(self) -> int:
        """Target tokens of a round."""
        return sum(int(batch.target.keep.sum()) for batch in self.batches)


def share(batch: Callable[[int], Batch], steps: int) -> tuple[float, int]:
    """The share of the places of an epoch that are tokens, and how many shapes its batches have."""
    kept, spent, shapes = 0, 0, set()
    for step in range(steps):
        source, target, _ = batch(step)
        sides = source, target
        kept += sum(int(side.keep.sum()) for side in sides)
        spent += sum(side.keep.numel() for side in sides)
        shapes.add(tuple(side.keep.shape for side in sides))
    return kept / spent, len(shapes)


def timed(sides: dict[str, Side], rounds: int) -> dict[str, list[float]]:
    """Milliseconds of each round of each side; those before all shapes are captured do not count."""
    times: dict[str, list[float]] = {name: [] for name in sides}
    for number in range(rounds + 3):
        for name in list(sides)[:: 1 if number % 2 else -1]:
            start = time.perf_counter()
            sides[name]()
            if number >= 3:
                times[name].append(1e3 * (time.perf_counter() - start))
    return times


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", nargs=2, default=[], metavar="FILE", help="sources and targets, a sentence a line")
    parser.add_argument("--places", type=int, nargs="+", default=[256], help="of a packed row")
    parser.add_argument("--tokens", type=int, default=4096, help="the budget of a batch")
    parser.add_argument("--batches", type=int, default=6, help="of a round")
    parser.add_argument("--rounds", type=int, default=7, help="0: shares alone")
    parser.add_argument("--size", type=int, default=256, help="of the model, which has 3 + 3 layers and 4 heads")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    found = examples(options.files)
    loader = SequenceLoader(found, options.tokens, seed=1)
    ways = {"Loader": (loader.batch, loader), "Loader, rounded": (lambda step: loader.batch(step).round_shape(), loader)}
    for places in options.places:
        packed = Packed(found, places, options.tokens, seed=1)
        ways[f"Packed, {places}"] = packed.batch, packed
    attention = AttentionPart("transformer", heads=4)
    model = Model(
        "transformer", "transformer", attention, options.size, layers=3, heads=4, feedforward_size=4 * options.size
    )
    sides = {
        name: Side(model, [batch(step) for step in range(options.batches)])
        for name, (batch, _) in ways.items()
        if options.rounds and (DEVICE.type == "cpu" or name != "Loader")  # a GPU's are rounded anyway
    }
    times = timed(sides, options.rounds)
    rows = []
    for name, (batch, made) in ways.items():
        full, shapes = share(batch, made.steps_per_epoch())
        figures, told = ["", "", ""], f"{name:16} {full:6.1%} of places are tokens, {shapes:4} shapes"
        if name in sides:
            middle, quarters = statistics.median(times[name]), statistics.quantiles(times[name], n=4)
            speed = 1e3 * sides[name].tokens / middle
            figures = [f"{middle:.1f}", f"{quarters[2] - quarters[0]:.1f}", f"{speed:.0f}"]
            told += f", {speed:10,.0f} target tokens/s"
        print(told, flush=True)
        rows.append([name, options.tokens, options.size, f"{full:.4f}", shapes, *figures, options.threads, *where()])
    append(RESULTS, HEADER, rows)


if __name__ == "__main__":
    main()
