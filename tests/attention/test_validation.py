import re

import pytest
import torch

from regard import registry
from regard.attention import Attention, attend
from regard.attention.normalise.softmax import Softmax
from regard.attention.normalise.sum_to_one import SumToOne
from regard.attention.scope.everywhere import Everywhere
from regard.attention.score.cosine import Cosine
from regard.attention.score.distance import Distance
from regard.attention.score.scaled_dot import ScaledDot
from regard.attention.validation import check_inputs, check_stages

PLAIN = (ScaledDot(), Softmax(), Everywhere())


def test_what_fits_together_passes():
    query, key = torch.zeros(2, 4, 3, 5), torch.zeros(2, 2, 6, 5)
    check_inputs(query, key, key, *PLAIN, ("entropy", "top_3"))


@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_tensor_of_another_rank_is_refused(place):
    tensors = [torch.zeros(2, 1, 3, 5), torch.zeros(2, 1, 3, 5), torch.zeros(2, 1, 3, 5)]
    tensors[place] = torch.zeros(2, 3, 5)
    name = ("query", "key", "value")[place]
    text = f"attend needs a {name} of (batch, heads, positions, dim), got (2, 3, 5); one head is tensor[:, None]"
    with pytest.raises(ValueError, match=re.escape(text)):
        check_inputs(*tensors, *PLAIN, ())


def test_different_batch_sizes_are_refused():
    text = "attend needs one batch size, got 2 for queries, 3 for keys and 2 for values; expand the smaller ones"
    with pytest.raises(ValueError, match=re.escape(text)):
        check_inputs(torch.zeros(2, 1, 1, 1), torch.zeros(3, 1, 1, 1), torch.zeros(2, 1, 1, 1), *PLAIN, ())


@pytest.mark.parametrize("shape", [(1, 1, 7, 2), (1, 3, 5, 2)])
def test_a_key_without_a_value_is_refused(shape):
    text = f"attend needs a value for each key, got keys of (heads, keys) (1, 5) and values of {shape[1:3]}"
    with pytest.raises(ValueError, match=re.escape(text)):
        check_inputs(torch.zeros(1, 3, 1, 2), torch.zeros(1, 1, 5, 2), torch.zeros(shape), *PLAIN, ())


def test_key_heads_that_do_not_divide_the_query_heads_are_refused():
    query, key = torch.zeros(1, 4, 1, 2), torch.zeros(1, 3, 1, 2)
    text = "4 query heads cannot share 3 key heads evenly; choose a number of key heads that divides 4"
    with pytest.raises(ValueError, match=re.escape(text)):
        check_inputs(query, key, key, *PLAIN, ())


def test_an_unknown_statistic_is_refused():
    data = torch.zeros(1, 1, 1, 2)
    with pytest.raises(ValueError, match="there is no statistic 'surprise'"):
        check_inputs(data, data, data, *PLAIN, ("surprise",))


@pytest.mark.parametrize("stage", ["additive", ScaledDot, None, Softmax()])
def test_a_score_that_is_not_built_is_refused(stage):
    text = f"score needs a built stage such as ScaledDot(), got {stage!r}; regard.find(name) gives the class"
    with pytest.raises(TypeError, match=re.escape(text)):
        check_stages(stage, Softmax(), Everywhere())


@pytest.mark.parametrize("stage", ["softmax", Softmax, None, torch.softmax])
def test_a_normaliser_that_is_not_built_is_refused(stage):
    text = f"normalise needs a built stage such as Softmax(), got {stage!r}; regard.find(name) gives the class"
    with pytest.raises(TypeError, match=re.escape(text)):
        check_stages(ScaledDot(), stage, Everywhere())


@pytest.mark.parametrize("stage", ["causal", Everywhere, None])
def test_a_scope_that_is_not_built_is_refused(stage):
    text = f"scope needs a Scope such as Causal(), got {stage!r}; regard.find(name) gives the class"
    with pytest.raises(TypeError, match=re.escape(text)):
        check_stages(ScaledDot(), Softmax(), stage)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bool])
