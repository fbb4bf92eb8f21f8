import pytest
import torch

from regard.attention.module import Attention
from regard.attention.multihead import MultiHead
from regard.attention.types import Encoded
from regard.decoding.engines.cpp.attention import build_attention, build_source, covers, expand_heads


def test_a_query_without_a_matrix_is_as_wide_as_who_asks():
    made = build_attention(Attention(6, 6, score="dot"), "float32", 6)
    assert (made.asks.out, made.output.out, made.heads, made.size, made.wide, made.scale) == (0, 0, 1, 6, 6, 1.0)


def test_heads_share_out_what_the_matrix_gives():
    made = build_attention(MultiHead(6, 4, heads=3, size=12), "float32", 6)
    assert (made.asks.out, made.output.out, made.heads, made.size, made.wide) == (12, 6, 3, 4, 4)
    assert made.scale == pytest.approx(0.5)


def test_an_additive_score_asks_through_its_own_matrix_which_is_never_rounded():
    attention = Attention(6, 4, score="additive")
    made = build_attention(attention, "int8", 6)
    assert (made.asks.size, made.asks.out, made.size, made.wide) == (6, 4, 4, 4)
    assert made.asks.weight is not None
    assert made.v == attention.score.v.weight.data_ptr()


def test_what_stands_behind_takes_the_place_of_an_output_that_is_missing():
    behind = torch.nn.Linear(6, 5)
    assert build_attention(Attention(6, 6, score="dot"), "float32", 6, behind).output.out == 5
    assert build_attention(MultiHead(6, heads=2), "float32", 6, torch.nn.Identity()).output.out == 6


def test_keys_lie_where_they_were_and_heads_that_share_them_lie_in_one_place():
    attention = MultiHead(8, heads=4, key_heads=1)
    memory = attention.remember(Encoded(torch.randn(2, 3, 8)))
    made = build_source(attention, memory)
    assert made.keys.data == memory.keys.data_ptr()
    assert (made.keys.source, made.keys.head, made.keys.key) == (memory.keys.stride(0), 0, memory.keys.stride(2))


def test_vectors_whose_numbers_lie_apart_are_copied():
    data = torch.randn(1, 2, 4, 3).transpose(2, 3)
    assert expand_heads(data, 2).stride(3) == 1
    torch.testing.assert_close(expand_heads(data, 2), data)


@pytest.mark.parametrize(
    ("attention", "reason"),
    [
        (MultiHead(6, heads=2, score="additive"), "needs an additive score of one head"),
        (Attention(6, 6, size=4, score="additive"), "needs an additive score without another projection of its queries"),
        (MultiHead(6, heads=2, merge="mean"), "needs heads that are joined by concat, got mean"),
        (Attention(6, 6, normalise="sparsemax"), "needs Softmax and Everywhere, got Sparsemax"),
    ],
)
def test_what_it_does_not_cover_it_says(attention, reason):
    assert covers(attention).startswith(reason)
    assert covers(MultiHead(6, heads=2)) is None
