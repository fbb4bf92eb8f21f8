"""Attention in one pass on a GPU, and what it says about where it looked: right first, then time and memory, in one run.

Parity comes first (parity.py: flash, rows and local), and every variant is compiled in processes side by side. Then medians
by device events, with the spread of their middle half, and the bytes that a pass adds at its highest:

    statistics   flash with and without them, beside PyTorch's kernel alone and with a second pass (sdpa, then a sweep)
    t5           a learned bias with its gradient, beside PyTorch's kernel with the bias as a mask, and the three stages
    window       a scope of +-128, beside FlexAttention, and PyTorch's kernel with a mask
    local_p      windows that queries place, beside gathered ones, the formula over all keys, and FlexAttention's fixed ones,
                 which have no projections; ours alone with the centres given is as much as these compute
    rows         the weights of eight queries, beside those of one query at a time

Every set of tiles is a row. Window and local_p are also replayed as CUDA graphs, where the host has no part, beside what
FlexAttention takes so; statistics are in any case. Rows are appended to results/flash.csv as they come.

    python benchmarks/flash.py                     all of it, on one GPU, in about two minutes
    python benchmarks/flash.py --only window t5    some of it
"""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import cast

import torch
from torch import Tensor
from torch.nn import functional as F

import _bare  # noqa: F401
import _timing
from _apart import apart
from _timing import WHERE, Budget, Measured, captured, highest, measure, put, staged, where
from parity import passed
from regard.attention.attend import run_reference
from regard.attention.local_window import GaussianWindow, WindowScope
from regard.attention.mechanisms.local_p import LocalP
from regard.attention.normalise.softmax import Softmax
from regard.attention.scope import Scope
from regard.attention.scope.causal import Causal
from regard.attention.scope.everywhere import Everywhere
from regard.attention.scope.local import Local
from regard.attention.score import compute_relative_positions
from regard.attention.score.scaled_dot import ScaledDot
from regard.attention.score.t5 import T5
from regard.attention.types import Request
from regard.kernels import flash, predicted_window, sdpa
from regard.kernels import weights as rows

RESULTS = Path(__file__).parent / "results" / "flash.csv"
HEADER = ["case", "name", "pass", "dtype", "ms", "spread_ms", "peak_bytes", *WHERE]
QUICK = ("entropy", "max", "argmax", "mean_position")
EVERY = (*QUICK, "spread", "received", "uniform", "top_3")
TILES = ([64, 64, 4, 3], [128, 64, 8, 3])
CHOSEN = flash.select_tiles

Side = Callable[[], list[Tensor]]


def request(shape: tuple[int, int, int, int], dtype: torch.dtype, score=ScaledDot(), scope: Scope = Everywhere()) -> Request:
    query, keys, values = (torch.randn(shape, device="cuda", dtype=dtype) for _ in range(3))
    return Request(query, keys, values, score, Softmax(), scope, 0.0, 0, False, ())


def once(run: Callable[[Request], object], asked: Request, flow: Tensor | None) -> list[Tensor]:
    """The context, with `flow` the gradient of every input and of T5's table, and the statistics."""
    with torch.set_grad_enabled(flow is not None):
        leaves = [each.detach().requires_grad_(flow is not None) for each in asked[:3]]
        found = run(asked._replace(query=leaves[0], keys=leaves[1], values=leaves[2]))
        if flow is None:
            return [found.context, *found.statistics.values()]
        wanted = [*leaves, *([asked.score.b] if isinstance(asked.score, T5) else [])]
        return [found.context, *torch.autograd.grad(found.context, wanted, flow), *found.statistics.values()]


def tiled(tiles: list[int], side: Side) -> Side:
    """The same with other tiles."""

    def run() -> list[Tensor]:
        flash.select_tiles = lambda query, values: tiles
        try:
            return side()
        finally:
            flash.select_tiles = CHOSEN

    return run


def statistics_case() -> dict[str, Side]:
    sides: dict[str, Side] = {}
    for shape in ((4, 16, 4096, 128), (4, 16, 4096, 64), (64, 8, 512, 64)):
        for scope in (Everywhere(), Causal()):
            plain = request(shape, torch.bfloat16, scope=scope)
            label = f"{'x'.join(map(str, shape))} {type(scope).__name__.lower()}"
            sides[f"sdpa {label} none"] = lambda plain=plain: once(sdpa.run, plain, None)
            for tiles in TILES:
                for names, told in (((), "none"), (QUICK, "quick"), (EVERY, "all"))[: 3 if tiles == TILES[0] else 2]:
                    side = lambda asked=plain._replace(statistics=names): once(flash.run, asked, None)  # noqa: E731
                    sides[f"flash {label} {told} {'x'.join(map(str, tiles))}"] = tiled(tiles, side)
        flow, label = torch.randn_like(plain.values), f"{'x'.join(map(str, shape))} causal fwd+bwd"
        sides[f"sdpa {label}"] = lambda plain=plain, flow=flow: once(sdpa.run, plain, flow)
        sides[f"flash {label}"] = lambda plain=plain, flow=flow: once(flash.run, plain, flow)
    swept = plain._replace(statistics=QUICK)
    sides[f"sdpa {label.removesuffix(' fwd+bwd')} quick"] = lambda: once(sdpa.run, swept, None)
    return sides


