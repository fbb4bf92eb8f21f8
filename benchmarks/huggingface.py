"""Models of Hugging Face with `attn_implementation="regard"` beside `sdpa`: a forward pass, a training step, memory.

Models are built from configs with random weights, at the sizes of Llama-3.2-1B, BERT-base and ViT-B/16, and of a 1B
decoder with a sliding window of 1,024; inputs of BERT are padded. Each round runs every implementation once, in turn;
times are of the whole call from Python, host included. Where a rival is eager attention it is named. `recording` is a
forward pass of the 1B model over 8,192 tokens while statistics and the last row of every attention are recorded, with
its peak memory beside the pass that records nothing.

    python benchmarks/huggingface.py                    on a GPU, bf16, about two minutes
    python benchmarks/huggingface.py --small            models of two layers, on a CPU too

Rows are appended to results/huggingface.csv.
"""

import argparse
import copy
import csv
import gc
import platform
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from transformers import (
    BertConfig,
    BertForMaskedLM,
    LlamaConfig,
    LlamaForCausalLM,
    MistralConfig,
    MistralForCausalLM,
    ViTConfig,
    ViTForImageClassification,
)

import regard
import regard.huggingface
from attention import commit, hardware

RESULTS = Path(__file__).parent / "results" / "huggingface.csv"
FIELDS = ["model", "pass", "shape", "implementation", "dtype", "ms", "spread_ms", "over_sdpa", "peak_mib", "peak_over_sdpa"]
WHERE = ["hardware", "versions", "commit"]


class Workload(NamedTuple):
    """Model class with its config, inputs, and the passes that are timed."""

    name: str
    model_class: type[Any]
    config: Any
    inputs: dict[str, Tensor]
    training: bool = True
    recording: bool = False


def build_workloads(small: bool, device: torch.device) -> list[Workload]:
    """Workloads at their published sizes, or of two layers and short inputs."""
    layers, tokens, images = (2, 256, 2) if small else (None, 2048, 64)
    long = 1024 if small else 8192
    decoder = {
        "vocab_size": 4096 if small else 128256,
        "hidden_size": 2048,
        "intermediate_size": 8192,
        "num_hidden_layers": layers or 16,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "max_position_embeddings": 16384,
    }
    llama = LlamaConfig(**decoder)
    window = MistralConfig(**{**decoder, "vocab_size": 4096}, sliding_window=1024)
    bert = BertConfig(num_hidden_layers=layers or 12)
    vit = ViTConfig(num_hidden_layers=layers or 12)
    words = torch.randint(5, 4000, (images, 512), device=device)
    keep = torch.arange(512, device=device) < torch.randint(100, 513, (images, 1), device=device)
    pictures = {"pixel_values": torch.randn(images, 3, 224, 224, device=device)}
    ids = torch.randint(5, 4000, (4, long), device=device)
    return [
        Workload("Llama-1B", LlamaForCausalLM, llama, {"input_ids": ids[:, :tokens]}),
        Workload("BERT-base, padded", BertForMaskedLM, bert, {"input_ids": words, "attention_mask": keep.long()}),
        Workload("ViT-B/16", ViTForImageClassification, vit, pictures),
        Workload("1B, window of 1,024", MistralForCausalLM, window, {"input_ids": ids[:1]}, training=not small),
        Workload("Llama-1B", LlamaForCausalLM, llama, {"input_ids": ids[:1]}, training=False, recording=True),
    ]


def build_model(workload: Workload, implementation: str, device: torch.device, dtype: torch.dtype) -> nn.Module:
    torch.manual_seed(0)
    config = copy.deepcopy(workload.config)
    config._attn_implementation = implementation
    with device:
        return workload.model_class(config).to(dtype).eval()


def forward(model: nn.Module, inputs: dict[str, Tensor]) -> Callable[[], Any]:
    extra = {"logits_to_keep": 1} if "CausalLM" in type(model).__name__ else {}

    @torch.no_grad()
    def run() -> None:
        model(**inputs, **extra)

    return run


def train(model: nn.Module, inputs: dict[str, Tensor]) -> Callable[[], Any]:
    def run() -> None:
        output = model.train()(**inputs)
        output.logits.float().square().mean().backward()
        model.zero_grad(set_to_none=True)
        model.eval()

    return run


