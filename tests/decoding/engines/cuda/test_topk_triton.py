"""The kernel in Triton's interpreter."""

import os

import pytest
import torch

pytest.importorskip("triton", reason="Triton is for Linux")
if os.environ.get("TRITON_INTERPRET") != "1":
    pytest.skip("these run in the interpreter; benchmarks/decoding_gpu.py checks on a GPU", allow_module_level=True)

from regard.decoding.engines.cuda.topk_triton import launch
from regard.decoding.logprobs import compute_logprobs, mask_special_tokens
from regard.decoding.topk import select_highest


@pytest.mark.parametrize(("vocabulary", "count"), [(5, 2), (64, 1), (203, 6)])
def test_it_finds_what_the_reference_finds(vocabulary, count):
    logits = torch.randn(4, vocabulary) * 3
    logits[1, 2] = logits[1, -1] = logits[1].max() + 1  # of equal ones the lowest number comes first
    values, tokens = launch(logits, count)
    right, places = select_highest(mask_special_tokens(compute_logprobs(logits)), count)
    torch.testing.assert_close(values, right)
    assert tokens.tolist() == places.tolist()


def test_half_precision_is_summed_in_single():
    logits = (torch.randn(3, 100) * 5).bfloat16()
    torch.testing.assert_close(launch(logits, 1)[0][:, 0], logits.float().log_softmax(-1)[:, 2:].amax(-1))


@pytest.mark.filterwarnings("ignore:invalid value encountered")
def test_what_has_no_distribution_is_nan_and_names_tokens_all_the_same():
    rows = torch.tensor([[0.0, 0.0, float("nan"), 1.0, 1.0], [-torch.inf] * 5, [0.0, 0.0, 1.0, torch.inf, 2.0]])
    values, tokens = launch(rows, 2)
    assert values.isnan().all()
    assert ((tokens >= 0) & (tokens < 5)).all()
