import pytest
import torch

from regard.cli.show.heatmap import heat, shade


def test_a_larger_weight_is_a_darker_cell():
    assert [shade(weight) for weight in (0.0, 0.19, 0.2, 0.5, 0.79, 0.8, 1.0)] == list("  ░▒▓██")


def test_queries_go_down_and_keys_across_and_chinese_is_two_cells_wide():
    drawn = heat(torch.tensor([[1.0, 0.0], [0.0, 0.5]]), ["汤姆", "b"], ["Tom", "是"])
    assert drawn == "     Tom 是\n汤姆  ██\nb        ▒▒"


@pytest.mark.unhooked
def test_there_is_a_word_for_each_row_and_column():
    with pytest.raises(ValueError, match=r"\(2, 2\) weights need as many words, got 1 queries and 2 keys"):
        heat(torch.eye(2), ["a"], ["b", "c"])
