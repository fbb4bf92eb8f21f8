import torch

from regard.attention.types import Memory
from regard.interop.onnx.names import filled, named
from regard.models.decoders.transformer import TransformerState


def test_a_tensor_is_called_by_the_way_to_it_and_nothing_has_no_name():
    one, two, three = torch.ones(1), torch.ones(2), torch.ones(3)
    tree = TransformerState((Memory(one, two),), ((), {"deep": [None, three]}))
    assert named(tree, "state") == {
        "state.caches.0.keys": one,
        "state.caches.0.values": two,
        "state.attentions.1.deep.1": three,
    }


def test_tensors_go_back_to_where_their_names_came_from():
    tree = TransformerState((Memory(torch.ones(1), torch.ones(2)),), ((), {"deep": [None, torch.ones(3)]}))
    doubled = filled(tree, [2 * each for each in named(tree, "state").values()])
    assert named(doubled, "state").keys() == named(tree, "state").keys()
    assert doubled.caches[0].keep is None
    assert doubled.attentions[0] == ()
    assert [each.tolist() for each in named(doubled, "state").values()] == [[2], [2, 2], [2, 2, 2]]
