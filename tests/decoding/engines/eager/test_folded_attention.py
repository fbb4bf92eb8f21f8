import pytest
import torch
from torch import nn

from regard.attention import Attention, MultiHead
from regard.attention.types import Encoded
from regard.data.batch import pad
from regard.decoding.engines.eager.attention import FoldableProjections, FoldedAttention, split_linear

KEEP = pad([[1] * 5, [1] * 2]).keep


def test_one_source_worked_by_hand():
    keys = values = torch.tensor([[[[1.0], [0.0]]]])
    query, output = (torch.tensor([[2.0]]), torch.tensor([0.0])), (torch.tensor([[3.0]]), torch.tensor([10.0]))
    folded = FoldedAttention(FoldableProjections(query, output, factor=0.5), keys, values, None)
    share = torch.tensor(1.0).sigmoid()  # the scores are 0.5 * 2 * 1 * 1 and 0
    torch.testing.assert_close(folded(torch.tensor([[1.0]])), (3 * share + 10).view(1, 1))
    before = torch.tensor([[100.0]])
    assert folded.onto(before, torch.tensor([[1.0]])) is before
    torch.testing.assert_close(before, (3 * share + 110).view(1, 1))


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("width", [1, 3])
def test_heads_find_what_they_find_unfolded_and_leave_with_their_sources(bias, width):
    torch.manual_seed(0)
    heads, queries = MultiHead(8, 6, heads=2, bias=bias), torch.randn(2, width, 8)
    with torch.no_grad():
        memory = heads.remember(Encoded(torch.randn(2, 5, 6), KEEP))
        expected = heads(queries, memory).context
        folded = FoldedAttention(
            FoldableProjections(split_linear(heads.query), split_linear(heads.output), 0.5), *memory[:3]
        )
        torch.testing.assert_close(folded(queries.flatten(0, 1)), expected.flatten(0, 1))
        folded.leave(torch.tensor([1]))
        torch.testing.assert_close(folded(queries[1]), expected[1])


def test_an_attention_without_a_projection_of_its_query_has_one_behind_it_folded():
    torch.manual_seed(0)
    bilinear, behind, query = Attention(8, 6, score="bilinear"), nn.Linear(6, 4), torch.randn(2, 8)
    with torch.no_grad():
        memory = bilinear.remember(Encoded(torch.randn(2, 5, 6), KEEP))
        expected = behind(bilinear(query[:, None], memory).context)[:, 0]
        torch.testing.assert_close(
            FoldedAttention(FoldableProjections(None, split_linear(behind)), *memory[:3])(query), expected
        )


def test_a_layer_without_a_bias_adds_nothing():
    weight, bias = split_linear(nn.Linear(3, 2, bias=False))
    assert weight.shape == (2, 3)
    assert bias.tolist() == [0.0, 0.0]
