"""Log-probabilities of a decoder's output, checked for search."""

import torch
from jaxtyping import Float
from torch import Tensor

from regard.data.special_tokens import BOS, PAD, UNK
from regard.errors import DataError

IMPOSSIBLE = float("-inf")


class UndistributedError(DataError):
    """Scores that are not finite: there is no answer to a source of the batch, and the other sources may have one."""


def compute_logprobs(output: Float[Tensor, "*rows vocabulary"]) -> Float[Tensor, "*rows vocabulary"]:
    """Log-probabilities log P(token | source, tokens before), in float32 whatever the decoder's dtype; float64 stays.

    A row that is NaN, holds +infinity, or is -infinity throughout has no distribution: that is an error, not a token.
    """
    logs = (output if output.dtype == torch.float64 else output.float()).log_softmax(-1)
    if logs[..., :1].isnan().any():  # NaN reaches the normaliser and so every column; one shows it
        raise no_distribution_error()
    return logs


def no_distribution_error() -> UndistributedError:
    """The error for an output that is no distribution."""
    return UndistributedError(
        "decoding needs an output that gives some token a probability, got NaN, +infinity or -infinity throughout; "
        "look for NaN in the model's parameters and in its source"
    )


def mask_special_tokens(logs: Float[Tensor, "*rows vocabulary"], unknown: bool = True) -> Float[Tensor, "*rows vocabulary"]:
    """Mask PAD and BOS, and UNK unless `unknown`.

    The others are not renormalised: a target's score stays the model's own, the one that `rate` gives.
    """
    forbidden = torch.tensor([PAD, BOS] if unknown else [PAD, BOS, UNK], device=logs.device)
    return logs.index_fill(-1, forbidden, IMPOSSIBLE)


def no_token_error(length: int) -> ValueError:
    """Error for a sentence without a possible token."""
    return ValueError(
        f"decoding needs a possible token at step {length}, and all are forbidden or have probability zero; "
        "allow unknown tokens, or let the decoder give EOS some probability"
    )
