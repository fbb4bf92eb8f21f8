"""Attention function for models of transformers: `attn_implementation="regard"`.

    import regard.huggingface
    model = AutoModelForCausalLM.from_pretrained(path, attn_implementation="regard")

It computes what `sdpa` and `eager` compute: causal, padding, window, chunk and document masks, grouped heads, a scale,
soft-capped scores, attention sinks, position biases and dropout. Where a recorder listens to the model (`regard.record`),
it hands over each call; otherwise it runs PyTorch's fused kernel at once.

Sparse masks (`masks.find_tiles`) run tile by tile over the keys that a tile sees. Sinks become one more key: the query
gets two more components and the key (0, ..., 1, 1), so that their product is the sink in any precision. Soft-capped scores
have no fused kernel in PyTorch; they run a block of queries at a time.
"""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from regard.errors import RefusedError
from regard.interop.huggingface import masks
from regard.interop.require import needed
from regard.viewer.record.external import listeners
from regard.viewer.record.external.product import Product

NAME = "regard"
"""Name of the implementation in transformers."""

INSTEAD = 'load the model with attn_implementation="sdpa" instead'
SELECTIONS = ("indices", "block_indices")
"""Arguments by which sparse attentions hand over the keys that an indexer selects, in place of a mask."""
BLOCK = 1 << 24
"""The most scores of a block of queries, where there is no fused kernel."""


def register() -> None:
    """Register the attention function and the mask function with transformers."""
    needed("transformers", "hf")
    try:
        from transformers import AttentionInterface
        from transformers.masking_utils import AttentionMaskInterface
    except ImportError as error:
        raise RefusedError(
            'attn_implementation="regard" needs a transformers that has AttentionMaskInterface, 4.53 or later; upgrade it'
        ) from error
    AttentionInterface.register(NAME, compute_attention)
    AttentionMaskInterface.register(NAME, masks.build_mask)


def compute_attention(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Any = None,
    dropout: float = 0.0,
    scaling: float | None = None,
    is_causal: bool | None = None,
    position_bias: Tensor | None = None,
    softcap: float | None = None,
    s_aux: Tensor | None = None,
    **options: Any,
) -> tuple[Tensor, Tensor | None]:
    """Context (batch, queries, heads, dim) of one attention of a model, and its weights where `output_attentions` asks."""
    check_options(module, attention_mask, options)
    queries = query.shape[2]
    if is_causal is None:
        is_causal = getattr(module, "is_causal", True) and not masks.needs_added_mask(type(module).__module__)
    causal = queries > 1 and attention_mask is None and is_causal
    if causal and key.shape[2] > queries:  # prefill into an empty static cache, whose other keys are not written yet
        key, value = key[:, :, :queries], value[:, :, :queries]
        position_bias = None if position_bias is None else position_bias[..., :queries]
    wants_weights = options.get("output_attentions", False)
    plain = softcap is None and s_aux is None and position_bias is None and not wants_weights
    if plain and (torch.compiler.is_compiling() or not listeners.LISTENERS):
        context = run_fused(query, key, value, attention_mask, causal, dropout, scaling)
        return context.transpose(1, 2).contiguous(), None
    scale = query.shape[-1] ** -0.5 if scaling is None else scaling
    product = Product(query, key, value, scale, attention_mask, causal, position_bias, softcap, s_aux, dropout)
    listener = None if torch.compiler.is_compiling() else listeners.find_listener(module)
    context = run(product) if listener is None else listener.hear(module, product, run, "sdpa")
    weights = product.all_weights().to(query.dtype) if wants_weights else None
    return context.transpose(1, 2).contiguous(), weights


def check_options(module: nn.Module, mask: Any, options: dict[str, Any]) -> None:
    """Raise for what this attention function does not compute."""
    name = type(module).__name__
    for selection in SELECTIONS:
        if options.get(selection) is not None:
            raise RefusedError(
                f'attn_implementation="regard" has no sparse attention over the keys of an indexer, and {name} hands over '
                f"{selection}; {INSTEAD}"
            )
    if options.get("cache") is not None:
        raise RefusedError(
            f'attn_implementation="regard" has no paged cache, and {name} is run with one (continuous batching); {INSTEAD}'
        )
    if mask is not None and not isinstance(mask, Tensor):
        raise RefusedError(
            f'attn_implementation="regard" needs a mask that is a tensor, and {name} hands over a {type(mask).__name__}; '
            f"{INSTEAD}"
        )


