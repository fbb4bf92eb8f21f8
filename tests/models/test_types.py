import torch

from regard.attention.types import Memory
from regard.models.types import Step
from regard.tree import map_tree, repeat, repeat_rows, select


def test_a_tree_keeps_its_shape_and_what_is_no_tensor():
    one = torch.ones(2)
    tree = {"a": [one, (one, None)], "b": Memory(one, one), "c": (), "d": 3}
    found = map_tree(lambda tensor: tensor + 1, tree)
    assert set(found) == {"a", "b", "c", "d"}
    assert isinstance(found["a"], list)
    assert isinstance(found["a"][1], tuple)
    assert isinstance(found["b"], Memory)
    assert (found["c"], found["d"], found["a"][1][1], found["b"].keep) == ((), 3, None, None)
    for tensor in (found["a"][0], found["a"][1][0], found["b"].keys, found["b"].values):
        assert tensor.tolist() == [2, 2]
    assert one.tolist() == [1, 1]


def test_select_takes_rows_in_the_order_asked_for():
    tree = (torch.tensor([[1], [2], [3]]), torch.tensor([4, 5, 6]))
    left, right = select(tree, torch.tensor([2, 0, 2]))
    assert left.tolist() == [[3], [1], [3]]
    assert right.tolist() == [6, 4, 6]


def test_repeat_sets_the_beams_of_a_row_side_by_side():
    assert repeat({"x": torch.tensor([1, 2])}, 3)["x"].tolist() == [1, 1, 1, 2, 2, 2]
    deep = torch.randn(2, 3, 0, 4)
    assert repeat_rows(deep, 5).shape == deep.repeat_interleave(5, dim=0).shape == (10, 3, 0, 4)


def test_a_step_is_a_record_of_four():
    assert Step._fields == ("output", "state", "attended", "copying")
