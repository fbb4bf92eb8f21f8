"""Attention weights of decoding: row by row or by teacher forcing, and the padding masks of their keys."""

from collections.abc import Mapping, Sequence

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn import functional

from regard.attention.types import Attended, Memory
from regard.data.batch import pad, shifted
from regard.decoding.max_length import find_tensor
from regard.models.types import Decoder
from regard.tree import Tree, leaves


def collect_weights_by_row(attended: Mapping[str, Attended]) -> dict[str, Float[Tensor, "rows heads keys"]]:
    """Attention weights of one step by attention name, one row per hypothesis.

    An attention whose memory serves several hypotheses has them on its query axis, (sources, heads, beams, keys); one with a
    memory for each has (rows, heads, 1, keys). Both become rows, which are sources x beams.
    """
    return {
        name: result.weights.transpose(1, 2).flatten(0, 1) for name, result in attended.items() if result.weights is not None
    }


def is_cross_attention(name: str) -> bool:
    """Return True for a cross-attention; names of self-attentions end in `self`."""
    return name.rpartition(".")[2] != "self"


def select_attention(weights: Mapping[str, Float[Tensor, "rows heads keys"]], name: str | None) -> str:
    """Select the requested attention by its name, or the first cross-attention; in an ensemble, the mean of its members."""
    if name is None:
        names = list(filter(is_cross_attention, weights))
        name = next((joint for joint in names if not joint[0].isdecimal()), names[0] if names else None)
        if name is None:
            raise ValueError("coverage_penalty needs an attention over the source, and this decoder has none; set it to 0")
    if name not in weights:
        raise ValueError(f"no attention of this decoder is called {name!r}; there are {', '.join(weights) or 'none'}")
    return name


def find_key_mask(memory: Tree, name: str, keys: int) -> Bool[Tensor, "sources keys"] | None:
    """Padding mask of the keys of a cross-attention; None: all are kept."""
    source = find_memory(memory, name, keys)
    return None if source is None else source.keep


def find_memory(memory: Tree, name: str, keys: int) -> Memory | None:
    """Memory that a cross-attention reads: the one of its name where the tree has it, else the first with as many keys."""
    for named in leaves(memory, dict):
        if isinstance(source := named.get(name), Memory):
            return source
    return next((leaf for leaf in leaves(memory, Memory) if leaf.values.shape[2] == keys), None)


def find_source_mask(memory: Tree) -> Bool[Tensor, "sources keys"] | None:
    """Padding mask of a source, by the first attention that reads it; None: all are kept."""
    return next((leaf.keep for leaf in leaves(memory, Memory)), None)


def collect_path_weights(
    steps: list[Mapping[str, Float[Tensor, "_ _ _"]]], path: list[int], memory: Tree, sentence: int
) -> dict[str, Float[Tensor, "_ _ _"]]:
    """Attention weights along the path of one hypothesis, (heads, steps, keys): row path[t] of step t.

    Self-attention has one key more at each step: earlier rows are padded with zeros.
    """
    if not path:
        return {}
    return {
        name: _trim_weights(name, [step[name][row] for step, row in zip(steps, path, strict=False)], memory, sentence)
        for name in steps[0]
    }


@torch.no_grad()
def compute_target_weights(
    decoder: Decoder, memory: Tree, targets: Sequence[Sequence[int]]
) -> list[dict[str, Float[Tensor, "_ _ _"]]]:
    """Attention weights of given targets by teacher forcing, one target for each source: those of a search for them.

    The targets are as search returns them: without BOS, with EOS, and none is empty.
    """
    rows = pad([list(target) for target in targets]).to(find_tensor(memory).device)
    attended = decoder(shifted(rows.data), memory, weights=True).attended
    weights = {name: result.weights for name, result in attended.items() if result.weights is not None}
    return [
        {
            name: _trim_keys(name, weight[sentence, :, : len(target), : _count_keys(name, weight, target)], memory, sentence)
            for name, weight in weights.items()
        }
        for sentence, target in enumerate(targets)
    ]


def _count_keys(name: str, weights: Tensor, target: Sequence[int]) -> int:
    """Number of keys of an attention: those of the source, or the tokens of the target so far."""
    return weights.shape[-1] if is_cross_attention(name) else len(target)


def _trim_weights(name: str, rows: list[Tensor], memory: Tree, sentence: int) -> Tensor:
    keys = rows[-1].shape[-1]
    stacked = torch.stack([functional.pad(row, (0, keys - row.shape[-1])) for row in rows], dim=1)
    return _trim_keys(name, stacked, memory, sentence)


def _trim_keys(name: str, weights: Tensor, memory: Tree, sentence: int) -> Tensor:
    """Weights on the CPU, without the padding of a source."""
    weights = weights.cpu()
    source = find_memory(memory, name, weights.shape[-1]) if is_cross_attention(name) else None
    if source is None or source.keep is None:
        return weights
    keep = source.keep[sentence].cpu()
    return weights[..., : _extent(keep)] if source.grid is None else weights[..., keep]  # a map is padded on two sides


def _extent(keep: Bool[Tensor, " keys"]) -> int:
    """Length up to the last real key."""
    real = keep.nonzero()
    return int(real[-1]) + 1 if len(real) else 0