def test_a_mask_in_place_of_a_scope_is_refused(dtype):
    text = (
        f"scope needs a Scope such as Causal(), got a {dtype} tensor; "
        "a boolean mask of (batch, keys), True where a key may be seen, becomes Padding(mask)"
    )
    with pytest.raises(TypeError, match=re.escape(text)):
        check_stages(ScaledDot(), Softmax(), torch.ones(2, 3, dtype=dtype))


def test_stages_that_make_no_sense_together_are_refused():
    text = (
        "Distance and SumToOne make no sense together: "
        "its scores are never positive, so no key would get a share; use Softmax or Sparsemax"
    )
    with pytest.raises(ValueError, match=re.escape(text)):
        check_stages(Distance(), SumToOne(), Everywhere())
    check_stages(Cosine(), SumToOne(), Everywhere())


@pytest.mark.unhooked
def test_attend_checks_what_it_is_given():
    data = torch.zeros(2, 1, 3, 5)
    with pytest.raises(ValueError, match="attend needs a query of"):
        attend(data[:, 0], data, data)
    with pytest.raises(ValueError, match="attend needs one batch size"):
        attend(data, data[:1], data[:1])
    with pytest.raises(TypeError, match="scope needs a Scope such as Causal"):
        attend(data, data, data, scope=torch.ones(2, 3))
    with pytest.raises(TypeError, match="score needs a built stage"):
        attend(data, data, data, score="dot")
    with pytest.raises(ValueError, match="ScaledDot needs queries and keys of one size, got 5 and 4"):
        attend(data, data[..., :4], data)


@pytest.mark.unhooked
@pytest.mark.parametrize("offset", [torch.tensor([0.5, 1.0]), torch.tensor([1, 2, 3])], ids=["float", "too many"])
def test_an_offset_is_a_whole_number_or_one_for_each_row(offset):
    query, key = torch.randn(2, 1, 3, 4), torch.randn(2, 1, 5, 4)
    with pytest.raises(ValueError, match=r"offset needs to be a whole number, or one for each of 2 rows, got torch"):
        attend(query, key, key, offset=offset)


def test_a_memory_of_another_batch_is_refused():
    attention = Attention(query=4)
    memory = attention.remember(torch.randn(1, 5, 4))
    with pytest.raises(ValueError, match=r"a memory of 1 rows met queries of 2; there must be one for each"):
        attention(torch.randn(2, 3, 4), memory)


@pytest.mark.parametrize("normalise", registry.every("normalise"), ids=lambda made: made.__name__)
def test_no_keys_at_all_give_zeros(normalise):
    key = torch.randn(2, 1, 0, 4)
    attended = attend(torch.randn(2, 1, 3, 4), key, key, normalise=normalise(), weights=True)
    assert torch.equal(attended.context, torch.zeros(2, 1, 3, 4))
    assert attended.weights.shape == (2, 1, 3, 0)


@pytest.mark.parametrize("shape", [(2, 9, 4), (2, 4, 4), (1, 5, 4), (5, 4)], ids=str)
@pytest.mark.unhooked
def test_values_that_are_not_one_for_each_key_are_refused(shape):
    with pytest.raises(ValueError, match=r"needs a value for each place of the source, .* with \(2, 5\) in front, got"):
        Attention(query=4).remember(torch.randn(2, 5, 4), values=torch.randn(shape))


def test_a_memory_with_more_values_than_keys_is_refused():
    attention = Attention(query=4)
    memory = attention.remember(torch.randn(2, 5, 4))
    with pytest.raises(ValueError, match=r"a memory needs a value for each key, got 5 keys and 9 values"):
        attention(torch.randn(2, 3, 4), memory._replace(values=torch.randn(2, 1, 9, 4)))


@pytest.mark.unhooked
def test_a_source_that_was_not_remembered_is_refused():
    with pytest.raises(TypeError, match=r"Attention reads a Memory, got Tensor; call remember\(source\) first"):
        Attention(query=4)(torch.randn(2, 3, 4), torch.randn(2, 5, 4))
