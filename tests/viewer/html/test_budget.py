import numpy as np
import pytest

from regard.data.axis import Index
from regard.viewer.html.pack import Pack
from regard.viewer.html.payload import payload
from regard.viewer.metrics.quantise import quantise, reduce, restore
from regard.viewer.trace import AttentionMap, Example, Frame, Trace

from ..invented import large, translation, weights
from .opened import opened, told


def test_a_small_trace_is_whole():
    trace = translation()
    pack, run = told(trace)
    assert run["omitted"] == []
    for attention_map, table in zip(trace.example().attentions, run["examples"][0]["attentions"], strict=True):
        assert table["top"] is None
        assert set(table["full"]) == set(table["exact"]) == {"mean", "0", "1", "2", "3"}
        for head in range(4):
            assert np.array_equal(opened(pack, table["full"][str(head)]), quantise(attention_map.weights[head]))
            assert np.array_equal(opened(pack, table["exact"][str(head)]), attention_map.weights[head].astype(np.float16))
        assert np.allclose(restore(opened(pack, table["full"]["mean"])), attention_map.weights.mean(0), atol=0.005)
        small = opened(pack, table["thumbnails"])
        assert small.shape == (5, 4, 4)
        assert np.array_equal(small[2], reduce(quantise(attention_map.weights[2]), 128, 128))


def test_one_head_is_its_own_mean_and_lies_in_the_page_once():
    _, run = told(large(20, 30))
    full = run["examples"][0]["attentions"][0]["full"]
    assert full["mean"] == full["0"]


def test_what_does_not_fit_is_listed_and_the_strongest_keys_stand_for_it():
    trace = large(200, 200, heads=6)
    pack, run = told(trace, budget=130_000)
    assert pack.used <= 130_000
    table = run["examples"][0]["attentions"][0]
    assert table["thumbnails"] is not None
    keys, strongest = opened(pack, table["top"]["keys"]), opened(pack, table["top"]["weights"])
    attention_map = trace.attention()
    order = np.argsort(-attention_map.weights[3].astype(np.float32), axis=1, kind="stable")
    assert np.array_equal(np.sort(restore(strongest[3]), 1)[:, ::-1], restore(strongest[3]))
    assert keys[3, :, 0].tolist() == order[:, 0].tolist()
    mass = np.take_along_axis(attention_map.weights[3].astype(np.float32), keys[3].astype(int), 1)
    assert np.array_equal(quantise(mass), strongest[3])
    assert 0.5 < table["top"]["share"] <= 1
    assert len(table["full"]) < 7
    kinds = {each["what"]: each["bytes"] for each in run["omitted"]}
    missing = 7 - len(table["full"])
    assert kinds[f"{missing} matrices in 8 bits"] == missing * 200 * 200
    assert all("regard view" in each["call"] for each in run["omitted"])


def test_the_matrix_that_the_page_opens_with_comes_first():
    trace = large(200, 200, heads=6)
    for head in (2, 5):
        _, run = told(trace, budget=150_000, state=f"#a=cross&h={head}")
        full = run["examples"][0]["attentions"][0]["full"]
        assert next(iter(full)) == str(head)


def test_a_budget_below_the_statistics_is_refused():
    with pytest.raises(
        ValueError, match=r"the statistics alone take [\d,]+ bytes and the budget is 100; give a larger budget"
    ):
        told(translation(), budget=100)


def test_frames_of_training_are_there_with_their_numbers():
    trace = translation()
    pack, run = told(trace)
    assert [each["step"] for each in run["training"]] == [0, 100, 200, 400]
    name = "decoder.layers.1.cross"
    assert np.array_equal(opened(pack, run["training"][1]["weights"][name]), quantise(trace.training[1].weights[name]))
    assert len(run["training"][1]["summary"][name]["entropy"]) == 4


def test_frames_of_several_examples_at_one_step_are_all_kept():
    axes = {"q": Index(2), "k": Index(2)}
    examples = tuple(Example(axes, (AttentionMap("a", "q", "k", weights(1, 2, 2, seed)),)) for seed in (0, 1))
    film = tuple(Frame(10, None, {"a": weights(1, 2, 2, seed)}, example=seed) for seed in (0, 1))
    _, run = told(Trace("two", examples, training=film))
    assert [(each["step"], each["example"]) for each in run["training"]] == [(10, 0), (10, 1)]


def test_a_served_page_has_thumbnails_and_no_matrix():
    _, run = told(translation(), budget=None, tiles="tile")
    for table in run["examples"][0]["attentions"]:
        assert table["thumbnails"] is not None
        assert table["full"] == table["exact"] == {}
    assert run["omitted"] == []
    assert len(run["training"]) == 4


def test_the_strongest_keys_are_there_with_their_weights_or_not_at_all():
    trace, found = large(200, 200, heads=2), set()
    for budget in range(40_000, 100_000, 1_500):
        top = told(trace, budget=budget)[1]["examples"][0]["attentions"][0]["top"]
        found.add(None if top is None else tuple(sorted(top)))
    assert found == {None, ("keys", "share", "weights")}


def test_a_single_head_comes_first_by_its_number_too():
    attentions = tuple(AttentionMap(name, "q", "k", weights(1, 100, 100)) for name in ("one", "two"))
    trace = Trace("t", (Example({"q": Index(100), "k": Index(100)}, attentions),))
    full = [each["full"] for each in told(trace, budget=49_000, state="#a=two&h=0")[1]["examples"][0]["attentions"]]
    assert [bool(each) for each in full] == [False, True]


def test_thumbnails_that_do_not_fit_are_listed_by_what_they_take():
    _, run = told(large(20, 30, heads=2), budget=1_700)
    assert run["omitted"][0] == {"what": "1 attentions' thumbnails", "bytes": 3 * 20 * 30, "call": run["omitted"][0]["call"]}


def test_two_runs_share_the_budget():
    pack = Pack(300_000)
    runs = payload([large(200, 200, heads=6)] * 2, pack)["runs"]
    counts = [len(run["examples"][0]["attentions"][0]["full"]) for run in runs]
    assert pack.used <= 300_000
    assert counts[0] > 0
    assert 0 <= counts[1] - counts[0] <= 1  # the second has what the first could not use


def test_a_film_is_not_cut_off_at_the_weights_of_its_end():
    attention_map = AttentionMap("a", "q", "k", np.full((1, 2, 2), 0.5, np.float32), sums_to_one=False)
    film = (Frame(0, None, {"a": attention_map.weights * 8}), Frame(1, None, {"a": attention_map.weights}))
    pack, run = told(Trace("t", (Example({"q": Index(2), "k": Index(2)}, (attention_map,)),), training=film))
    table = run["examples"][0]["attentions"][0]
    assert table["scale"] == 4
    first, last = (opened(pack, frame["weights"]["a"]) for frame in run["training"])
    assert restore(first, 4.0).tolist() == [[[4, 4], [4, 4]]]
    assert np.array_equal(last[0], opened(pack, table["full"]["0"]))


def test_a_film_of_some_rows_has_a_row_for_every_query():
    attention_map = AttentionMap("a", "q", "k", np.full((1, 1, 2), 0.5, np.float32), rows=(1,))
    trace = Trace(
        "t",
        (Example({"q": Index(3), "k": Index(2)}, (attention_map,)),),
        training=(Frame(0, None, {"a": attention_map.weights}),),
    )
    pack, run = told(trace)
    half = round(255 * 0.5**0.5)
    assert opened(pack, run["training"][0]["weights"]["a"]).tolist() == [[[0, 0], [half, half], [0, 0]]]
