from types import SimpleNamespace

import pytest

from regard.config import Search
from regard.errors import ConfigError
from regard.inference.sequence_trace import check_traceable, encode_answers


def test_a_search_in_another_precision_cannot_be_traced():
    check_traceable(Search())
    with pytest.raises(ConfigError, match=r"search\.precision=int8 answers by other numbers: leave one of the two out"):
        check_traceable(Search(precision="int8"))


def test_a_trace_needs_inputs_and_a_target_for_each():
    predictor = SimpleNamespace(config=SimpleNamespace(search=Search()))
    with pytest.raises(ValueError, match="trace needs one input or more, got none"):
        next(encode_answers(predictor, [], None, None, None))
    with pytest.raises(ValueError, match="trace needs a target for each of 2 texts, got 1"):
        next(encode_answers(predictor, ["a", "b"], None, ["A"], None))
