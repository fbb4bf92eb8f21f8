import re

import pytest
import torch

from regard.attention.scope.causal import Causal
from regard.attention.scope.prefix import Prefix


def test_everybody_sees_the_beginning(draw):
    assert draw(Prefix(2), 3, 4) == ["1100", "1100", "1100"]


def test_no_prefix_is_nothing_and_a_long_one_everything(draw):
    assert draw(Prefix(0), 2, 2) == ["00", "00"]
    assert draw(Prefix(9), 2, 2) == ["11", "11"]


def test_each_row_may_have_a_length_of_its_own(draw):
    prefix = Prefix(torch.tensor([1, 3]))
    assert draw(prefix, 1, 4, row=0, batch=2) == ["1000"]
    assert draw(prefix, 1, 4, row=1, batch=2) == ["1110"]


def test_with_causal_it_is_a_prefix_language_model(draw):
    assert draw(Causal() | Prefix(2)) == ["1100", "1100", "1110", "1111"]


def test_a_negative_length_is_refused():
    with pytest.raises(ValueError, match="Prefix needs a length of 0 or more keys, got -1"):
        Prefix(-1)


def test_a_wrong_number_of_lengths_is_refused():
    with pytest.raises(ValueError, match=re.escape("Prefix needs one length for each of 3 rows, got (2,)")):
        Prefix(torch.tensor([1, 2])).allowed(3, 1, 1, 4, 0, torch.device("cpu"))
