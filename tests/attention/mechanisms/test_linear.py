import torch
from torch.nn import functional as F

from regard.attention import Encoded
from regard.attention.mechanisms.linear import Linear
from regard.attention.normalise.softmax import Softmax
from regard.attention.normalise.sum_to_one import SumToOne
from regard.attention.score.feature_map import FeatureMap
from regard.kernels import linear
from regard.models.attention_factory import build_attention

from .in_models import check_learning_and_padding, check_steps_and_beams, every_kind

NOWHERE = torch.tensor([[True, True, True], [False, False, False]])


def heads(data):
    """Two heads of two."""
    return data.unflatten(-1, (2, 2)).transpose(1, 2)


def test_it_is_the_formula_of_the_paper():
    made, query, source = Linear(4, 3, heads=2), torch.randn(1, 5, 4), torch.randn(1, 6, 3)
    q, k, v = heads(F.elu(made.query(query)) + 1), heads(F.elu(made.key(source)) + 1), heads(made.value(source))
    read = torch.zeros(1, 2, 5, 2)
    for h in range(2):
        for t in range(5):
            shares = torch.stack([q[0, h, t] @ k[0, h, s] for s in range(6)])
            read[0, h, t] = sum(share * v[0, h, s] for s, share in enumerate(shares)) / shares.sum()
    expected = made.output(read.transpose(1, 2).flatten(2))
    torch.testing.assert_close(made(query, made.remember(source)).context, expected)


def test_the_kernel_runs_unless_weights_are_asked_for_or_dropped(monkeypatch):
    taken, run = [], linear.run
    monkeypatch.setattr(linear, "run", lambda request: taken.append(request) or run(request))
    made, data = Linear(8, scope="causal", dropout=0.5), torch.randn(2, 5, 8)
    memory = made.eval().remember(Encoded(data, torch.arange(5) < torch.tensor([[5], [3]])))
    context = made(data, memory).context
    assert len(taken) == 1
    attended = made(data, memory, weights=True)
    torch.testing.assert_close(attended.context, context)
    assert attended.weights.shape == (2, 8, 5, 5)
    torch.testing.assert_close(attended.weights.sum(-1), torch.ones(2, 8, 5))
    made.train()(data, memory)
    assert len(taken) == 1


def test_a_token_at_a_time_equals_all_at_once():
    made, data = Linear(4, heads=2, scope="causal"), torch.randn(2, 70, 4)
    whole, memory = made(data, made.remember(data)).context, None
    for place in range(70):
        memory = made.extend(memory, data[:, place : place + 1])
        step = made(data[:, place : place + 1], memory).context
        torch.testing.assert_close(step[:, 0], whole[:, place], atol=1e-5, rtol=1e-5)


def test_a_source_that_is_all_padding_gives_nothing_but_the_bias_behind():
    made, data = Linear(4, heads=2), torch.randn(2, 3, 4)
    data[1] = torch.nan
    context = made(torch.randn(2, 2, 4), made.remember(Encoded(data, NOWHERE))).context
    assert context.isfinite().all()
    torch.testing.assert_close(context[1], made.output.bias.expand(2, 4))


def test_it_is_made_by_its_name_with_heads_and_maybe_another_normaliser():
    made = build_attention("linear", 8, 6, heads=2)
    assert (type(made), made.heads, made.score, made.normalise) == (Linear, 2, FeatureMap(), SumToOne())
    assert build_attention("linear+softmax", 8, 6).normalise == Softmax()
    assert build_attention("feature_map+sum_to_one", 8, 6).size == 8


@every_kind
def test_it_works_in_every_decoder_by_its_name(kind):
    check_learning_and_padding("linear", kind)
    check_steps_and_beams("linear", kind)
