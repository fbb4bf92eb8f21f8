"""Links that people made, in a trace: how they are given, and what heads are measured by."""

import numpy as np
import pytest

from regard.data.axis import Text
from regard.viewer.io.errors import TraceError
from regard.viewer.trace import AttentionMap, Example, Links, Trace

EYE = np.eye(3, dtype=np.float32)
HEADS = np.stack([EYE, EYE[[1, 0, 2]]])
"""One head links every word to its like, the other exchanges the first two."""
WORDS = {"query": ["汤姆", "追逐", "杰瑞"], "key": ["Tom", "chases", "Jerry"]}
SURE = [(0, 0), (1, 1), (2, 2)]


def given(gold, **options):
    return Trace.from_arrays(HEADS, **WORDS, gold=gold, **options)


def several():
    """Attentions within and between two axes."""
    axes = {"source": Text.of(["a", "b", "c"]), "target": Text.of(["x", "y", "z"])}
    attentions = (AttentionMap("own", "source", "source", HEADS), AttentionMap("cross", "target", "source", HEADS))
    return Trace("t", (Example(axes, attentions), Example(axes, (AttentionMap("own", "source", "source", HEADS),))))


def test_pairs_are_sure_links_between_the_axes_of_the_attention():
    assert given(SURE).example().gold == Links("queries", "keys", ((0, 0), (1, 1), (2, 2)))
    assert given(np.array(SURE)).example().gold == given(SURE).example().gold


def test_possible_links_are_told_apart():
    gold = given({"sure": [(0, 0)], "possible": [(1, 1)]}).example().gold
    assert (gold.sure, gold.possible) == (((0, 0),), ((1, 1),))


def test_every_head_has_its_error():
    # the second head has one link of three right: 1 - (1 + 1) / (3 + 3)
    assert given(SURE).alignment_error().tolist() == pytest.approx([0, 2 / 3])


def test_among_several_attentions_links_belong_to_the_one_that_a_page_opens_with():
    trace = several().with_gold(SURE)
    assert (trace.example().gold.query, trace.example().gold.key) == ("target", "source")
    assert trace.alignment_error("cross").tolist() == pytest.approx([0, 2 / 3])
    assert several().with_gold(SURE, example=1).examples[1].gold.query == "source"


def test_links_may_name_their_axes():
    trace = several().with_gold(Links("source", "source", tuple(SURE)))
    assert trace.alignment_error("own").tolist() == pytest.approx([0, 2 / 3])
    with pytest.raises(ValueError, match=r"has gold links from 'source' to 'source' alone, and cross looks from 'target'"):
        trace.alignment_error("cross")


def test_special_tokens_are_no_words_unless_the_links_say_so():
    axes = {"t": Text(("x", "<eos>"), "x", ((0, 1), None), (1,)), "s": Text(("a", "<eos>"), "a", ((0, 1), None), (1,))}
    # x reads the end most and a less; the end reads the end
    weights = np.array([[[0.4, 0.6], [0, 1]]], np.float32)
    trace = Trace("t", (Example(axes, (AttentionMap("cross", "t", "s", weights),)),))
    assert trace.with_gold([(0, 0)]).alignment_error().tolist() == [0]
    assert trace.with_gold([(0, 0), (1, 1)]).alignment_error().tolist() == pytest.approx([1 - 2 / 4])


def test_what_is_not_there_is_said():
    with pytest.raises(ValueError, match=r"example 0 has no gold links, .* give it some: trace.with_gold"):
        several().alignment_error()
    attention_map = AttentionMap("cross", "target", "source", HEADS[:, :1], rows=(0,))
    some = Trace("t", (Example(several().example().axes, (attention_map,)),)).with_gold(SURE)
    with pytest.raises(ValueError, match="the alignment error of cross needs the weights of every query"):
        some.alignment_error()


@pytest.mark.parametrize(
    ("gold", "said"),
    [
        ([(0, 1, 2)], "with whole numbers; got"),
        ([(0, 0.5)], "with whole numbers; got"),
        ([(0, True)], "with whole numbers; got"),
        (3, "with whole numbers; got 3"),
        ({"sures": []}, "got the key 'sures'"),
        ([], "example 0, gold: it needs at least one sure link, got none"),
        ([(0, 3)], "a link joins place 0 of 'queries' and place 3 of 'keys', which have 3 and 3 places"),
        (Links("queries", "k", ((0, 0),)), "gold: its key axis is 'k', and the example has the axes queries, keys"),
    ],
)
def test_links_that_cannot_be_are_refused(gold, said):
    with pytest.raises(TraceError, match="gold") as caught:
        given(gold)
    assert said in str(caught.value)


def test_links_without_an_attention_must_name_their_axes():
    bare = Trace("t", (Example(several().example().axes, ()),))
    with pytest.raises(
        TraceError, match=r"gold links belong to the axes of an attention, and there is none; name axes: Links\("
    ):
        bare.with_gold(SURE)
    assert bare.with_gold(Links("target", "source", tuple(SURE))).example().gold.key == "source"
