import pytest
import torch

from regard.cli.show.heatmap import heat, places, shade, wide


def test_a_larger_weight_is_a_darker_cell():
    assert [shade(weight) for weight in (0.0, 0.19, 0.2, 0.5, 0.79, 0.8, 1.0)] == list("  ░▒▓██")


def test_queries_go_down_and_keys_across_and_chinese_is_two_cells_wide():
    drawn = heat(torch.tensor([[1.0, 0.0], [0.0, 0.5]]), ["汤姆", "b"], ["Tom", "是"])
    assert drawn == "     Tom 是\n汤姆  ██\nb        ▒▒"


@pytest.mark.unhooked
def test_there_is_a_word_for_each_row_and_column():
    with pytest.raises(ValueError, match=r"\(2, 2\) weights need as many words, got 1 queries and 2 keys"):
        heat(torch.eye(2), ["a"], ["b", "c"])


def test_each_word_has_a_map_whose_darkest_place_is_the_largest_weight():
    weights = torch.tensor([[0.5, 0.0, 0.0, 0.0], [0.0, 0.1, 0.1, 0.2]])
    assert places(weights, ["红", "star"], (2, 2)) == "红    star\n██      ▒▒\n      ▒▒██"


def test_maps_that_do_not_fit_beside_each_other_stand_below():
    text = places(torch.ones(3, 20), ["a", "b", "c"], (1, 20))
    assert text.split("\n\n") == ["a\n" + "█" * 40, "b\n" + "█" * 40, "c\n" + "█" * 40]


def test_a_word_that_looked_nowhere_has_an_empty_map():
    assert places(torch.zeros(1, 2), ["a"], (1, 2)) == "a\n"


def test_chinese_takes_two_columns():
    assert wide("红 a") == 4


def test_weights_need_a_map_that_has_their_places():
    with pytest.raises(
        ValueError, match=r"\(1, 4\) weights need as many words, and a map with as many places, got 1 queries"
    ):
        places(torch.ones(1, 4), ["a"], (2, 3))
