"""The kernels in Triton's interpreter."""

import os

import pytest
import torch

pytest.importorskip("triton", reason="Triton is for Linux")
if os.environ.get("TRITON_INTERPRET") != "1":
    pytest.skip("these run in the interpreter; benchmarks/decoding_gpu.py checks on a GPU", allow_module_level=True)

from regard.kernels.triton.decode_step.self_attention import follow_parents, self_attend
from regard.kernels.triton.decode_step.tile import Tile


@pytest.mark.parametrize(("width", "heads", "dim", "now", "keys"), [(1, 2, 4, 0, 16), (1, 1, 3, 5, 4), (3, 2, 6, 21, 16)])
def test_each_row_finds_what_its_own_past_holds(width, heads, dim, now, keys):
    sentences, room, size = 2, 32, heads * dim
    cache = torch.full((sentences, room, width, 2 * size), torch.nan)  # what nobody wrote is never read
    cache[:, :now] = torch.randn(sentences, now, width, 2 * size)
    past = torch.randint(width, (sentences, width, room), dtype=torch.int32)
    sides = torch.randn(sentences * width, 3 * size)
    found = self_attend(sides, cache, past, torch.tensor([now]), heads, 0.7, Tile(keys, 1))
    assert torch.equal(cache[:, now].flatten(0, 1), sides[:, size:])
    for number, row in enumerate(sides):
        s, w = divmod(number, width)
        own = torch.stack([cache[s, place, past[s, w, place]] for place in range(now)] + [cache[s, now, w]])
        key, value = own.view(now + 1, 2, heads, dim).unbind(1)
        weights = torch.einsum("hd,khd->hk", row[:size].view(heads, dim), key).mul(0.7).softmax(-1)
        right = torch.einsum("hk,khd->hd", weights, value).flatten()
        torch.testing.assert_close(found[number], right)


@pytest.mark.parametrize("room", [16, 256])
def test_the_table_is_reordered_in_its_place(room):
    past = torch.randint(3, (2, 3, room), dtype=torch.int32)
    parents = torch.tensor([[2, 0, 0], [1, 1, 2]])
    now = room - 3
    right = torch.stack([each[parent] for each, parent in zip(past, parents, strict=True)])
    right[..., now] = torch.arange(3, dtype=torch.int32)
    follow_parents(past, parents, torch.tensor([now]))
    assert torch.equal(past[..., : now + 1], right[..., : now + 1])
