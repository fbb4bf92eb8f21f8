import numpy as np
import pytest

from regard.data.axis import Index
from regard.viewer.metrics.rollout import mixing, of, product, rollout, stack, traced
from regard.viewer.trace import AttentionMap, Example, Trace

ONE = np.array([[[1.0, 0, 0], [0.5, 0.5, 0], [0, 0.5, 0.5]]])
TWO = np.array([[[0.0, 1, 0], [0, 1, 0], [0, 0, 1]]])


def softmax(*shape, seed=0):
    weights = np.exp(np.random.default_rng(seed).normal(size=shape))
    return weights / weights.sum(-1, keepdims=True)


def translation(**given):
    attentions = (
        AttentionMap("encoder.0", "src", "src", softmax(2, 4, 4, seed=1)),
        AttentionMap("encoder.1", "src", "src", softmax(2, 4, 4, seed=2), layer=1),
        AttentionMap("decoder.0.self", "tgt", "tgt", softmax(2, 3, 3, seed=3)),
        AttentionMap("decoder.0.cross", "tgt", "src", softmax(2, 3, 4, seed=4)),
        AttentionMap("decoder.1.self", "tgt", "tgt", softmax(2, 3, 3, seed=5), layer=1),
        AttentionMap("decoder.1.cross", "tgt", "src", **({"weights": softmax(2, 3, 4, seed=6)} | given), layer=1),
    )
    return Trace("tiny", (Example({"src": Index(4), "tgt": Index(3)}, attentions),))


def test_two_layers_of_three_tokens_are_multiplied_by_hand():
    first = [[1, 0, 0], [0.25, 0.75, 0], [0, 0.25, 0.75]]
    second = [[0.5, 0.5, 0], [0, 1, 0], [0, 0, 1]]
    assert mixing(ONE).tolist() == first
    assert mixing(TWO).tolist() == second
    assert rollout([ONE, TWO]).tolist() == [[0.625, 0.375, 0], [0.25, 0.75, 0], [0, 0.25, 0.75]]


def test_heads_are_averaged_and_rows_go_on_summing_to_one():
    layers = [softmax(3, 6, 6, seed=seed) for seed in range(4)]
    by_definition = np.eye(6)
    for layer in layers:
        by_definition = (0.5 * layer.mean(0) + 0.5 * np.eye(6)) @ by_definition
    assert rollout(layers) == pytest.approx(by_definition)
    assert rollout(layers).sum(-1) == pytest.approx(np.ones(6))


def test_a_query_that_sees_nothing_keeps_itself():
    assert mixing(np.zeros((1, 2, 2))).tolist() == [[1, 0], [0, 1]]


def test_a_self_attention_is_followed_down_its_own_axis_alone():
    example = translation().example()
    assert traced(example, example.attentions[1]) == pytest.approx(
        rollout([attention_map.weights for attention_map in example.attentions[:2]])
    )
    assert traced(example, example.attentions[0]) == pytest.approx(mixing(example.attentions[0].weights))
    assert len(stack(example, example.attentions[4])) == 2


def test_a_cross_attention_is_its_weights_times_the_encoders_rollout():
    trace = translation()
    encoder = rollout([attention_map.weights for attention_map in trace.example().attentions[:2]])
    for found in (of(trace), of(trace, ("tgt", "src"))):
        assert found == pytest.approx(trace.attention("decoder.1.cross").weights.mean(0) @ encoder)
    assert of(trace, ("src", "src")) == pytest.approx(encoder)


def test_a_square_cross_attention_has_no_residual_part():
    square = softmax(1, 3, 3)
    trace = Trace("square", (Example({"a": Index(3), "b": Index(3)}, (AttentionMap("cross", "a", "b", square),)),))
    assert of(trace) == pytest.approx(square[0])


def test_a_group_that_is_not_there_is_named_with_those_that_are():
    with pytest.raises(
        KeyError, match=r"no attention goes from 'src' over 'tgt'; there are \('src', 'src'\), \('tgt', 'src'\)"
    ):
        of(translation(), ("src", "tgt"))


@pytest.mark.parametrize(
    ("given", "what"), [({"weights": None}, "statistics"), ({"weights": softmax(2, 1, 4), "rows": (1,)}, "some rows")]
)
def test_layers_that_were_not_recorded_whole_are_named(given, what):
    with pytest.raises(ValueError, match=f"of 'decoder.1.cross' only {what} were recorded; record it with weights=True"):
        of(translation(**given))


def test_layers_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="rollout needs at least one layer, got none"):
        rollout([])
    with pytest.raises(ValueError, match="a layer of 4 keys cannot stand on one of 3 queries"):
        product([np.eye(3), np.eye(4)])
    with pytest.raises(ValueError, match=r"a layer is \(heads, queries, keys\), got the shape \(3, 3\)"):
        rollout([np.eye(3)])


def test_a_decoder_over_what_it_has_written_is_a_stack_of_its_own():
    def decoder(query, key):
        layers = (AttentionMap("decoder.0.self", query, key, ONE), AttentionMap("decoder.1.self", query, key, TWO, layer=1))
        return Trace("decoder", (Example({query: Index(3), key: Index(3)}, layers),))

    one = [[0.625, 0.375, 0], [0.25, 0.75, 0], [0, 0.25, 0.75]]
    assert of(decoder("target", "target")).tolist() == one
    assert of(decoder("target", "written"), ("target", "written")).tolist() == one
    first = decoder("target", "written").example()
    assert traced(first, first.attentions[0]).tolist() == mixing(ONE).tolist()


def test_gradients_times_weights_are_a_stack_of_their_own():
    rng = np.random.default_rng(0)
    raw = [rng.dirichlet(np.ones(3), 3)[None] for _ in range(2)]
    signed = [one * np.array([1.0, -1.0, 0.5]) for one in raw]
    maps = [AttentionMap(f"layer.{number}", "tokens", "tokens", one, number) for number, one in enumerate(raw)]
    maps += [
        AttentionMap(f"layer.{number} × gradient", "tokens", "tokens", one, number, sums_to_one=False)
        for number, one in enumerate(signed)
    ]
    example = Example({"tokens": Index(3)}, tuple(maps))
    np.testing.assert_allclose(traced(example, maps[1]), rollout(raw))
    np.testing.assert_allclose(traced(example, maps[3]), rollout([np.maximum(one, 0) for one in signed]))
