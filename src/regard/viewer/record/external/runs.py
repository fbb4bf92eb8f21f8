"""Runs of a model of another library: the calls of its attentions by pass, what it was given, and what it generated."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from regard.attention.normalise import widen
from regard.data.axis import Array
from regard.viewer.record.assemble import Run
from regard.viewer.record.calls import Call, half, single
from regard.viewer.record.external.product import Product
from regard.viewer.record.hooks import STATISTICS, Wanted
from regard.viewer.source import INSTEAD, MEASURED, REFERENCE, ROWS, code, join_codes

INPUTS = (
    "input_ids",
    "decoder_input_ids",
    "attention_mask",
    "decoder_attention_mask",
    "pixel_values",
    "input_features",
    "input_values",
    "image_grid_thw",
)
"""Inputs of a model that axes are made of."""


@dataclass(frozen=True, eq=False, kw_only=True)
class ProductCall(Call):
    """One call of dot-product attention: also its pass, whether it crosses to another sequence, and its gradient.

    A `causal` call has no mask in `allowed`. `gradient` is that of the weights, where it is recorded.
    """

    step: int
    causal: bool = False
    cross: bool = False
    gradient: list[Tensor] = field(default_factory=list)
    formed: Tensor | None = None


@dataclass
class ModelRun(Run):
    """All calls of one run of a model: one pass, or those of an answer that is generated token by token."""

    passes: list[dict[str, Tensor]] = field(default_factory=list)
    """Inputs of each pass, on the host."""
    output: Any = None
    """Output of `generate`, where that ran the passes."""
    counts: dict[tuple[int, str], int] = field(default_factory=dict)
    masks: dict[int, tuple[Tensor, Array]] = field(default_factory=dict)
    has_decoded: bool = True
    """False after an encoder ran by itself, whose decoder has not run yet."""
    generating: bool = False

    @property
    def step(self) -> int:
        """The number of the current pass."""
        return max(0, len(self.passes) - 1)

    def add_pass(self, inputs: Mapping[str, Any]) -> None:
        """Begin a pass with these inputs; an encoder that ran by itself belongs to the first pass of its decoder."""
        kept = {name: inputs[name].detach().cpu() for name in INPUTS if isinstance(inputs.get(name), Tensor)}
        if self.passes and not self.has_decoded and "input_ids" not in kept:
            self.passes[0] = kept | self.passes[0]
            self.has_decoded = True
            return
        self.passes.append(kept)
        self.masks.clear()

    def name_call(self, name: str) -> str:
        """The name of a module's next call; a module that is called twice in a pass, as shared layers are, has numbers."""
        count = self.counts[self.step, name] = self.counts.get((self.step, name), 0) + 1
        return name if count == 1 else f"{name} ({count})"

    def mask(self, mask: Tensor | None, product: Product) -> Array | None:
        """A mask on the host, shared by all calls that have it."""
        if mask is None:
            return None
        if id(mask) not in self.masks:
            allowed = product.allowed(0, product.queries)
            assert allowed is not None, "there is a mask"
            self.masks[id(mask)] = (mask, allowed.cpu().numpy())
        return self.masks[id(mask)][1]

    def real_queries(self, product: Product) -> Tensor | None:
        """Queries that are no padding, where a sequence looks at itself in one pass."""
        given = self.passes[-1] if self.passes else {}
        for name in ("attention_mask", "decoder_attention_mask"):
            keep = given.get(name)
            if keep is not None and keep.shape == (product.batch, product.queries) and product.queries == product.keys:
                return None if bool(keep.all()) else keep.bool().to(product.query.device)
        return None


@torch.no_grad()
def record_product(
    run: ModelRun,
    product: Product,
    wanted: Wanted,
    place: tuple[int, bool],
    kernel: str,
    formed: Tensor | None = None,
) -> ProductCall:
    """The call of a product: all of its weights, or statistics and the chosen rows, without forming the matrix.

    `place` is the number of queries before, and whether the keys are another sequence.
    """
    first, cross = place
    real = run.real_queries(product)
    heads = slice(None) if wanted.heads is None else list(wanted.heads)
    if wanted.heads is not None and max(wanted.heads) >= product.query.shape[1]:
        raise ValueError(
            f"heads needs numbers below {product.query.shape[1]}, which this attention has, got {max(wanted.heads)}"
        )
    names = tuple(dict.fromkeys((*STATISTICS, *wanted.statistics)))
    weights, rows, sources = None, None, [code(MEASURED, kernel)]
    if wanted.weights:
        full = product.all_weights() if formed is None else formed.detach()
        weights = _pad(full, product.keys)[:, heads]
        sources = [REFERENCE if formed is not None else code(INSTEAD, kernel)]
    else:
        rows = choose_rows(wanted.rows or (), product.queries, first)
        if rows:
            local = [row - first for row in rows]
            weights = torch.cat([_pad(product.weights(row, row + 1), product.keys) for row in local], dim=2)[:, heads]
            sources.append(code(ROWS, "float32"))
    statistics = product.statistics(names, real)
    return ProductCall(
        product.batch,
        product.queries,
        product.keys,
        join_codes(sources),
        None if weights is None else half(weights),
        {name: single(value[:, heads]) for name, value in statistics.items()},
        run.mask(product.mask, product),
        None,
        not cross,
        product.sinks is None,
        rows,
        _scores(product, heads) if wanted.scores and wanted.weights else None,
        single(
            widen(product.value)
            .norm(dim=-1)
            .repeat_interleave(product.query.shape[1] // product.value.shape[1], 1)[:, heads]
        ),
        step=run.step,
        causal=product.causal and product.mask is None,
        cross=cross,
        formed=formed,
    )


def choose_rows(rows: tuple[int, ...], queries: int, first: int) -> tuple[int, ...]:
    """Rows of a call by their place in the run: those among its queries, or counted from the last of the pass."""
    if rows and rows[0] < 0:
        return tuple(first + queries + row for row in rows if queries + row >= 0)
    return tuple(row for row in rows if first <= row < first + queries)


def _scores(product: Product, heads: Any) -> Array:
    scores, allowed = product.scores(0, product.queries), product.allowed(0, product.queries)
    scores = scores if allowed is None else scores.masked_fill(~allowed, float("-inf"))
    scores = torch.nn.functional.pad(scores, (0, product.keys - scores.shape[-1]), value=float("-inf"))
    return np.asarray(half(scores[:, heads]))


def _pad(weights: Tensor, keys: int) -> Tensor:
    return torch.nn.functional.pad(weights, (0, keys - weights.shape[-1]))
