"""Small models in use, and how what two searches find is compared."""

import pytest
import torch

from regard.data.batch import pad
from regard.data.special_tokens import EOS

from ....models.small import KINDS, made

SOURCE = pad([[4, 5, 6, 2], [7, 2], [8, 9, 2], [10, 3, 4, 5, 6, 7, 2]])
PRE, POST = "transformer, transformer, pre", "transformer, transformer, post"


def model(kind: str = PRE, attention: str = "transformer", ends: float = 0.0, target: int = 60, **options):
    """A model whose targets differ, and where EOS is likelier than its weights say."""
    torch.manual_seed(3)
    built = made(attention, target=target, **KINDS[kind] | {"tie_embeddings": False} | options).eval()
    with torch.no_grad():
        built.decoder.output.weight.mul_(6.0)
        built.decoder.output.bias[EOS] = ends
    return built


def alike(one, other, tolerance=1e-5):
    """The same tokens, and scores that differ by rounding."""
    for left, right in zip(one, other, strict=True):
        assert [each.tokens for each in left] == [each.tokens for each in right]
        assert [each.finished for each in left] == [each.finished for each in right]
        for mine, theirs in zip(left, right, strict=True):
            assert mine.logprobs == pytest.approx(theirs.logprobs, abs=tolerance)
            assert mine.score == pytest.approx(theirs.score, abs=tolerance)
            assert mine.normalised == pytest.approx(theirs.normalised, abs=tolerance)
