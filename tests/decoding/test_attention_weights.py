import pytest
import torch

from regard.attention.types import Attended, Memory
from regard.decoding.attention_weights import (
    collect_path_weights,
    collect_weights_by_row,
    find_key_mask,
    find_source_mask,
    is_cross_attention,
    select_attention,
)

CONTEXT = torch.zeros(1)


def memory(keys: int, *, keep=None) -> Memory:
    data = torch.zeros(2, 1, keys, 4)
    return Memory(data, data, keep)


def test_beams_on_the_axis_of_queries_become_rows():
    weights = torch.rand(2, 3, 4, 5)  # sources, heads, beams, keys
    rows = collect_weights_by_row({"a": Attended(CONTEXT, weights)})["a"]
    assert rows.shape == (8, 3, 5)
    torch.testing.assert_close(rows[5], weights[1, :, 1])


def test_rows_with_one_query_each_stay_rows():
    weights = torch.rand(8, 3, 1, 5)
    torch.testing.assert_close(collect_weights_by_row({"a": Attended(CONTEXT, weights)})["a"], weights[:, :, 0])


def test_an_attention_that_gave_no_weights_is_left_out():
    assert collect_weights_by_row({"a": Attended(CONTEXT)}) == {}


def test_the_first_attention_over_the_source_is_the_cross_attention():
    seen = {name: torch.zeros(1, 1, 1) for name in ("decoder.0.self", "decoder.0.cross", "decoder.1.cross")}
    assert select_attention(seen, None) == "decoder.0.cross"
    assert select_attention(seen, "decoder.1.cross") == "decoder.1.cross"
    assert is_cross_attention("attention")
    assert not is_cross_attention("self")


def test_of_an_ensemble_the_mean_is_asked_for_and_without_one_the_first_member():
    look = torch.zeros(1, 1, 1)
    assert (
        select_attention({"0.decoder.cross": look, "1.decoder.cross": look, "decoder.cross": look}, None) == "decoder.cross"
    )
    assert select_attention({"0.decoder.cross": look, "1.decoder.0.cross": look}, None) == "0.decoder.cross"


def test_a_name_that_no_attention_has_is_an_error():
    with pytest.raises(ValueError, match="no attention of this decoder is called 'b'; there are a"):
        select_attention({"a": torch.zeros(1, 1, 1)}, "b")


def test_a_decoder_without_attention_covers_nothing():
    with pytest.raises(ValueError, match="coverage_penalty needs an attention over the source, and this decoder has none"):
        select_attention({"decoder.0.self": torch.zeros(1, 1, 1)}, None)


def test_the_real_keys_are_those_of_the_memory_with_that_name_or_size():
    text, picture = torch.ones(2, 3, dtype=torch.bool), torch.ones(2, 5, dtype=torch.bool)
    tree = {"a": memory(3, keep=text), "b": [memory(5, keep=picture), memory(3)]}
    assert find_key_mask(tree, "a", 3) is text
    assert find_key_mask(({"other": memory(3), "a": memory(3, keep=text)}, ()), "a", 3) is text
    assert find_key_mask(tree, "decoder.0.picture", 5) is picture
    assert find_key_mask((memory(3), memory(3, keep=text)), "a", 3) is None
    assert find_key_mask(torch.zeros(2, 3), "a", 3) is None


def test_the_way_to_a_hypothesis_is_cut_to_the_real_keys():
    steps = [{"cross": torch.rand(4, 2, 3)}, {"cross": torch.rand(4, 2, 3)}, {"cross": torch.rand(4, 2, 3)}]
    keep = torch.tensor([[True, True, True], [True, True, False]])
    found = collect_path_weights(steps, [3, 1], memory(3, keep=keep), 1)["cross"]
    torch.testing.assert_close(found, torch.stack([steps[0]["cross"][3], steps[1]["cross"][1]], dim=1)[..., :2])


def test_holes_between_real_keys_stay():
    keep = torch.tensor([[True, False, True], [False, False, False]])
    steps = [{"cross": torch.rand(2, 1, 3)}]
    assert collect_path_weights(steps, [0], memory(3, keep=keep), 0)["cross"].shape == (1, 1, 3)
    assert collect_path_weights(steps, [1], memory(3, keep=keep), 1)["cross"].shape == (1, 1, 0)


def test_what_looks_at_the_target_is_filled_up_with_zeros():
    steps = [{"0.self": torch.ones(1, 1, keys)} for keys in (1, 2, 3)]
    found = collect_path_weights(steps, [0, 0, 0], memory(3, keep=torch.zeros(2, 3, dtype=torch.bool)), 0)
    assert found["0.self"][0].tolist() == [[1, 0, 0], [1, 1, 0], [1, 1, 1]]


def test_no_step_gives_no_weights():
    assert collect_path_weights([], [], (), 0) == {}


def test_of_a_map_the_places_are_given_that_are_kept_wherever_the_filling_stands():
    keep = torch.tensor([[True, True, True, True], [True, False, True, False]])  # the second has one column
    steps = [{"cross": torch.tensor([[[0.1, 0.2, 0.3, 0.4]], [[0.6, 0.0, 0.4, 0.0]]])}]
    map_ = memory(4, keep=keep)._replace(grid=(2, 2))
    torch.testing.assert_close(collect_path_weights(steps, [1], {"cross": map_}, 1)["cross"], torch.tensor([[[0.6, 0.4]]]))
    assert collect_path_weights(steps, [0], {"cross": map_}, 0)["cross"].shape == (1, 1, 4)


def test_the_places_of_a_source_are_those_that_its_first_attention_reads():
    keep = torch.tensor([[True, False], [True, True]])
    assert torch.equal(find_source_mask(({"cross": memory(2, keep=keep)}, ())), keep)
    assert find_source_mask({"cross": memory(2)}) is None