def t5_case() -> dict[str, Side]:
    score = T5(16, scale=0.125).cuda()
    asked = request((4, 16, 2048, 64), torch.bfloat16, score, Causal())
    flow = torch.randn_like(asked.values)

    def masked(part: Request) -> object:
        bucket = score.bucket(compute_relative_positions(2048, 2048, 0, part.query.device))[0]
        bias = score.b[:, bucket].to(part.query.dtype).masked_fill(~part.allowed[0, 0], float("-inf"))
        return flash.Attended(F.scaled_dot_product_attention(part.query, part.keys, part.values, bias[None], scale=0.125))

    sides: dict[str, Side] = {"reference fwd+bwd": lambda: once(run_reference, asked, flow)}
    sides["sdpa with a mask fwd+bwd"] = lambda: once(masked, asked, flow)
    for tiles in TILES:
        sides[f"flash fwd+bwd {'x'.join(map(str, tiles))}"] = tiled(tiles, lambda: once(flash.run, asked, flow))
    return sides


def window_case() -> dict[str, Side]:
    asked = request((4, 16, 8192, 64), torch.bfloat16, scope=Local(128))
    flow, flex = torch.randn_like(asked.values), flex_of(asked)
    sides: dict[str, Side] = {}
    for backward in (None, flow):
        label = "fwd" if backward is None else "fwd+bwd"
        side = lambda backward=backward: once(flex, asked, backward)  # noqa: E731
        sides |= {f"flex {label}": side, f"flex {label}, replayed": replayed(side)}
        for tiles in TILES:
            side = tiled(tiles, lambda backward=backward: once(flash.run, asked, backward))
            shown = "x".join(map(str, tiles))
            sides |= {f"flash {label} {shown}": side, f"flash {label}, replayed {shown}": replayed(side)}
        sides[f"sdpa with a mask {label}"] = lambda backward=backward: once(sdpa.run, asked, backward)
    return sides


def local_case() -> dict[str, Side]:
    sides: dict[str, Side] = {}
    for width in (128, 10):
        module = LocalP(64, width=width).to("cuda", torch.bfloat16)
        query, source = (torch.randn(4, 8192, 64, device="cuda", dtype=torch.bfloat16) for _ in range(2))

        def run(impl: str, module: LocalP = module, query: Tensor = query, source: Tensor = source) -> list[Tensor]:
            module.impl = impl
            context = module(query, module.remember(source)).context
            return [context, *torch.autograd.grad(context.sum(), list(module.parameters()))]

        for tiles in TILES:
            shown, side = "x".join(map(str, tiles)), tiled(tiles, lambda run=run: run("fused"))
            sides[f"local +-{width} fwd+bwd {shown}"] = side
            sides[f"local +-{width} fwd+bwd, replayed {shown}"] = replayed(side)
        sides[f"gathered +-{width} fwd+bwd"] = lambda run=run: run("reference")
        sides[f"all keys +-{width} fwd+bwd"] = lambda module=module, data=(query, source): dense(module, *data)
        asked = request((4, 1, 8192, 64), torch.bfloat16, scope=Local(width))
        placed = windows(asked, width)
        sides[f"local alone +-{width} fwd+bwd"] = placed
        sides[f"local alone +-{width} fwd+bwd, replayed"] = replayed(placed)
        flexible = flex_of(asked)
        side = lambda asked=asked, run=flexible: once(run, asked, asked.values)  # noqa: E731
        sides[f"flex, fixed windows +-{width} fwd+bwd"] = side
        sides[f"flex, fixed windows +-{width} fwd+bwd, replayed"] = replayed(side)
    return sides


def windows(asked: Request, width: int) -> Side:
    """The kernel with centres that are given, anywhere in the source: no projection, and nothing predicted."""
    batch, _, queries, _ = asked.query.shape
    centre = queries * torch.rand(batch, queries, device="cuda")

    def run(part: Request) -> object:
        dimmed = GaussianWindow(Softmax(), centre, width)
        return predicted_window.run(part._replace(normalise=dimmed, scope=WindowScope(centre, width)))

    return lambda: once(run, asked, asked.values)


def replayed(side: Side) -> Side:
    """The same as one CUDA graph, which is recorded when it first runs: the host has no part in its time."""
    made: list[Callable[[], object]] = []

    def run() -> list[Tensor]:
        if not made:
            made.append(_timing.captured(side))
        return cast(list[Tensor], made[0]())

    return run


