"""Text in columns: Latin and Chinese words line up, and numbers look alike."""

import torch
from rich.cells import cell_len

from regard.cli.show.steps import write_steps
from regard.cli.show.table import columns, decimals, indent, line, paragraphs, squares, title


def test_words_stand_to_the_left_and_numbers_to_the_right():
    assert columns([["", "a", "long"], ["word", "1.0", "2"]]) == "        a  long\nword  1.0     2"
    assert columns([["a", ":", "b"], ["more", ":", "c"]], left=3, gap=" ") == "a    : b\nmore : c"


def test_a_row_may_be_shorter_and_leaves_no_spaces_at_its_end():
    assert columns([["a", "b", "c"], ["d"], ["", ""]]) == "a  b  c\nd\n"


def test_chinese_words_and_latin_words_fill_the_same_columns():
    table = columns([["汤姆", "1.0"], ["Tom", "12.0"]]).splitlines()
    assert {cell_len(each) for each in table} == {10}
    table = write_steps("scaled_dot").partition("\n1. ")[2].splitlines()[2:6]
    assert {cell_len(each) for each in table} == {cell_len(table[0])}
    assert table[1] == "    汤姆  1.340   0.200  0.635"


def test_squares_are_counted_from_the_first():
    assert squares(torch.tensor([[True, False], [True, True]]), first=3) == "  0 1\n3 ■ ·\n4 ■ ■"


def test_numbers_have_three_decimals_and_zero_has_no_minus():
    assert decimals(torch.tensor([-0.0001, -1.0, 0.12345])) == ["0.000", "-1.000", "0.123"]
    assert line(torch.tensor([-1.0, 2.0])) == "-1.000   2.000"


def test_a_title_is_underlined_to_its_width():
    assert title("Tom") == "Tom\n==="
    assert title("汤姆") == "汤姆\n===="


def test_empty_lines_stay_empty_when_indented():
    assert indent("a\n\nb") == "    a\n\n    b"


def test_paragraphs_have_an_empty_line_between_them():
    assert paragraphs("a", "b") == "a\n\nb"
