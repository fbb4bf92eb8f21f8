"""The attentional LSTM decoder on a GPU beside a loop over LSTMCell and cuDNN's LSTM alone, forward and backward.

A teacher-forced pass of Luong's decoder (general attention, input feeding) from embeddings and an encoded source to the
gradient of every parameter, bf16 by autocast. Sides: a loop over nn.LSTMCell as one would write it; ours step by step;
ours as one operation (models/decoders/recurrent_fused.py); each eager and replayed as one CUDA graph; and nn.LSTM by cuDNN
of the same size,
which has no attention and no feeding, in bf16 throughout. Parity comes first (parity.py), and equal bits in 250 repeats.
Rows are appended to results/recurrent.csv as they come.

    python benchmarks/recurrent.py                      all of it, on one GPU
    python benchmarks/recurrent.py --only parity        without the times
"""

import argparse
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch
from torch import Tensor, nn

import _bare  # noqa: F401
from _timing import WHERE, Budget, Measured, captured, put, tried, where
from parity import passed
from regard.attention.types import Encoded
from regard.models.attention_factory import build_attention
from regard.models.decoders import recurrent_fused
from regard.models.decoders.recurrent import Recurrent

RESULTS = Path(__file__).parent / "results" / "recurrent.csv"
SHAPES = [(128, 32, 32, 512), (64, 50, 50, 1024)]
"""Batch, steps, source, width."""
HEADER = ["name", "shape", "dtype", "ms", "spread_ms", "peak_bytes", "over_eager", "over_cudnn", *WHERE]
DEVICES = recurrent_fused.DEVICES

Shape = tuple[int, int, int, int]


class Hand(nn.Module):
    """Luong's general attention with input feeding, one LSTMCell step at a time."""

    def __init__(self, width: int):
        super().__init__()
        self.table = nn.Embedding(100, width)
        self.cell = nn.LSTMCell(2 * width, width)
        self.general, self.combine = nn.Linear(width, width, bias=False), nn.Linear(2 * width, width)

    def forward(self, tokens: Tensor, source: Tensor, keep: Tensor, start: Tensor) -> Tensor:
        keys, found = self.general(source), []
        h = c = feed = start
        for word in self.table(tokens).unbind(1):
            h, c = self.cell(torch.cat((word, feed), -1), (h, c))
            scores = (keys @ h[..., None].to(keys.dtype))[..., 0].masked_fill(~keep, -torch.inf)
            context = (scores.softmax(-1)[:, None].to(source.dtype) @ source)[:, 0]
            feed = torch.tanh(self.combine(torch.cat((context, h), -1)))
            found.append(feed)
        return torch.stack(found, 1)


