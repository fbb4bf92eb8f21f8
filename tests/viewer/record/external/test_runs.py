"""Passes of a run of a model of another library, and the rows that its calls record."""

import pytest
import torch

from regard.viewer.record.external.product import Product
from regard.viewer.record.external.runs import ModelRun, choose_rows, record_product
from regard.viewer.record.hooks import Wanted


@pytest.mark.parametrize(
    ("rows", "queries", "first", "chosen"),
    [((0, 3), 4, 0, (0, 3)), ((5,), 4, 4, (5,)), ((1,), 4, 4, ()), ((-1,), 4, 4, (7,)), ((-5,), 4, 0, ())],
)
def test_rows_are_counted_from_the_first_or_from_the_last_of_a_pass(rows, queries, first, chosen):
    assert choose_rows(rows, queries, first) == chosen


def test_a_module_that_is_called_twice_in_a_pass_has_numbered_calls():
    run = ModelRun()
    run.add_pass({"input_ids": torch.zeros(1, 3)})
    assert [run.name_call("layer"), run.name_call("layer")] == ["layer", "layer (2)"]
    run.add_pass({"input_ids": torch.zeros(1, 1)})
    assert (run.step, run.name_call("layer")) == (1, "layer")


def test_an_encoder_that_ran_by_itself_belongs_to_the_first_pass_of_its_decoder():
    run = ModelRun()
    run.add_pass({"input_ids": torch.ones(1, 3)})
    run.has_decoded = False
    run.add_pass({"decoder_input_ids": torch.ones(1, 2)})
    assert [sorted(inputs) for inputs in run.passes] == [["decoder_input_ids", "input_ids"]]


def test_chosen_rows_and_heads_are_those_of_the_whole_matrix():
    query, key = torch.randn(2, 1, 3, 5, 4)
    product = Product(query, key, key, 0.5, None, True, None, None, None, 0.0)
    run = ModelRun()
    run.add_pass({"input_ids": torch.ones(1, 5)})
    whole = record_product(run, product, Wanted(), (0, False), "sdpa")
    part = record_product(run, product, Wanted(weights=False, rows=(-1,), heads=(2, 0)), (0, False), "sdpa")
    assert part.rows == (4,)
    assert part.weights.tolist() == whole.weights[:, [2, 0], 4:].tolist()
    with pytest.raises(ValueError, match="heads needs numbers below 3, which this attention has, got 3"):
        record_product(run, product, Wanted(heads=(3,)), (0, False), "sdpa")
