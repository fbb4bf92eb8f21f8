import math
import re

import pytest
import torch

from regard import registry
from regard.attention import Attention, Encoded, Memory
from regard.attention.normalise.sparsemax import Sparsemax
from regard.attention.scope.causal import Causal
from regard.attention.score.additive import Additive
from regard.attention.score.bilinear import Bilinear
from regard.attention.score.dot import Dot

SOURCE = torch.tensor([[[1.0, 0.0], [0.0, 1.0]]])


def test_remember_then_ask_can_be_worked_by_hand():
    attention = Attention(query=2, score="dot")
    memory = attention.remember(SOURCE)
    state = attention.start(memory)
    attended = attention(torch.tensor([[[math.log(3), 0.0]]]), memory, state, weights=True)
    # scores [log 3, 0], weights [¾, ¼], and the source is the unit matrix
    torch.testing.assert_close(attended.context, torch.tensor([[[0.75, 0.25]]]))
    torch.testing.assert_close(attended.weights, torch.tensor([[[[0.75, 0.25]]]]))


def test_it_carries_nothing_between_steps_and_hands_on_what_it_is_given():
    attention = Attention(query=2)
    memory = attention.remember(SOURCE)
    assert attention.start(memory) == ()
    assert attention(SOURCE, memory).state == ()
    given = (torch.ones(1),)
    assert attention(SOURCE, memory, given).state is given


def test_the_memory_holds_keys_that_were_prepared_once():
    attention = Attention(query=3, key=2, score="bilinear")
    memory = attention.remember(SOURCE)
    torch.testing.assert_close(memory.keys, attention.score.prepare(SOURCE[:, None]))
    assert torch.equal(memory.values, SOURCE[:, None])
    assert memory.keep is None


def test_the_memory_of_a_map_knows_its_rows_and_columns():
    assert Attention(3).remember(Encoded(torch.randn(1, 6, 3), grid=(2, 3))).grid == (2, 3)
    assert Attention(3).remember(torch.randn(1, 6, 3)).grid is None


def test_one_query_after_another_equals_all_at_once():
    attention = Attention(query=3, key=4, score="additive", size=None)
    memory = attention.remember(torch.randn(2, 5, 4))
    query = torch.randn(2, 6, 3)
    steps = [attention(query[:, t : t + 1], memory).context for t in range(6)]
    torch.testing.assert_close(torch.cat(steps, dim=1), attention(query, memory).context)


def test_values_may_differ_from_keys():
    attention = Attention(query=2, value=1, score=Dot())
    memory = attention.remember(SOURCE, values=torch.tensor([[[4.0], [8.0]]]))
    context = attention(torch.tensor([[[math.log(3), 0.0]]]), memory).context
    torch.testing.assert_close(context, torch.tensor([[[5.0]]]))  # ¾·4 + ¼·8
    assert attention.size == 1


@pytest.mark.parametrize("score", ["additive", Additive, Additive(query=3, key=2)], ids=["name", "class", "instance"])
def test_a_stage_is_given_by_name_by_class_or_built(score):
    attention = Attention(query=3, key=2, score=score, normalise="sparsemax", scope=Causal)
    assert type(attention.score) is Additive
    assert (attention.score.query, attention.score.key) == (3, 2)
    assert attention.normalise == Sparsemax()
    assert attention.scope == Causal()
    assert attention(torch.randn(1, 4, 3), attention.remember(torch.randn(1, 5, 2))).context.shape == (1, 4, 2)


def test_with_a_size_everything_is_projected_to_it():
    attention = Attention(query=3, key=5, value=7, size=4, score="bilinear")
    assert (attention.score.query, attention.score.key, attention.size) == (4, 4, 4)
    query, source, values = torch.randn(2, 6, 3), torch.randn(2, 8, 5), torch.randn(2, 8, 7)
    q, k, v = attention.query(query), attention.key(source), attention.value(values)
    weights = (q @ attention.score.W.weight[0] @ k.mT).softmax(-1)
    found = attention(query, attention.remember(source, values))
    torch.testing.assert_close(found.context, weights @ v)


def test_the_projections_may_go_without_bias():
    assert Attention(query=3, size=4, bias=False).query.bias is None
    assert Attention(query=3, size=4).query.bias is not None


