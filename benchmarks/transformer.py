"""Training Transformer-base on a GPU beside Hugging Face's Marian and nn.Transformer: target tokens a second, peak memory.

6 + 6 layers of 512 with 8 heads and 2,048 inside, 16,000 words on both sides, bf16 by autocast, dropout 0.1, label smoothing
0.1, gradients cut to 1, fused AdamW; batches of 400 and 128 sentences of 32 tokens, with the masks that padding needs. Ours
is what `regard train` does: the model of a config, its loss that never holds all logits, its CUDA graphs, with and without
train.compile, and what each kernel is worth. A step of ours ends by fetching its loss; those of others wait for nothing.
Parity comes first (parity.py): kernels against double precision, and small trainings with all of them and with none. A side
that fails says why and the rest go on; a row is appended to results/transformer.csv as soon as it is there.

    python benchmarks/transformer.py                      all of it, on one GPU
    python benchmarks/transformer.py --only ours          the sides whose name holds this
    python benchmarks/transformer.py --only "ours, compiled, graph" --profile      where its time goes
"""

import argparse
import gc
import statistics
import sys
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

import _bare  # noqa: F401
from _parity_models import without
from _peers import HEADS, INNER, LAYERS, SIZE, VOCABULARY, Marian, Torch
from _timing import WHERE, Budget, on_gpu, put, where
from _updates import Updates, batch_of
from parity import passed
from regard.config import AttentionPart, Dropout, Model, Train
from regard.data.batch import Batch, shifted
from regard.kernels import short
from regard.losses import linear_cross_entropy
from regard.models.layers import add_norm, feedforward
from regard.models.seq2seq import build
from regard.training.compile import CompiledLayers
from regard.training.mixed_precision import CastWeights

RESULTS = Path(__file__).parent / "results" / "transformer.csv"
HEADER = ["name", "shape", "dtype", "ms", "spread_ms", "tokens_per_second", "peak_bytes", "start_s", *WHERE]
SHAPES = [(400, 32), (128, 32)]
ASKED = {(400, 32): 650e3, (128, 32): 450e3}
PUBLISHED = ("ours, graph", "ours, compiled, graph")
"""The sides that the figure is asked of."""
COMPILING = 25.0
"""Seconds that a side takes which torch.compile compiles; it is not begun where fewer are left."""
DEVICE = torch.device("cuda")
BASE = Model(
    encoder="transformer",
    decoder="transformer",
    attention=AttentionPart("transformer", heads=HEADS),
    hidden_size=SIZE,
    layers=LAYERS,
    heads=HEADS,
    feedforward_size=INNER,
)

Step = Callable[[], object]


def ours(batch: Batch, *, compiled: bool = False, halved: bool = True, graph: bool = True) -> Updates:
    """What `regard train` does; with its layers compiled, or its matrices rounded in one go."""
    settings = Train(precision="bf16", optimizer="adamw", learning_rate=1e-4, label_smoothing=0.1)
    model = build(BASE, Dropout(0.1, 0.1), VOCABULARY, VOCABULARY, True).to(DEVICE).train()
    layers = CompiledLayers(model) if compiled else CastWeights(model) if halved else nullcontext()
    return Updates(model, batch, settings, layers, graph)


class ExcludeSelf:
    """An update of a model that gives logits for a batch."""

    def __init__(self, batch: Batch, model: nn.Module, compiled: bool = False):
        self.batch = batch.to(DEVICE)
        self.model = model.to(DEVICE).train()
        self.run = torch.compile(self.model) if compiled else self.model
        self.optimiser = torch.optim.AdamW(self.model.parameters(), 1e-4, fused=True)

    def __call__(self) -> None:
        self.optimiser.zero_grad()
        with torch.autocast("cuda", torch.bfloat16):
            logits = self.run(self.batch.source.data, self.batch.source.keep, shifted(self.batch.target.data))
            loss = F.cross_entropy(logits.flatten(0, 1), self.batch.target.data.flatten(), label_smoothing=0.1)
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimiser.step()


def sides(batch: Batch) -> dict[str, tuple[Callable[[], Step], tuple[Any, ...]]]:
    """Every side by its name: how it is made, and the kernels that it goes without."""
    rows = batch.source.data.shape[0]
    made: dict[str, tuple[Callable[[], Step], tuple[Any, ...]]] = {
        "ours, graph": (lambda: ours(batch), ()),
        "Hugging Face Marian, eager": (lambda: ExcludeSelf(batch, Marian()), ()),
    }
    if rows == SHAPES[0][0]:  # the figures that are asked for come first
        made["nn.Transformer, compiled"] = lambda: ExcludeSelf(batch, Torch(), compiled=True), ()
    made |= {
        "nn.Transformer, eager": (lambda: ExcludeSelf(batch, Torch()), ()),
        "ours, eager": (lambda: ours(batch, graph=False), ()),
    }
    if rows == SHAPES[0][0]:
        made |= {
            "ours, graph, SDPA": (lambda: ours(batch), (short,)),
            "ours, graph, loss in steps": (lambda: ours(batch), (linear_cross_entropy,)),
            "ours, graph, sums and norms apart": (lambda: ours(batch), (add_norm,)),
            "ours, graph, bends apart": (lambda: ours(batch), (feedforward,)),
            "ours, graph, matrices one by one": (lambda: ours(batch, halved=False), ()),
            "ours, compiled, graph": (lambda: ours(batch, compiled=True), ()),
            "ours, compiled, graph, SDPA": (lambda: ours(batch, compiled=True), (short,)),
        }
    return made


