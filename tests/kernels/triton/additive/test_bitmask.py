from dataclasses import dataclass

import pytest
import torch

pytest.importorskip("triton", reason="the kernels are written in it")

from regard.attention.normalise.softmax import Softmax
from regard.attention.scope import Scope
from regard.attention.scope.blocks import Blocks
from regard.attention.scope.dilated import Dilated
from regard.attention.scope.document import Document
from regard.attention.scope.landmarks import Landmarks
from regard.attention.scope.local import Local
from regard.attention.scope.padding import Padding
from regard.attention.score.additive import Additive
from regard.attention.types import Request
from regard.kernels.triton.additive import bitmask, operator
from regard.kernels.triton.additive.arguments import MaskArguments


@pytest.fixture(autouse=True)
def _nothing_made(monkeypatch):
    monkeypatch.setattr(bitmask, "CACHE", {})


def request(scope, queries=3, keys=40, batch=1, heads=1, offset=0):
    sizes = (batch, heads, queries, 3), (batch, 1, keys, 4), (batch, 1, keys, 6)
    query, key, value = (torch.randn(size) for size in sizes)
    return Request(query, key, value, Additive(3, 4), Softmax(), scope, 0.0, offset, False, ())


def opened(found, keys):
    """Bits as they would be read one by one."""
    places = torch.arange(keys)
    return (found.bits[..., places // 32] >> (places % 32).int()) & 1 != 0


def test_keys_are_bits_the_first_the_lowest():
    found = bitmask.build_bitmask(request(Dilated(2), queries=2, keys=34))
    assert found.bits[0, 0, 0].tolist() == [0x55555555, 0b01]
    assert found.bits[0, 0, 1].tolist() == [0xAAAAAAAA - (1 << 32), 0b10]
    assert found.kinds.tolist() == [[[[2, 2]]]]


def test_a_tile_is_empty_full_or_partial_whatever_lies_beyond_the_ends():
    found = bitmask.build_bitmask(request(Blocks(32) | Landmarks(1), queries=65, keys=72))
    assert found.kinds[0, 0].tolist() == [[1, 2, 2], [2, 1, 0], [2, 0, 1]]


SCOPES = {
    "everybody the same": (Padding(torch.rand(2, 70) > 0.5), 0, (2, 1, 1, 3)),
    "each query for itself": (Local(9) | Landmarks(2, 7), 3, (1, 1, 50, 3)),
    "each row for itself": (Document(torch.arange(100).div(7).int().expand(2, -1)), torch.tensor([0, 20]), (2, 1, 50, 3)),
}


@pytest.mark.parametrize(("scope", "offset", "shape"), SCOPES.values(), ids=SCOPES)
def test_bits_are_what_the_scope_allows_in_strips_too(monkeypatch, scope, offset, shape):
    asked = request(scope, queries=50, keys=70, batch=2, heads=3, offset=offset)
    whole = bitmask.build_bitmask(asked)
    assert whole.bits.shape == shape
    assert torch.equal(opened(whole, 70).expand(2, 3, 50, 70), asked.allowed.expand(2, 3, 50, 70))
    monkeypatch.setattr(bitmask, "STRIP", 1)
    for one, other in zip(bitmask.build_bitmask(asked), whole, strict=True):
        assert torch.equal(one, other)


def test_a_scope_is_packed_once_as_long_as_nobody_writes_to_it():
    keep = torch.rand(1, 40) > 0.5
    asked = request(~Padding(keep))
    first = bitmask.find_bitmask(asked)
    assert bitmask.find_bitmask(asked).bits is first.bits
    assert bitmask.find_bitmask(request(Dilated(2))).bits is bitmask.find_bitmask(request(Dilated(2))).bits
    keep.logical_not_()
    assert torch.equal(bitmask.find_bitmask(asked).bits, bitmask.build_bitmask(asked).bits)
    assert not torch.equal(bitmask.find_bitmask(asked).bits, first.bits)
    assert bitmask.find_bitmask(request(~Padding(keep.clone()))).bits is not bitmask.find_bitmask(asked).bits


def test_the_oldest_goes_where_there_are_many():
    for offset in range(bitmask.CACHE_SIZE + 1):
        bitmask.find_bitmask(request(Dilated(2), offset=offset))
    assert len(bitmask.CACHE) == bitmask.CACHE_SIZE
    assert bitmask.blocks.build_cache_key(request(Dilated(2))) not in bitmask.CACHE


class Odd(Scope):
    def __call__(self, b, h, q, k):
        return (q + k) % 2 == 1


@dataclass(frozen=True)
class Listed(Scope):
    places: list

    def __call__(self, b, h, q, k):
        return torch.isin(k, torch.tensor(self.places))


@pytest.mark.parametrize("scope", [Odd(), Listed([3, 4])], ids=["no dataclass", "a list"])
def test_what_cannot_be_compared_is_packed_each_time(scope):
    asked = request(scope)
    assert torch.equal(bitmask.find_bitmask(asked).bits, bitmask.build_bitmask(asked).bits)
    assert not bitmask.CACHE


def test_what_is_packed_without_gradients_serves_a_training_that_follows():
    with torch.inference_mode():
        asked = request(Dilated(2))
        found = bitmask.find_bitmask(asked)
        unknown = bitmask.find_bitmask(request(~Padding(torch.rand(1, 40) > 0.5)))
    assert not any(each.is_inference() for each in found)
    assert unknown.bits.shape == (1, 1, 1, 2)
    assert len(bitmask.CACHE) == 1


def test_bits_of_tiles_that_are_empty_or_full_are_never_read():
    found = bitmask.build_bitmask(request(Blocks(32), queries=64, keys=64))
    assert found.kinds[0, 0].tolist() == [[1, 0], [0, 1]]
    query, key, v = torch.randn(1, 1, 64, 3), torch.randn(1, 1, 64, 3), torch.randn(1, 3)
    right, wrong = (
        operator.attention(query, key, key, v, MaskArguments(None, bits, found.kinds))[0]
        for bits in (found.bits, ~found.bits)
    )
    assert torch.equal(right, wrong)
