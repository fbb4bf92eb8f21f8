"""Explain a dispatch: regard explain."""

from typing import Annotated

import typer

from regard import registry
from regard.cli import Command, app
from regard.errors import ConfigError

SHAPE = "Batch, heads, length and size of a head, as 8,8,512,64; five numbers where queries and keys differ, 8,8,1,512,64."
DTYPES = ("float32", "float16", "bfloat16", "float64")


@app.command(cls=Command, short_help="Explain which path computes an attention, and how long each would take.")
def explain(
    score: Annotated[str, typer.Option(help="A score of `regard list`.")] = "scaled_dot",
    normalise: Annotated[str, typer.Option(help="A normaliser.")] = "softmax",
    scope: Annotated[str, typer.Option(help="A scope, or several joined by +, as padding+causal.")] = "everywhere",
    shape: Annotated[str, typer.Option(help=SHAPE, metavar="B,H,T,D")] = "8,8,512,64",
    dtype: Annotated[str, typer.Option(help=f"One of {', '.join(DTYPES)}.")] = "float32",
    device: Annotated[str | None, typer.Option(help="cpu or cuda; without it, the GPU where there is one.")] = None,
    training: Annotated[bool, typer.Option("--training", help="With the backward.")] = False,
    dropout: Annotated[float, typer.Option(help="Dropout of the weights.")] = 0.0,
    weights: Annotated[bool, typer.Option("--weights", help="With the weights.")] = False,
    statistics: Annotated[str, typer.Option(help="Statistics, joined by commas: entropy,max.")] = "",
) -> None:
    """Explain which path computes an attention: every kernel and the reference with its estimated time and memory, or the
    reason why it cannot.

    Times are estimates from measurements of this kind of device; `regard bench calibrate` measures this one.

    \b
    Example:
        regard explain --scope padding+causal --shape 16,12,300,64 --dtype bfloat16 --training
    """
    batch, heads, queries, keys, size = _parse_shape(shape)
    if dtype not in DTYPES:
        raise ConfigError(f"--dtype needs one of {', '.join(DTYPES)}, got {dtype!r}")
    import torch

    device = device or ("cuda" if torch.cuda.is_available() else "cpu")
    if device not in ("cpu", "cuda") or (device == "cuda" and not torch.cuda.is_available()):
        raise ConfigError(f"--device needs a device of this machine, cpu or cuda, got {device!r}")
    from regard.attention.explain import explain as explain_call

    sizes = {"query": size, "key": size, "value": size, "heads": heads}
    stages = {"score": registry.build(score, "score", **sizes), "normalise": registry.build(normalise, "normalise", **sizes)}
    kind = getattr(torch, dtype)
    for stage in stages.values():
        if isinstance(stage, torch.nn.Module):
            stage.to(device, kind).requires_grad_(training)
    query, key, value = (
        torch.empty(batch, heads, length, size, device=device, dtype=kind, requires_grad=training)
        for length in (queries, keys, keys)
    )
    with torch.device(device):
        masks = [registry.find(name, "scope").sample(batch, keys) for name in scope.split("+")]
    joined = masks[0]
    for mask in masks[1:]:
        joined = joined & mask
    with torch.set_grad_enabled(training):
        explanation = explain_call(
            query,
            key,
            value,
            scope=joined,
            dropout=dropout,
            weights=weights,
            statistics=tuple(statistics.split(",")) if statistics else (),
            **stages,
        )
    typer.echo(explanation)


def _parse_shape(text: str) -> tuple[int, int, int, int, int]:
    parts = text.replace("x", ",").split(",")
    if len(parts) not in (4, 5) or not all(part.strip().isdecimal() and int(part) > 0 for part in parts):
        raise ConfigError(f"--shape needs four or five whole numbers above 0, {SHAPE[0].lower()}{SHAPE[1:]} Got {text!r}")
    batch, heads, queries, *rest = map(int, parts)
    keys, size = rest if len(rest) == 2 else (queries, rest[0])
    return batch, heads, queries, keys, size