def dense(module: LocalP, query: Tensor, source: Tensor) -> list[Tensor]:
    """Luong's formula over all keys, as it is written, and the gradient of every parameter."""
    W, v, length, width = module.centre.W.weight, module.centre.v.weight[0], source.shape[1], module.width
    centre = length * torch.sigmoid(torch.tanh(query @ W.mT) @ v)
    distance = torch.arange(length, device=query.device) - centre[..., None]
    scores = query @ (source @ module.score.W.weight[0].mT).mT
    weights = torch.softmax(scores.masked_fill(distance.abs() > width, -torch.inf), dim=-1)
    context = (weights * torch.exp(-2 * (distance / width).square())).to(source.dtype) @ source
    return [context, *torch.autograd.grad(context.sum(), list(module.parameters()))]


def flex_of(asked: Request) -> Callable[[Request], object]:
    """FlexAttention compiled for a scope."""
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    length = asked.query.shape[2]
    blocks = create_block_mask(lambda b, h, q, k: asked.scope(b, h, q, k), None, None, length, length, device="cuda")
    compiled = torch.compile(flex_attention, dynamic=False)
    return lambda part: flash.Attended(compiled(part.query, part.keys, part.values, block_mask=blocks))


def rows_case() -> dict[str, Side]:
    asked = request((4, 16, 8192, 64), torch.bfloat16, scope=Causal())
    places = list(range(0, 8192, 1024))

    def one_by_one() -> list[Tensor]:
        parts = [asked._replace(query=asked.query[:, :, row, None], offset=row) for row in places]
        return [torch.cat([formed(part) for part in parts], dim=2)]

    return {"rows": lambda: [rows.select_weights(asked, places)], "one by one": one_by_one}


@torch.no_grad()
def formed(asked: Request) -> Tensor:
    """The weights by the first two stages, in single precision, as a recorder has them; a recorder itself needs NumPy."""
    wide = asked._replace(query=asked.query.float(), keys=asked.keys.float())
    return Softmax()(wide.scores(), wide.allowed)


CASES = {"window": window_case, "local_p": local_case, "t5": t5_case, "rows": rows_case, "statistics": statistics_case}


def work(piece: tuple[str, str]) -> None:
    """One pass of a side, so that it is compiled."""
    case, name = piece
    CASES[case]()[name]()
    torch.cuda.synchronize()


def compiled(timed: dict[tuple[str, str], Side], options: argparse.Namespace) -> None:
    """Ours, where programs differ by neither lengths nor rows, and FlexAttention's."""
    same = ("sdpa", "gathered", "all keys", "one by one", "reference")
    known = "64x8x512x64", "replayed"
    pieces = [piece for piece in timed if not piece[1].startswith(same) and not any(each in piece[1] for each in known)]
    for answer in apart(work, pieces, options.seconds, options.workers):
        print(f"compiled {' '.join(answer.piece):60} {answer.failed or f'{answer.seconds:.1f} s'}", flush=True)


def timed(case: str, side: Side, rounds: int) -> Measured:
    """What a side takes; statistics without what it takes to launch them, which is as long."""
    if case != "statistics":
        return measure(side, rounds, seconds=0.5)
    return measure(captured(side), rounds, seconds=0.5)._replace(peak=highest(side))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=["parity", *CASES], default=["parity", *CASES])
    parser.add_argument("--rounds", type=int, default=15)
    staged(parser)
    options = parser.parse_args()
    if not torch.cuda.is_available():
        print(
            "needs a GPU, and there is none; the same programs run in tests/kernels by Triton's interpreter", file=sys.stderr
        )
        return 2
    torch.manual_seed(0)
    sides = {(case, name): side for case, make in CASES.items() if case in options.only for name, side in make().items()}
    if options.compile != "never":
        compiled(sides, options)
    if options.compile == "alone":
        return 0
    fine = "parity" not in options.only or passed(["flash", "rows", "local"])
    budget = Budget(options.seconds)
    for (case, name), side in sides.items():
        if budget.over(f"{case:10} {name}"):
            continue
        try:
            found = timed(case, side, options.rounds)
        except Exception as error:  # tiles too large for a program are a finding too
            print(f"{case:10} {name:60} {type(error).__name__}: {str(error)[:80]}", flush=True)
            continue
        print(f"{case:10} {name:60} {found.ms:9.4f} ms ±{found.spread:.4f} {found.peak / 2**20:9.1f} MiB", flush=True)
        taken = [f"{found.ms:.4f}", f"{found.spread:.4f}", found.peak]
        put(RESULTS, HEADER, [case, name, "fwd+bwd" if "fwd+bwd" in name else "fwd", "bfloat16", *taken, *where()])
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