def record(model: nn.Module, inputs: dict[str, Tensor]) -> Callable[[], Any]:
    plain = forward(model, inputs)

    def run() -> None:
        with regard.record(model, rows=[-1], statistics=("entropy", "argmax", "received"), graph=False):
            plain()

    return run


def time_call(call: Callable[[], Any], device: torch.device) -> float:
    """Milliseconds of a call, launches and the wait for the device included."""
    synchronise(device)
    start = time.perf_counter()
    call()
    synchronise(device)
    return 1e3 * (time.perf_counter() - start)


def name_hardware(device: torch.device) -> str:
    return torch.cuda.get_device_name() if device.type == "cuda" else hardware()


def synchronise(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize()


def measure_peak(call: Callable[[], Any], device: torch.device) -> float:
    """MiB allocated at the highest while a call runs, weights of the model included; 0 on a CPU."""
    if device.type != "cuda":
        return 0.0
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    call()
    torch.cuda.synchronize()
    return torch.cuda.max_memory_allocated() / 2**20


def compare(calls: dict[str, Callable[[], Any]], rounds: int, device: torch.device) -> dict[str, tuple[float, float, float]]:
    """Median, spread of the middle half, and peak memory of each call, interleaved."""
    for call in calls.values():
        for _ in range(3):
            call()
    peaks = {name: measure_peak(call, device) for name, call in calls.items()}
    times: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            times[name].append(time_call(call, device))
    quarters = {name: statistics.quantiles(values, n=4) for name, values in times.items()}
    return {name: (statistics.median(times[name]), quarters[name][2] - quarters[name][0], peaks[name]) for name in calls}


def measure(workload: Workload, rounds: int, device: torch.device, dtype: torch.dtype) -> list[dict[str, object]]:
    inputs = {name: value.to(dtype) if value.is_floating_point() else value for name, value in workload.inputs.items()}
    shape = "x".join(str(size) for size in next(iter(inputs.values())).shape)
    rows: list[dict[str, object]] = []
    models = {name: build_model(workload, name, device, dtype) for name in ("sdpa", "regard")}
    models["regard"].load_state_dict(models["sdpa"].state_dict())
    passes: dict[str, dict[str, Callable[[], Any]]] = {"forward": {name: forward(models[name], inputs) for name in models}}
    if workload.recording:
        plain = passes["forward"]
        passes = {
            "recording": {
                "sdpa": plain["sdpa"],
                "regard": plain["regard"],
                "regard, recorded": record(models["regard"], inputs),
            }
        }
    elif workload.training:
        passes["training"] = {name: train(models[name], inputs) for name in models}
    for kind, calls in passes.items():
        figures = compare(calls, rounds, device)
        beside = figures["sdpa"]
        for name, (ms, spread, peak) in figures.items():
            ratio = peak / beside[2] if beside[2] else 0.0
            values = [workload.name, kind, shape, name, str(dtype).removeprefix("torch."), f"{ms:.3f}", f"{spread:.3f}"]
            rows.append(dict(zip(FIELDS, [*values, f"{ms / beside[0]:.3f}", f"{peak:.0f}", f"{ratio:.3f}"], strict=True)))
            print(f"{workload.name:22} {kind:10} {shape:14} {name:18} ", end="")
            print(f"{ms:9.2f} ms  {ms / beside[0]:6.3f}  {peak:8.0f} MiB {ratio:6.3f}", flush=True)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--small", action="store_true", help="models of two layers and short inputs")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--only", choices=["passes", "recording"], help="times of passes, or the memory of recording")
    arguments = parser.parse_args()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    dtype = torch.bfloat16 if device.type == "cuda" else torch.float32
    where = dict(
        zip(
            WHERE,
            [name_hardware(device), f"python {platform.python_version()} torch {torch.__version__}", commit()],
            strict=True,
        )
    )
    new = not RESULTS.exists()
    with RESULTS.open("a", newline="") as file:
        writer = csv.DictWriter(file, [*FIELDS, *WHERE])
        if new:
            writer.writeheader()
        for workload in build_workloads(arguments.small, device):
            if arguments.only is None or workload.recording == (arguments.only == "recording"):
                rows = measure(workload, arguments.rounds, device, dtype)
                writer.writerows({**row, **where} for row in rows)
            file.flush()
            gc.collect()
            if device.type == "cuda":
                torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