def run(product: Product) -> Tensor:
    """Context (batch, heads, queries, dim) of a product, by fused kernels where there are some."""
    if product.softcap is not None:
        return run_blocks(product)
    mask, causal = product.mask, product.causal
    if product.bias is not None:
        mask, causal = _merge_bias(product), False
    query, key, value = product.query, product.key, product.value
    if product.sinks is not None:
        return _run_with_sinks(product, mask, causal)
    return run_fused(query, key, value, mask, causal, product.dropout, product.scale)


def run_fused(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
    causal: bool,
    dropout: float,
    scale: float | None,
) -> Tensor:
    """PyTorch's fused kernel; a mask with tiles runs tile by tile over the keys that each tile sees."""
    grouped = key.shape[1] != query.shape[1]
    if grouped and not (mask is None and key.shape[-1] == value.shape[-1] <= 256):  # no fused kernel takes groups then
        key, value = (side.repeat_interleave(query.shape[1] // side.shape[1], dim=1) for side in (key, value))
        grouped = False
    options: dict[str, Any] = {"dropout_p": dropout, "scale": scale, "enable_gqa": grouped}
    tiles = None if mask is None else masks.tiles_of(mask)
    if tiles is None or mask is None:
        return F.scaled_dot_product_attention(query, key, value, attn_mask=mask, is_causal=causal, **options)
    parts = []
    for tile in tiles:
        rows, columns = slice(tile.first_query, tile.last_query), slice(tile.first_key, tile.last_key)
        parts.append(
            F.scaled_dot_product_attention(
                query[:, :, rows],
                key[:, :, columns],
                value[:, :, columns],
                attn_mask=mask[:, :, rows, columns],
                **options,
            )
        )
    return torch.cat(parts, dim=2)


def run_blocks(product: Product) -> Tensor:
    """A block of queries at a time: soft-capped scores, whose whole matrix is formed only where a gradient is needed."""
    recording = torch.is_grad_enabled() and product.query.requires_grad
    whole = recording or torch.compiler.is_compiling()
    parts = []
    for first, end in [(0, product.queries)] if whole else product.blocks(BLOCK):
        weights = product.weights(first, end).to(product.query.dtype)
        parts.append(product.combine(F.dropout(weights, product.dropout) if product.dropout else weights))
    return parts[0] if len(parts) == 1 else torch.cat(parts, dim=2)


def _merge_bias(product: Product) -> Tensor:
    """Bias and mask as one mask that is added to the scores."""
    assert product.bias is not None, "only called where there is a bias"
    bias, mask = product.bias, product.mask
    if mask is None and product.causal:
        mask = torch.ones(product.queries, product.keys, dtype=torch.bool, device=bias.device).tril()
    if mask is None:
        return bias
    if mask.dtype == torch.bool:
        return torch.where(mask, bias, torch.finfo(bias.dtype).min).to(product.query.dtype)
    return bias + mask


def _run_with_sinks(product: Product, mask: Tensor | None, causal: bool) -> Tensor:
    """The sink of each head as a first key; of a causal product, a first query that is dropped keeps the diagonal."""
    assert product.sinks is not None, "only called where there are sinks"
    query, key, value = product.query, product.key, product.value
    batch, heads, queries, dim = query.shape
    high = (product.sinks.float() / product.scale).to(query.dtype)
    low = (product.sinks.float() / product.scale - high.float()).to(query.dtype)
    components = torch.stack([high, low], dim=-1).view(1, heads, 1, 2).expand(batch, heads, queries, 2)
    room = -(dim + 2) % 8  # fused kernels want heads of a multiple of eight
    query = F.pad(torch.cat([query, components], dim=-1), (0, room, int(causal), 0))
    sink = key.new_zeros(*key.shape[:2], 1, dim + 2)
    sink[..., dim:] = 1.0
    key = F.pad(torch.cat([sink, F.pad(key, (0, 2))], dim=2), (0, room))
    value = F.pad(value, (0, 0, 1, 0))
    if mask is not None:
        mask = F.pad(mask, (1, 0), value=True if mask.dtype == torch.bool else 0.0)
    context = run_fused(query, key, value, mask, causal, product.dropout, product.scale)
    return context[:, :, int(causal) :]
