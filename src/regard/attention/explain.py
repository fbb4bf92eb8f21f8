"""Explanation of a dispatch: every path with its estimated time and memory, or the reason why it cannot run."""

from dataclasses import dataclass
from typing import Any

from jaxtyping import Float
from torch import Tensor

from regard.attention import dispatch, reference
from regard.attention.attend import align_offset
from regard.attention.cost import find_profile
from regard.attention.normalise.softmax import Softmax
from regard.attention.scope import Offset, Scope
from regard.attention.scope.everywhere import Everywhere
from regard.attention.score import prepare
from regard.attention.score.scaled_dot import ScaledDot
from regard.attention.types import Memory, Normaliser, Request, Score
from regard.attention.validation import check_alignment, check_inputs


@dataclass(frozen=True)
class Explanation:
    """Paths of a request, those that can run first and by time, the one that `attend` takes, and whose times these are."""

    paths: tuple[dispatch.Path, ...]
    chosen: str
    device: str

    def __str__(self) -> str:
        width = max(len(path.name) for path in self.paths)
        lines = [f"estimates for {self.device}; -> runs"]
        for path in self.paths:
            mark = "->" if path.name == self.chosen else "  "
            if path.reason is not None:
                lines.append(f"{mark} {path.name:{width}}  {path.reason}")
            else:
                lines.append(f"{mark} {path.name:{width}}  {path.microseconds:10,.0f} us  {path.bytes / 2**20:10,.1f} MiB")
        return "\n".join(lines)


def explain(
    query: Float[Tensor, "batch heads queries query"],
    key: Float[Tensor, "batch key_heads keys key"],
    value: Float[Tensor, "batch key_heads keys value"],
    *,
    score: Score = ScaledDot(),
    normalise: Normaliser = Softmax(),
    scope: Scope = Everywhere(),
    dropout: float = 0.0,
    offset: Offset | None = None,
    impl: str = "auto",
    weights: bool = False,
    statistics: tuple[str, ...] = (),
) -> Explanation:
    """Explain the path that `attend` takes for the same arguments, without running any.

    Where something has a gradient, the times include the backward.
    """
    check_inputs(query, key, value, score, normalise, scope, statistics)
    memory = Memory(prepare(score, key), value)
    check_alignment(query, memory, offset)
    if offset is None:
        offset = align_offset(query.shape[2], key.shape[2])
    request = Request(query, memory.keys, value, score, normalise, scope, dropout, offset, weights, statistics)
    return explain_request(request, impl)


def explain_request(request: Request, impl: str = "auto") -> Explanation:
    """Explain the decision about a request with prepared keys."""
    paths = dispatch.list_paths(request)
    kernel: Any = dispatch.select_kernel(request, impl)
    chosen = next((name for name, known in dispatch.KERNELS.items() if known is kernel), reference.NAME)
    ordered = sorted(paths, key=lambda path: (path.reason is not None, path.microseconds, path.name))
    return Explanation(tuple(ordered), chosen, find_profile(request.query.device).device)
