import pytest
import torch

from regard.attention.types import Memory
from regard.interop.onnx.graphs import (
    Encoding,
    Sizes,
    Stepping,
    example,
    flatten,
    flatten_memory,
    outputs,
    restore_memory,
    unflatten,
)
from regard.models.decoders.transformer import TransformerState
from regard.tree import repeat

from .models import small

KINDS = {
    "recurrent": ("recurrent", "recurrent", "additive"),
    "convolution": ("convolution", "convolution", "dot"),
    "transformer": ("transformer", "transformer", "transformer"),
}
kinds = pytest.mark.parametrize("kind", KINDS)


def test_an_example_has_the_sizes_that_are_asked_for_and_a_source_without_padding():
    model = small(*KINDS["transformer"])
    given = example(model, Sizes(sources=4, beams=3, keys=6, written=2))
    assert given.source.data.shape == given.source.keep.shape == (4, 6)
    assert given.source.keep[0].all()
    assert given.token.shape == (12,)
    assert given.inputs["token"].shape == (4, 3)
    assert given.inputs["state.caches.0.keys"].shape == (4, 3, 2, 2, 8)  # sources beams heads written dim
    assert given.inputs["memory.decoder.0.cross.keys"].shape == (4, 2, 6, 8)  # one for all beams of a source


def test_an_example_of_one_seed_is_one_example():
    model = small(*KINDS["recurrent"])
    first, again, other = (example(model, seed=seed) for seed in (3, 3, 4))
    assert torch.equal(first.source.data, again.source.data)
    assert torch.equal(first.token, again.token)
    assert not torch.equal(first.token, other.token)


@kinds
def test_a_memory_comes_back_from_its_tensors(kind):
    given = example(small(*KINDS[kind]))
    again = restore_memory(given.memory, given.source.keep, tuple(flatten_memory(given.memory).values()))
    assert again.memories.keys() == given.memory.memories.keys()
    for name, each in flatten_memory(again).items():
        assert torch.equal(each, flatten_memory(given.memory)[name])
    assert all(each.keep is given.source.keep for each in again.memories.values())


@kinds
@torch.no_grad()
def test_the_encoder_gives_the_memory_and_the_state_before_the_first_token(kind):
    model = small(*KINDS[kind])
    given = example(model)
    found = Encoding(model)(given.source.data, given.source.keep)
    names = outputs(model, given)
    assert len(found) == len(names.memory) + len(names.state)
    for tensor, name in zip(found, names.memory, strict=False):
        torch.testing.assert_close(tensor, flatten_memory(given.memory)[name])


@kinds
@torch.no_grad()
def test_a_step_between_named_tensors_is_the_decoders_step(kind):
    model = small(*KINDS[kind])
    given, sizes = example(model), Sizes()
    names = outputs(model, given)
    found = Stepping(model, given.memory, given.state)(*given.inputs.values())
    right = model.decoder.step(given.token, given.memory, given.state, weights=True)
    torch.testing.assert_close(found[0].flatten(0, 1), right.output.log_softmax(-1))
    by_name = dict(zip([names.output, *names.next, *names.weights], found, strict=True))
    assert all(each.shape[:2] == (sizes.sources, sizes.beams) for each in found)
    for name, each in right.attended.items():
        torch.testing.assert_close(by_name[f"weights.{name}"].flatten(0, 1), each.weights[:, :, 0])


def test_outputs_are_named_after_what_the_decoder_carries_and_where_it_looks():
    model = small(*KINDS["transformer"])
    assert outputs(model, example(model)) == (
        ["memory.decoder.0.cross.keys", "memory.decoder.0.cross.values"],
        ["state.caches.0.keys", "state.caches.0.values"],
        "log_probabilities",
        ["next.caches.0.keys", "next.caches.0.values"],
        ["weights.decoder.0.self", "weights.decoder.0.cross"],
    )


def test_a_model_without_attention_has_no_weights_and_no_keys():
    model = small("recurrent", "recurrent", "none")
    names = outputs(model, example(model))
    assert names.weights == []
    assert not any(name.endswith((".keys", ".values")) for name in names.memory)


@torch.no_grad()
def test_beams_of_an_example_begin_alike():
    model = small(*KINDS["recurrent"])
    given = example(model, Sizes(sources=2, beams=3, keys=4, written=0))
    begun = repeat(model.decoder.start(given.memory), 3)
    assert torch.equal(given.inputs["state.hidden.0"].flatten(0, 1), begun.hidden[0])


def test_a_tensor_is_called_by_the_way_to_it_and_nothing_has_no_name():
    one, two, three = torch.ones(1), torch.ones(2), torch.ones(3)
    tree = TransformerState((Memory(one, two),), ((), {"deep": [None, three]}))
    assert flatten(tree, "state") == {
        "state.caches.0.keys": one,
        "state.caches.0.values": two,
        "state.attentions.1.deep.1": three,
    }


def test_tensors_go_back_to_where_their_names_came_from():
    tree = TransformerState((Memory(torch.ones(1), torch.ones(2)),), ((), {"deep": [None, torch.ones(3)]}))
    doubled = unflatten(tree, [2 * each for each in flatten(tree, "state").values()])
    assert flatten(doubled, "state").keys() == flatten(tree, "state").keys()
    assert doubled.caches[0].keep is None
    assert doubled.attentions[0] == ()
    assert [each.tolist() for each in flatten(doubled, "state").values()] == [[2], [2, 2], [2, 2, 2]]
