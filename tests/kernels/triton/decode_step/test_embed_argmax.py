"""The kernels in Triton's interpreter."""

import os

import pytest
import torch

pytest.importorskip("triton", reason="Triton is for Linux")
if os.environ.get("TRITON_INTERPRET") != "1":
    pytest.skip("these run in the interpreter; benchmarks/decoding_gpu.py checks on a GPU", allow_module_level=True)

from regard.kernels.triton.decode_step.embed_argmax import embed_tokens, update_scores


def test_vectors_know_their_place():
    table, places, tokens = torch.randn(9, 6), torch.randn(4, 6), torch.tensor([8, 0, 3])
    found = embed_tokens(tokens, table, 2.5, places, torch.tensor([3]))
    torch.testing.assert_close(found, table[tokens] * 2.5 + places[3])


def test_scores_add_up_and_tokens_are_fed():
    values, tokens = -torch.rand(130, 1), torch.randint(2, 9, (130, 1))
    scores, fed = torch.full((130, 1), -1.0, dtype=torch.float64), torch.zeros(130, dtype=torch.long)
    figures = torch.zeros(2, 4, 130, 1, dtype=torch.float64)
    update_scores(values, tokens, scores, figures, fed, torch.tensor([1]))
    assert torch.equal(scores, values.double() - 1)
    assert torch.equal(fed, tokens[:, 0])
    assert torch.equal(figures[1], torch.stack((scores, values.double(), tokens.double(), torch.zeros_like(scores))))
    assert not figures[0].any()