def measure(make: Callable[[], Step], rounds: int, profile: bool) -> tuple[float, float, int, float]:
    """Median ms a step over groups of five, their spread, peak bytes, and seconds until the first five were done."""
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    made: list[Step] = []

    def start() -> None:
        made.append(make())
        for _ in range(5):
            made[0]()

    begin = on_gpu(start) / 1e3
    step = made[0]
    times = [on_gpu(lambda: [step() for _ in range(5)]) / 5 for _ in range(rounds)]
    peak = torch.cuda.max_memory_allocated() - before
    if profile:
        told(step)
    quarter = statistics.quantiles(times, n=4)
    return statistics.median(times), quarter[2] - quarter[0], peak, begin


def told(step: Step) -> None:
    """The kernels that take longest, in ms a step."""
    from torch.profiler import ProfilerActivity
    from torch.profiler import profile as profiled

    with profiled(activities=[ProfilerActivity.CUDA]) as found:
        for _ in range(5):
            step()
        torch.cuda.synchronize()
    kernels = sorted(found.key_averages(), key=lambda each: -each.self_device_time_total)
    total = sum(each.self_device_time_total for each in kernels)
    print(f"  {total / 5e3:8.3f} ms in {sum(each.count for each in kernels) // 5} kernels a step")
    for each in kernels[:40]:
        print(f"  {each.self_device_time_total / 5e3:8.3f} ms {each.count / 5:7.1f} x {each.key[:110]}")


def compare(shape: tuple[int, int], only: str, rounds: int, profile: bool, budget: Budget) -> None:
    """Every side that was asked for, one after the other."""
    batch, tokens = batch_of(*shape, VOCABULARY), shape[0] * shape[1]
    for name, (make, absent) in sides(batch).items():
        if only not in name or budget.over(f"{shape!s:10} {name}", COMPILING if "compiled" in name else 0.0):
            continue
        try:
            with without(*absent):
                torch.manual_seed(0)
                ms, spread, peak, begin = measure(make, rounds, profile)
        except Exception as error:  # a side that cannot run here is a finding, not the end
            print(f"{name:30} {type(error).__name__}: {' '.join(str(error).split())[:300]}", flush=True)
            continue
        finally:
            gc.collect()
            torch.compiler.reset()
            torch.cuda.empty_cache()
        speed = 1e3 * tokens / ms
        asked = f", asked {ASKED[shape] / 1e3:.0f}k" if name in PUBLISHED else ""
        print(
            f"{shape!s:10} {name:30} {ms:7.2f} ms ±{spread:.2f} {speed / 1e3:7.1f}k tokens/s{asked} "
            f"{peak / 2**30:6.2f} GiB, first steps after {begin:.1f} s",
            flush=True,
        )
        numbers = [f"{ms:.4f}", f"{spread:.4f}", f"{speed:.0f}", peak, f"{begin:.2f}"]
        put(RESULTS, HEADER, [name, "x".join(map(str, shape)), "bfloat16", *numbers, *where()])


def parity() -> bool:
    """Whether the kernels are as near to double precision as plain PyTorch, and a training with them goes as without."""
    return passed(["brief", "loss", "residual", "feedforward", "layers", "updates"])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="parity, time, or the sides whose name holds this")
    parser.add_argument("--seconds", type=float, default=120.0, help="of the times; what is left then is left out")
    parser.add_argument("--rows", type=int, nargs="+", default=[rows for rows, _ in SHAPES], help="of which shapes")
    parser.add_argument("--rounds", type=int, default=10, help="groups of five steps that are timed")
    parser.add_argument("--profile", action="store_true", help="show the kernels of each side")
    options = parser.parse_args()
    if not torch.cuda.is_available():
        print("needs a GPU, and there is none; on a CPU run benchmarks/training.py", file=sys.stderr)
        return 2
    torch.manual_seed(0)
    fine = parity() if options.only in ("", "parity") else True
    asked = [shape for shape in SHAPES if shape[0] in options.rows and options.only != "parity"]
    only = "" if options.only == "time" else options.only
    for shape in asked:  # each has its share of the time
        budget = Budget(options.seconds * shape[0] / sum(rows for rows, _ in asked))
        compare(shape, only, options.rounds, options.profile, budget)
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