def test_without_a_size_there_is_nothing_to_learn_but_the_score():
    assert list(Attention(query=3).parameters()) == []
    assert [name for name, _ in Attention(query=3, score=Bilinear).named_parameters()] == ["score.W.weight"]


def test_padding_is_not_seen():
    attention = Attention(query=2, score="dot")
    keep = torch.tensor([[True, True, False]])
    longer = torch.cat((SOURCE, torch.full((1, 1, 2), 100.0)), dim=1)
    query = torch.randn(1, 3, 2)
    found = attention(query, attention.remember(Encoded(longer, keep)), weights=True)
    torch.testing.assert_close(found.context, attention(query, attention.remember(SOURCE)).context)
    assert found.weights[..., 2].abs().max() == 0


@pytest.mark.parametrize("score", ["scaled_dot", "additive", "cosine", "distance"])
@pytest.mark.parametrize("size", [None, 4])
def test_nan_in_the_padding_reaches_nobody(score, size):
    attention = Attention(query=3, size=size, score=score)
    keep = torch.tensor([[True, True, True, False], [True, False, False, False], [False, False, False, False]])
    query, source, values = torch.randn(3, 2, 3), torch.randn(3, 4, 3), torch.randn(3, 4, 3)

    def run(filling: float) -> list[torch.Tensor]:
        inputs = [query.clone(), *(each.masked_fill(~keep[..., None], filling) for each in (source, values))]
        for each in inputs:
            each.requires_grad_()
        memory = attention.remember(Encoded(inputs[1], keep), values=inputs[2])
        context = attention(inputs[0], memory).context
        return [context, *torch.autograd.grad(context.square().sum(), [*inputs, *attention.parameters()])]

    for clean, poisoned in zip(run(0.0), run(math.nan), strict=True):
        assert poisoned.isfinite().all()
        torch.testing.assert_close(poisoned, clean, rtol=0, atol=0)


def test_a_row_with_nothing_in_it_gives_zeros():
    attention = Attention(query=2)
    memory = attention.remember(Encoded(SOURCE, torch.zeros(1, 2, dtype=torch.bool)))
    assert attention(SOURCE, memory).context.abs().max() == 0


def test_the_scope_follows_the_offset():
    attention = Attention(query=2, scope="causal")
    memory = attention.remember(torch.randn(1, 4, 2))
    query = torch.randn(1, 1, 2)
    assert (attention(query, memory, weights=True).weights > 0).flatten().tolist() == [True] * 4
    assert (attention(query, memory, offset=1, weights=True).weights > 0).flatten().tolist() == [True, True, False, False]


def test_dropout_falls_only_in_training():
    attention = Attention(query=2, dropout=0.5)
    source = torch.randn(1, 50, 2)
    memory = attention.remember(source)
    assert not torch.equal(attention(source, memory).context, attention(source, memory).context)
    attention.eval()
    expected = Attention(query=2)(source, memory).context
    assert torch.equal(attention(source, memory).context, expected)


def test_statistics_come_when_they_are_asked_for():
    attention = Attention(query=2)
    found = attention(torch.zeros(1, 1, 2), attention.remember(SOURCE), statistics=("entropy",))
    torch.testing.assert_close(found.statistics["entropy"], torch.tensor([[[math.log(2)]]]))


def test_it_can_be_held_to_the_reference():
    attention = Attention(query=2, normalise="sparsemax", impl="fused")
    with pytest.raises(ValueError, match="no kernel covers this request"):
        attention(SOURCE, attention.remember(SOURCE))
    attention.impl = "reference"
    assert attention(SOURCE, attention.remember(SOURCE)).context.shape == (1, 2, 2)


def test_it_says_what_it_is_made_of():
    attention = Attention(query=2, scope=Causal())
    assert attention.extra_repr() == "score=ScaledDot(scale=None), normalise=Softmax(), scope=Causal()"
    assert "(score): Bilinear(" in repr(Attention(query=2, score="bilinear"))


def test_an_unknown_statistic_is_refused():
    attention = Attention(query=2)
    with pytest.raises(ValueError, match="there is no statistic 'surprise'"):
        attention(SOURCE, attention.remember(SOURCE), statistics=("surprise",))


