"""Host time of a call from Python: attend(), MultiHead and their rivals, in microseconds.

The inputs are so small that the device has next to nothing to do. A time is the lower decile of calls that wait for nothing,
so that a GPU computes while the host goes on. Rows are appended to results/host.csv.

    regard bench host        about ten seconds
"""

import argparse
import os
import time
from collections.abc import Callable
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional as F

import _bare  # noqa: F401
from _timing import WHERE, put, where
from regard.attention import MultiHead, attend
from regard.attention.normalise.entmax import Entmax
from regard.attention.scope.causal import Causal
from regard.attention.scope.padding import Padding
from regard.attention.score.additive import Additive

HEADER = ["device", "call", "pass", "us", *WHERE]


def measure(call: Callable[[], object], gpu: bool, rounds: int = 300) -> float:
    for _ in range(10):
        call()
    times = []
    for _ in range(rounds):
        if gpu:
            torch.cuda.synchronize()
        began = time.perf_counter()
        call()
        times.append(time.perf_counter() - began)
    return 1e6 * sorted(times)[rounds // 10]


def list_calls(device: str, dtype: torch.dtype, train: bool) -> dict[str, Callable[[], object]]:
    shape = (8, 8, 32, 64) if device == "cuda" else (1, 2, 4, 8)
    sides = [torch.randn(*shape, device=device, dtype=dtype, requires_grad=train) for _ in range(3)]
    padding = Padding.from_lengths(torch.arange(1, shape[0] + 1, device=device).clamp(max=shape[2]), shape[2])
    mask = padding.keep[:, None, None]
    score = Additive(shape[3], shape[3]).to(device, dtype)
    data = torch.randn(shape[0], shape[2], shape[1] * shape[3], device=device, dtype=dtype, requires_grad=train)
    heads = MultiHead(data.shape[2], heads=shape[1]).to(device, dtype)
    theirs = nn.MultiheadAttention(data.shape[2], shape[1], batch_first=True, device=device, dtype=dtype)
    return {
        "F.scaled_dot_product_attention": lambda: F.scaled_dot_product_attention(*sides),
        "attend, plain": lambda: attend(*sides),
        "attend, plain, reference": lambda: attend(*sides, impl="reference"),
        "F.scaled_dot_product_attention, causal": lambda: F.scaled_dot_product_attention(*sides, is_causal=True),
        "attend, causal": lambda: attend(*sides, scope=Causal()),
        "F.scaled_dot_product_attention, padding mask": lambda: F.scaled_dot_product_attention(*sides, attn_mask=mask),
        "attend, padding": lambda: attend(*sides, scope=padding),
        "attend, entropy": lambda: attend(*sides, statistics=("entropy",)),
        "attend, entmax": lambda: attend(*sides, normalise=Entmax()),
        "attend, additive": lambda: attend(*sides, score=score),
        "nn.MultiheadAttention": lambda: theirs(data, data, data, need_weights=False),
        "MultiHead": lambda: heads(data, heads.remember(data)),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cuda" if torch.cuda.is_available() else "cpu")
    options = parser.parse_args()
    gpu = options.device == "cuda"
    results = Path(os.environ.get("OUT") or Path(__file__).parent / "results") / "host.csv"
    for train in (False, True):
        with torch.set_grad_enabled(train):
            for name, call in list_calls(options.device, torch.bfloat16 if gpu else torch.float32, train).items():
                taken = measure(call, gpu)
                which = "forward of a training" if train else "forward"
                print(f"{name:48} {which:22} {taken:8.1f} us", flush=True)
                put(results, HEADER, [options.device, name, which, round(taken, 1), *where()])


if __name__ == "__main__":
    main()
