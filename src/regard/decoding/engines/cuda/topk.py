"""Top-k tokens of each row on the device: by one kernel on a GPU, and in chunks of rows."""

from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.data.special_tokens import BOS, PAD
from regard.decoding.engines.cuda.types import Project
from regard.decoding.logprobs import IMPOSSIBLE
from regard.kernels.runtime import capability

CHUNK = 512
"""Maximum rows of logits at a time: they are the widest tensors, and so a beam takes no more memory for them."""
FORBIDDEN = slice(PAD, BOS + 1)
"""Token ids that no target holds: the lowest ones."""
TopTokens = tuple[Float[Tensor, "rows best"], Int[Tensor, "rows best"]]


def select_top_tokens(hidden: Float[Tensor, "rows size"], project: Project, count: int) -> TopTokens:
    """Top-k log-probabilities of each row and their tokens, best first.

    They are in float32 whatever the decoder's dtype; float64 stays. A row that has no distribution is NaN at least in the
    first place. Of equally likely tokens the lowest id comes first; without the kernel, for k > 1, any may.
    """
    chunks = [select_top_of_chunk(project(chunk), count) for chunk in torch.split(hidden, CHUNK)]
    values, tokens = zip(*chunks, strict=True)
    return chunks[0] if len(chunks) == 1 else (torch.cat(values), torch.cat(tokens))


def select_top_of_chunk(logits: Float[Tensor, "rows vocabulary"], count: int) -> TopTokens:
    """Top-k of a chunk of rows."""
    if fits(logits, count):
        return load_kernel().launch(logits, count)
    logs = logits.log_softmax(-1, dtype=torch.promote_types(logits.dtype, torch.float32))
    logs[:, FORBIDDEN] = IMPOSSIBLE
    top = logs.max(-1, keepdim=True) if count == 1 else logs.topk(count)
    return top.values, top.indices


def fits(logits: Float[Tensor, "rows vocabulary"], count: int) -> bool:
    """Return True if the kernel covers such logits."""
    some = logits.is_cuda and logits.dtype != torch.float64 and capability.find_obstacle(logits.device, logits.dtype) is None
    return some and load_kernel() is not None and logits.shape[1] <= load_kernel().WIDEST and count <= load_kernel().MOST


def prepare_top_tokens(logits: Float[Tensor, "1 vocabulary"], rows: int, count: int) -> TopTokens:
    """Launch the kernels of `select_top_tokens`, so that they are compiled (kernels/runtime/compile.py); returns buffers."""
    if fits(logits, count):
        load_kernel().launch(logits, count)
    kind = torch.promote_types(logits.dtype, torch.float32)
    return logits.new_empty(rows, count, dtype=kind), logits.new_empty(rows, count, dtype=torch.long)


@cache
def load_kernel() -> Any:
    """Load the module of the kernel; None without Triton."""
    return None if find_spec("triton") is None else import_module("regard.decoding.engines.cuda.topk_triton")
