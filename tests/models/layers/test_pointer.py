import math

import pytest
import torch
from torch.autograd import gradcheck
from torch.testing import assert_close

from regard.attention import Attended, Attention, Encoded, Pointer
from regard.data.special_tokens import EOS, PAD, UNK
from regard.models.layers.pointer import NO_TOKEN, PointerGenerator, is_pointer


def copying(vocabulary=4, counterparts=None, gate=0.0):
    """One whose gate is the same everywhere."""
    made = PointerGenerator(1, 1, 1, vocabulary, counterparts)
    made.gate.weight.data.zero_()
    made.gate.bias.data.fill_(gate)
    return made


def looked(weights):
    """An attention that looked so, for one row and one position after the other."""
    weights = torch.tensor(weights)[None, None]
    return Attended(torch.zeros(1, weights.shape[2], 1), weights), torch.zeros(1, weights.shape[2], 1)


def test_what_it_writes_and_what_it_points_at_are_mixed():
    # g = σ(log 3) = 3/4, P is even over 4, and token 2 stands at two of the three places:
    # p = 3/4 · 1/4 + 1/4 · (0, 0.3, 0.7, 0)
    attended, known = looked([[0.3, 0.2, 0.5]])
    found = copying(gate=math.log(3.0))(torch.zeros(1, 1, 4), attended, known, known, torch.tensor([[1, 2, 2]]))
    assert_close(found.exp(), torch.tensor([[[0.1875, 0.2625, 0.3625, 0.1875]]]))


def test_the_gate_sees_the_context_the_state_and_the_token():
    made = PointerGenerator(2, 3, 4, vocabulary=5)
    context, state, token = (torch.randn(1, 2, size) for size in (2, 3, 4))
    weights, output = torch.rand(1, 1, 2, 3).softmax(-1), torch.randn(1, 2, 5)
    found = made(output, Attended(context, weights), state, token, torch.tensor([[4, 2, 4]]))
    gate = torch.sigmoid(made.gate(torch.cat((context, state, token), dim=-1)))
    copied = torch.zeros(1, 2, 5)
    copied[..., 4], copied[..., 2] = weights[:, 0, :, 0] + weights[:, 0, :, 2], weights[:, 0, :, 1]
    assert_close(found.exp(), gate * output.softmax(-1) + (1 - gate) * copied)


def test_the_weight_of_what_has_no_counterpart_is_left_to_writing():
    # half of the weight lies on a place without a counterpart: p = (1/2 + 1/2 · 1/2) P + 1/2 · (0, 1/2, 0, 0)
    attended, known = looked([[0.5, 0.5]])
    found = copying()(torch.zeros(1, 1, 4), attended, known, known, torch.tensor([[1, NO_TOKEN]]))
    assert_close(found.exp(), torch.tensor([[[0.1875, 0.4375, 0.1875, 0.1875]]]))


def test_an_attention_that_sees_nothing_leaves_all_to_writing():
    attended, known = looked([[0.0, 0.0]])
    output = torch.randn(1, 1, 4)
    found = copying(gate=-30.0)(output, attended, known, known, torch.tensor([[1, 2]]))
    assert_close(found, output.log_softmax(-1))


def test_a_gate_that_is_shut_leaves_logarithms_and_gradients_finite():
    attended, known = looked([[1.0, 0.0]])
    output = torch.tensor([[[0.0, 200.0, 0.0, -200.0]]], requires_grad=True)
    for gate in (-200.0, 200.0):
        made = copying(gate=gate)
        found = made(output, attended, known, known, torch.tensor([[2, 3]]))
        assert found.isfinite().all()
        assert_close(found.logsumexp(-1), torch.zeros(1, 1))
        found.sum().backward()
        assert output.grad.isfinite().all()
        assert made.gate.bias.grad.isfinite().all()


