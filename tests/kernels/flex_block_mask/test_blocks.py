from dataclasses import dataclass

import pytest
import torch
from torch.nn.attention.flex_attention import create_block_mask

from regard.attention.normalise.softmax import Softmax
from regard.attention.scope import Scope
from regard.attention.scope.blocks import Blocks
from regard.attention.scope.causal import Causal
from regard.attention.scope.document import Document
from regard.attention.scope.everywhere import Everywhere
from regard.attention.scope.landmarks import Landmarks
from regard.attention.scope.local import Local
from regard.attention.score.scaled_dot import ScaledDot
from regard.attention.types import Request
from regard.kernels.flex_block_mask import blocks


@pytest.fixture(autouse=True)
def _fresh(monkeypatch):
    monkeypatch.setattr(blocks, "CACHE", {})
    monkeypatch.setattr(blocks, "LATEST", [])


@dataclass(frozen=True)
class ByHead(Scope):
    """Even heads look back, odd heads ahead."""

    def __call__(self, b, h, q, k):
        return (h % 2 == 0) == (k <= q)


def request(scope, queries=300, keys=300, batch=2, heads=2, offset=0) -> Request:
    query, memory = torch.zeros(batch, heads, queries, 4), torch.zeros(batch, heads, keys, 4)
    return Request(query, memory, memory, ScaledDot(), Softmax(), scope, 0.0, offset, False, ())


def documents(length=300) -> Document:
    return Document(torch.arange(length).expand(2, -1) // torch.tensor([[100], [140]]))


SCOPES = {
    "everywhere": (Everywhere(), 0),
    "causal": (Causal(), 0),
    "blocks, moved": (Blocks(64), 70),
    "a window and landmarks": (Local(9) | Landmarks(3), 0),
    "by head": (ByHead(), 0),
    "documents": (documents(), 0),
    "documents, causal": (Causal() & documents(), 0),
    "rows at different places": (Causal() & Local(60), torch.tensor([0, 150])),
}


@pytest.mark.parametrize(("scope", "offset"), SCOPES.values(), ids=SCOPES)
@pytest.mark.parametrize("strip", [1, 8])
def test_tiles_are_those_of_pytorchs_own_count(scope, offset, strip, monkeypatch):
    monkeypatch.setattr(blocks, "STRIP", strip)
    asked = request(scope, queries=230 if isinstance(offset, int) and offset else 300, offset=offset)
    mine = blocks.build_block_mask(asked)
    theirs = create_block_mask(blocks.build_mask_mod(asked), 2, 2, asked.query.shape[2], 300, device="cpu")
    assert torch.equal(mine.to_dense().expand_as(theirs.to_dense()), theirs.to_dense())
    assert torch.equal(mine.full_kv_num_blocks.expand(2, 2, -1), theirs.full_kv_num_blocks)
    assert mine.seq_lengths == theirs.seq_lengths


def test_a_mask_is_no_larger_than_the_scope_asks_for():
    assert blocks.build_block_mask(request(Causal())).kv_num_blocks.shape == (1, 1, 3)
    assert blocks.build_block_mask(request(documents())).kv_num_blocks.shape == (2, 1, 3)
    assert blocks.build_block_mask(request(ByHead())).kv_num_blocks.shape == (1, 2, 3)


def test_the_share_of_tiles_that_are_left():
    assert blocks.find_block_mask(request(Blocks(128), 512, 512)).share == 4 / 16
    assert blocks.find_block_mask(request(Causal(), 512, 512)).share == 10 / 16
    assert blocks.find_block_mask(request(Everywhere(), 512, 512)).share == 1
    assert blocks.find_block_mask(request(documents())).share is None


def test_a_scope_without_tensors_is_looked_at_once_for_each_length_and_offset():
    first = blocks.find_block_mask(request(Local(5) & Causal()))
    assert blocks.find_block_mask(request(Local(5) & Causal())) is first
    for other in (request(Local(6) & Causal()), request(Local(5) & Causal(), 299), request(Local(5) & Causal(), offset=1)):
        assert blocks.find_block_mask(other) is not first


def test_only_so_many_masks_are_kept(monkeypatch):
    monkeypatch.setattr(blocks, "CACHE_SIZE", 2)
    first = blocks.find_block_mask(request(Blocks(1)))
    for size in (2, 3):
        blocks.find_block_mask(request(Blocks(size)))
    assert len(blocks.CACHE) == 2
    assert blocks.find_block_mask(request(Blocks(1))) is not first


def test_a_scope_with_tensors_is_looked_at_again_once_they_change():
    numbers = torch.arange(300).expand(2, -1) // 100
    numbers = numbers.clone()
    first = blocks.find_block_mask(request(Document(numbers)))
    assert blocks.find_block_mask(request(Document(numbers))) is first
    assert blocks.find_block_mask(request(Document(numbers.clone()))) is not first
    first = blocks.find_block_mask(request(Document(numbers)))
    numbers[:, 50:] += 7
    assert blocks.find_block_mask(request(Document(numbers))) is not first


def test_tensors_whose_changes_nobody_counts_are_looked_at_every_time(monkeypatch):
    with torch.inference_mode():
        asked = request(documents())
        assert blocks.find_block_mask(asked) is not blocks.find_block_mask(asked)
    asked = request(documents())
    monkeypatch.setattr(blocks, "is_capturing", lambda: True)
    assert blocks.find_block_mask(asked) is not blocks.find_block_mask(asked)
    assert blocks.LATEST == []


def test_a_scope_is_checked_against_the_lengths_it_meets():
    with pytest.raises(ValueError, match="Document was made for"):
        blocks.find_block_mask(request(documents(200)))


def test_a_structure_holds_numbers_and_the_kinds_of_tensors():
    assert blocks.describe_structure(Causal() & Local(3)) == blocks.describe_structure(Causal() & Local(3))
    assert blocks.describe_structure(Causal() & Local(3)) != blocks.describe_structure(Causal() & Local(4))
    assert blocks.describe_structure(documents()) == blocks.describe_structure(documents(200))
    assert blocks.describe_structure(documents()) != blocks.describe_structure(
        Document(torch.zeros(2, 5, dtype=torch.int32))
    )


def test_a_scope_that_cannot_be_compared_is_refused():
    class Own(Scope):
        def __call__(self, b, h, q, k):
            return k == q

    with pytest.raises(TypeError, match="needs scopes that are dataclasses, got Own"):
        blocks.describe_structure(Causal() & Own())

    @dataclass(frozen=True)
    class Listed(Scope):
        places: list

        def __call__(self, b, h, q, k):
            return k == q

    with pytest.raises(TypeError, match="unhashable type: 'list'"):
        blocks.describe_structure(Listed([1]))
