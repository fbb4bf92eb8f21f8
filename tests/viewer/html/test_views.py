import dataclasses

import numpy as np

from regard.data.axis import Index
from regard.viewer.html.views import FLOWED, ROLLED, views
from regard.viewer.metrics import rollout
from regard.viewer.metrics.quantise import quantise
from regard.viewer.trace import AttentionMap, Example

from ..invented import translation, weights


def made(example, attention_map):
    return {(view.kind, view.head): make() for view, make in views(example, attention_map)}


def test_rollout_and_flow_are_there_for_short_texts_with_their_maximum_at_255():
    example = translation().example()
    for attention_map in example.attentions:
        found = made(example, attention_map)
        assert set(found) == {("rollout", "mean"), ("flow", "mean")}
        assert all(each.max() == 255 for each in found.values())
    through = rollout.traced(example, example.attentions[1])
    assert np.array_equal(made(example, example.attentions[1])["rollout", "mean"], quantise(through, through.max()))


def test_long_texts_have_no_flow_and_very_long_ones_no_rollout():
    kinds = {}
    for places in (FLOWED, FLOWED + 1, ROLLED + 1):
        attention_map = AttentionMap("a", "x", "x", np.full((1, places, places), 1 / places, np.float32))
        kinds[places] = {view.kind for view, _ in views(Example({"x": Index(places)}, (attention_map,)), attention_map)}
    assert list(kinds.values()) == [{"rollout", "flow"}, {"rollout"}, set()]


def test_scores_come_as_they_are_and_forbidden_ones_as_the_smallest_number():
    scores = np.array([[[1.5, -np.inf], [0.25, 2.0]]], np.float32)
    attention_map = AttentionMap("a", "q", "k", weights(1, 2, 2), scores=scores)
    found = made(Example({"q": Index(2), "k": Index(2)}, (attention_map,)), attention_map)
    assert found["scores", "0"].tolist() == [[1.5, -65504.0], [0.25, 2.0]]


def test_values_are_weights_times_the_length_of_what_they_read():
    attention_map = AttentionMap(
        "a", "q", "k", np.array([[[0.5, 0.5], [1.0, 0.0]]], np.float32), values=np.array([[1.0, 4.0]], np.float32)
    )
    found = made(Example({"q": Index(2), "k": Index(2)}, (attention_map,)), attention_map)
    assert np.array_equal(found["values", "0"], quantise(np.array([[0.5, 2.0], [1.0, 0.0]]), 2.0))
    assert np.array_equal(found["values", "mean"], found["values", "0"])


def test_rows_alone_have_neither_rollout_nor_scores():
    example = translation().example()
    attention_map = dataclasses.replace(example.attentions[0], rows=(0, 2), weights=example.attentions[0].weights[:, [0, 2]])
    assert made(dataclasses.replace(example, attentions=(attention_map,)), attention_map) == {}


def test_scores_beyond_half_precision_end_where_it_ends():
    attention_map = AttentionMap("a", "q", "k", weights(1, 1, 2), scores=np.array([[[1e6, -1e6]]], np.float32))
    found = made(Example({"q": Index(1), "k": Index(2)}, (attention_map,)), attention_map)
    assert found["scores", "0"].tolist() == [[65504.0, -65504.0]]
