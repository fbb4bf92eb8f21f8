"""The kernel in Triton's interpreter."""

import os

import pytest
import torch

pytest.importorskip("triton", reason="Triton is for Linux")
if os.environ.get("TRITON_INTERPRET") != "1":
    pytest.skip("these run in the interpreter; benchmarks/decoding_gpu.py checks on a GPU", allow_module_level=True)

from regard.kernels.triton.decode_step.cross_attention import cross_attend
from regard.kernels.triton.decode_step.tile import Tile


@pytest.mark.parametrize(("width", "length", "block", "dtype"), [(1, 5, 16, "float32"), (3, 37, 16, "bfloat16")])
def test_rows_of_a_sentence_share_its_source_and_see_what_may_be_seen(width, length, block, dtype):
    kind = getattr(torch, dtype)
    keys, values = torch.randn(2, 2, length, 6).to(kind), torch.randn(2, 2, length, 3).to(kind)
    keep = torch.rand(2, length) > 0.3
    keep[:, :16] &= length < 17  # with several blocks the first shows nothing
    keep[0, -1], keep[1] = True, False
    keys[~keep[:, None].expand(2, 2, length)] = torch.nan
    asked = torch.randn(2 * width, 12).to(kind)
    found = cross_attend(asked, keys, values, keep, 0.4, Tile(block, 1)).view(2, width, 2, 3)
    query = asked.view(2, width, 2, 6).transpose(1, 2)[:1].double()
    seen = keep[0]
    weights = (query @ keys[:1, :, seen].double().mT * 0.4).softmax(-1)
    right = (weights @ values[:1, :, seen].double()).transpose(1, 2)
    torch.testing.assert_close(found[:1].double(), right, atol=1e-2 if dtype == "bfloat16" else 1e-6, rtol=1e-5)
    assert not found[1].any()  # who may look at nothing