def test_an_unknown_stage_names_the_nearest():
    with pytest.raises(LookupError, match=re.escape("no score is called 'aditive'; did you mean 'additive'?")):
        Attention(query=2, score="aditive")


def test_stages_that_make_no_sense_together_are_refused_when_it_is_built():
    with pytest.raises(ValueError, match="Distance and SumToOne make no sense together"):
        Attention(query=2, score="distance", normalise="sum_to_one")


def test_a_mask_in_place_of_a_scope_is_refused_when_it_is_built():
    with pytest.raises(TypeError, match=re.escape("scope needs a Scope such as Causal(), got a torch.bool tensor")):
        Attention(query=2, scope=torch.ones(1, 2, dtype=torch.bool))


@pytest.mark.unhooked
def test_a_query_without_its_axis_of_queries_is_refused():
    attention = Attention(query=2)
    memory = Memory(SOURCE[:, None], SOURCE[:, None])
    text = "Attention needs a query of (batch, queries, dim), got (1, 2); one query a row is query[:, None]"
    with pytest.raises(ValueError, match=re.escape(text)):
        attention(torch.zeros(1, 2), memory)


@pytest.mark.unhooked
def test_a_source_of_another_rank_is_refused():
    with pytest.raises(ValueError, match=re.escape("(batch, time, dim), got (2, 2)")):
        Attention(query=2).remember(SOURCE[0])


@pytest.mark.unhooked
def test_a_mask_of_padding_that_is_not_boolean_is_refused():
    with pytest.raises(TypeError, match=re.escape("a boolean mask, True where a key may be seen, got torch.float32")):
        Attention(query=2).remember(Encoded(SOURCE, torch.ones(1, 2)))


@pytest.mark.unhooked
def test_a_mask_of_padding_of_another_size_is_refused():
    text = "Padding was made for (1, 5) (batch, keys), and met a batch of 1 with 2 keys"
    with pytest.raises(ValueError, match=re.escape(text)):
        Attention(query=2).remember(Encoded(SOURCE, torch.ones(1, 5, dtype=torch.bool)))


def test_examples_that_share_a_row_do_not_see_each_other():
    attention = Attention(4, size=4)
    source, query = torch.randn(2, 5, 4), torch.randn(2, 3, 4)
    keys, queries = torch.tensor([[1, 1, 2, 2, 2], [1, 2, 2, 2, 0]]), torch.tensor([[1, 2, 2], [1, 1, 2]])
    memory = attention.remember(Encoded(source, documents=keys))
    assert memory.documents is keys
    found = attention(query, memory, documents=queries)
    alone = attention(query[:1, 1:], attention.remember(source[:1, 2:]))
    torch.testing.assert_close(found.context[:1, 1:], alone.context)


@pytest.mark.parametrize(("known", "other"), [("memory", "queries"), ("queries", "memory")])
def test_packed_rows_need_the_documents_of_both_sides(known, other):
    attention, numbers = Attention(4), torch.ones(1, 3, dtype=torch.long)
    memory = attention.remember(Encoded(torch.randn(1, 3, 4), documents=numbers if known == "memory" else None))
    with pytest.raises(ValueError, match=f"got those of the {known} and none of the {other}"):
        attention(torch.randn(1, 3, 4), memory, documents=numbers if known == "queries" else None)


@pytest.mark.parametrize("scope", ["everywhere", "causal", "local", "dilated", "exclude_self"])
def test_scopes_that_go_by_distances_may_be_packed(scope):
    assert Attention(4, scope=scope).unpackable is None
    assert Attention(4, scope=Causal() & registry.build(scope, "scope")).unpackable is None


def test_an_attention_that_goes_by_places_of_a_row_refuses_packed_ones():
    attention, numbers = Attention(4, scope="blocks"), torch.ones(1, 3, dtype=torch.long)
    memory = attention.remember(Encoded(torch.randn(1, 3, 4), documents=numbers))
    with pytest.raises(ValueError, match="Attention cannot read packed rows: it has a scope that goes by the places"):
        attention(torch.randn(1, 3, 4), memory, documents=numbers)