def test_gradients_equal_small_differences():
    made = PointerGenerator(2, 3, 1, vocabulary=4).double()
    tokens = torch.tensor([[1, NO_TOKEN, 1], [2, 3, NO_TOKEN]])
    sizes = (2, 2, 4), (2, 2, 2), (2, 1, 2, 3), (2, 2, 3), (2, 2, 1)
    inputs = [torch.rand(size, dtype=torch.float64, requires_grad=True) for size in sizes]

    def run(output, context, weights, state, token):
        return made(output, Attended(context, weights.softmax(-1)), state, token, tokens)

    assert gradcheck(run, inputs)


def test_the_beams_of_a_source_copy_from_the_same_tokens():
    made = PointerGenerator(1, 1, 1, vocabulary=6)
    weights, output = torch.rand(4, 1, 2, 3).softmax(-1), torch.randn(4, 2, 6)
    attended, known = Attended(torch.randn(4, 2, 1), weights), torch.randn(4, 2, 1)
    tokens = torch.tensor([[1, 2, 3], [4, 5, NO_TOKEN]])
    found = made(output, attended, known, known, tokens)
    assert_close(found, made(output, attended, known, known, tokens[[0, 0, 1, 1]]))
    assert not torch.allclose(found, made(output, attended, known, known, tokens[[0, 1, 0, 1]]))


def test_several_heads_point_together():
    made, known = copying(), torch.zeros(1, 1, 1)
    attended = Attended(known, torch.tensor([[[[1.0, 0.0]], [[0.5, 0.5]]]]))
    found = made(torch.zeros(1, 1, 4), attended, known, known, torch.tensor([[1, 2]]))
    assert_close(found.exp(), 0.125 + 0.5 * torch.tensor([[[0.0, 0.75, 0.25, 0.0]]]))


def test_source_tokens_become_target_tokens():
    tokens, keep = torch.tensor([[5, 4, EOS, PAD], [6, UNK, EOS, PAD]]), torch.tensor([[True, True, True, False]] * 2)
    encoded = Encoded(torch.zeros(2, 4, 1), keep, tokens=tokens)
    table = copying(6, [NO_TOKEN, NO_TOKEN, EOS, UNK, 5, 4, NO_TOKEN])
    assert table.tokens(encoded).tolist() == [[4, 5, EOS, NO_TOKEN], [NO_TOKEN, UNK, EOS, NO_TOKEN]]
    same = copying(6)
    assert same.tokens(encoded).tolist() == [[5, 4, EOS, NO_TOKEN], [NO_TOKEN, UNK, EOS, NO_TOKEN]]
    assert same.tokens(encoded._replace(keep=None))[0].tolist() == [5, 4, EOS, PAD]


def test_the_table_is_saved_with_the_model_and_both_sides_alike_need_none():
    assert copying(6, [NO_TOKEN, 5]).state_dict()["counterparts"].tolist() == [NO_TOKEN, 5]
    assert sorted(copying(6).state_dict()) == ["gate.bias", "gate.weight"]


def test_half_precision_gives_logarithms_in_single():
    made, known = copying().half(), torch.zeros(1, 1, 1, dtype=torch.float16)
    attended = Attended(known, torch.tensor([[[[0.25, 0.75]]]], dtype=torch.float16))
    found = made(torch.zeros(1, 1, 4, dtype=torch.float16), attended, known, known, torch.tensor([[1, 2]]))
    assert_close(found.exp(), 0.125 + 0.5 * torch.tensor([[[0.0, 0.25, 0.75, 0.0]]]))


def test_only_an_attention_that_points_copies():
    assert is_pointer(Pointer(4))
    assert not is_pointer(Attention(4, score="additive"))
    assert not is_pointer(None)


def test_what_cannot_be_copied_is_told():
    with pytest.raises(ValueError, match=r"needs to come with its tokens .* read a source without tokens by bahdanau"):
        copying().tokens(Encoded(torch.zeros(1, 2, 1)))
    with pytest.raises(ValueError, match="a counterpart needs to be a target token from 0 to 3, or -1 for none, got 4"):
        copying(4, [NO_TOKEN, 4])