class Case:
    """Fresh random inputs of one shape, a decoder of ours for them, and what is asked of every side."""

    def __init__(self, shape: Shape, name: str = "bilinear", dtype: torch.dtype = torch.float32):
        batch, steps, keys, width = shape
        self.shape, self.half = shape, True
        self.decoder = Recurrent(100, width, width, attention=partial(build_attention, name)).to("cuda", dtype)
        self.tokens = torch.randint(100, (batch, steps), device="cuda")
        self.source = torch.randn(batch, keys, width, device="cuda", dtype=dtype).requires_grad_()
        lengths = torch.randint(keys // 2, keys + 1, (batch,), device="cuda")
        self.keep = torch.arange(keys, device="cuda") < lengths[:, None]
        self.final = torch.randn(batch, 1, width, device="cuda", dtype=dtype)
        self.flow = torch.randn(batch, steps, width, device="cuda", dtype=dtype)

    def cast(self) -> torch.autocast:
        """What the way there runs in: the way back follows it."""
        return torch.autocast("cuda", torch.bfloat16, enabled=self.half)

    def ours(self) -> list[Tensor]:
        """Readings, then the gradients of the source and of every parameter that takes part."""
        with self.cast():
            memory = self.decoder.remember(Encoded(self.source, self.keep, (self.final,)))
            read = self.decoder(self.tokens, memory, project=False).output
        learned = [each for name, each in self.decoder.named_parameters() if not name.startswith("output")]
        return [read, *torch.autograd.grad(read, [self.source, *learned], self.flow.to(read.dtype))]

    def by_hand(self, hand: Hand) -> list[Tensor]:
        with self.cast():
            read = hand(self.tokens, self.source, self.keep, self.final[:, 0])
        return [read, *torch.autograd.grad(read, [self.source, *hand.parameters()], self.flow.to(read.dtype))]

    def cudnn(self) -> Callable[[], object]:
        width = self.shape[3]
        lstm = nn.LSTM(width, width, batch_first=True).to("cuda", torch.bfloat16)
        data = torch.randn(*self.flow.shape, device="cuda", dtype=torch.bfloat16).requires_grad_()
        flow = self.flow.bfloat16()

        def run() -> object:
            found, _ = lstm(data)
            return torch.autograd.grad(found, [data, *lstm.parameters()], flow)

        return run


def one_by_one(side: Callable[[], list[Tensor]]) -> Callable[[], list[Tensor]]:
    """The same without the one operation."""

    def run() -> list[Tensor]:
        recurrent_fused.DEVICES = ()
        try:
            return side()
        finally:
            recurrent_fused.DEVICES = DEVICES

    return run


def parity() -> bool:
    """Whether the loop is as near to double precision as the steps one by one, and repeats are equal."""
    return passed(["loop"]) & repeats()


def repeats() -> bool:
    """Whether 250 replays of a graph leave the same bits, and those of a plain call."""
    case = Case((32, 8, 20, 128))
    plain = [each.detach().clone() for each in case.ours()]  # what still had a graph would tie the capture to this stream
    replay = captured(case.ours)
    for _ in range(250):
        if not all(torch.equal(one, other) for one, other in zip(plain, replay(), strict=True)):  # type: ignore[call-overload]
            print("repeats DIFFER")
            return False
    print("250 replays are equal")
    return True


def sides(case: Case) -> dict[str, Callable[[], Callable[[], object]]]:
    """Every side, made when its turn comes."""
    hand = Hand(case.shape[3]).cuda()
    additive = Case(case.shape, "additive")
    by_hand, ours = partial(case.by_hand, hand), case.ours
    return {
        "LSTMCell loop": lambda: by_hand,
        "cuDNN LSTM alone": case.cudnn,
        "ours one operation, graph": lambda: captured(ours),
        "ours one operation": lambda: ours,
        "cuDNN LSTM alone, graph": lambda: captured(case.cudnn()),
        "LSTMCell loop, graph": lambda: captured(by_hand),
        "ours step by step, graph": lambda: captured(one_by_one(ours)),
        "ours additive, graph": lambda: captured(additive.ours),
        "ours step by step": lambda: one_by_one(ours),
    }


def compare(shape: Shape, rounds: int, budget: Budget) -> None:
    """Every side of one shape, and how each stands to the loop of LSTMCells and to cuDNN, which come first."""
    case, found = Case(shape), dict[str, Measured]()
    for name, make in sides(case).items():
        if budget.over(f"{shape!s:20} {name}") or (taken := tried(name, make, rounds)) is None:
            continue
        each = found[name] = taken
        eager, cudnn = (
            found[other].ms if other in found else float("nan") for other in ("LSTMCell loop", "cuDNN LSTM alone")
        )
        ratios = eager / each.ms, each.ms / cudnn
        told = f"{ratios[0]:6.1f} x as fast as LSTMCell, {ratios[1]:5.2f} of cuDNN's time"
        print(f"{shape!s:20} {name:28} {each.ms:8.3f} ms ±{each.spread:.3f} {each.peak / 2**20:8.1f} MiB {told}", flush=True)
        shown = "x".join(map(str, shape))
        numbers = [f"{each.ms:.4f}", f"{each.spread:.4f}", each.peak, *(f"{ratio:.3f}" for ratio in ratios)]
        put(RESULTS, HEADER, [name, shown, "bfloat16", *numbers, *where()])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=["parity", "time"], help="one of the two")
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--seconds", type=float, default=120.0, help="of the times; what is left then is left out")
    options = parser.parse_args()
    if not torch.cuda.is_available():
        print("needs a GPU, and there is none; on a CPU run tests/models/decoders/test_recurrent_fused.py", file=sys.stderr)
        return 2
    torch.manual_seed(0)
    fine = options.only == "time" or parity()
    budget = Budget(options.seconds)
    for shape in SHAPES if options.only != "parity" else []:
        compare(shape, options.rounds, budget)
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
