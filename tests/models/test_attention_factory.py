import math

import pytest
import torch

from regard.attention import Attention, MultiHead
from regard.attention.mechanisms.bahdanau import Bahdanau
from regard.attention.mechanisms.luong import Luong
from regard.attention.mechanisms.transformer import Transformer
from regard.attention.normalise.softmax import Softmax
from regard.attention.normalise.sparsemax import Sparsemax
from regard.attention.normalise.top_k import TopK
from regard.attention.scope.causal import Causal
from regard.attention.scope.everywhere import Everywhere
from regard.attention.scope.local import Local
from regard.models.attention_factory import (
    build_attention,
    build_mechanism,
    build_self_attention,
    intersect_scopes,
    split_name,
)
from regard.registry import names


@pytest.mark.parametrize(
    ("name", "score", "normalise"),
    [
        ("additive", "Additive", Softmax()),
        ("additive+sparsemax", "Additive", Sparsemax()),
        ("sparsemax+additive", "Additive", Sparsemax()),
        ("scaled_dot+top_k", "ScaledDot", TopK()),
        ("sparsemax", "ScaledDot", Sparsemax()),
        ("location", "Location", Softmax()),
    ],
)
def test_what_is_not_named_is_scaled_dot_softmax_everywhere(name, score, normalise):
    made = build_attention(name, 4, 4)
    assert type(made) is Attention
    assert (type(made.score).__name__, made.normalise, made.scope) == (score, normalise, Everywhere())


@pytest.mark.parametrize("score", names("score"))
@pytest.mark.parametrize("key", [4, 6])
def test_every_score_takes_queries_and_keys_of_any_size(score, key):
    made = build_attention(score, 4, key)
    context = made(torch.randn(2, 3, 4), made.remember(torch.randn(2, 5, key))).context
    assert context.shape == (2, 3, made.size)


def test_a_product_of_different_sizes_is_projected_to_the_query_unless_told_otherwise():
    assert build_attention("dot", 4, 6).key.weight.shape == (4, 6)
    assert build_attention("dot", 4, 6, size=3).key.weight.shape == (3, 6)
    assert isinstance(build_attention("dot", 4, 4).key, torch.nn.Identity)
    assert isinstance(build_attention("bilinear", 4, 6).key, torch.nn.Identity)
    assert build_attention("dot", 4, 6).size == 4
    assert build_attention("bilinear", 4, 6).size == 6


def test_none_is_none():
    assert build_attention("none", 4, 4) is None


@pytest.mark.parametrize(("name", "kind"), [("bahdanau", Bahdanau), ("luong", Luong), ("transformer", Transformer)])
def test_a_mechanism_is_found_by_its_name_and_takes_a_normaliser(name, kind):
    made = build_attention(f"{name}+sparsemax", 8, 8, dropout=0.25)
    assert type(made) is kind
    assert (made.normalise, made.dropout, made.scope) == (Sparsemax(), 0.25, Everywhere())


def test_only_the_transformer_has_heads():
    made = build_attention("transformer", 8, 6, heads=2)
    assert isinstance(made, MultiHead)
    assert (made.heads, made.size, made.key.weight.shape) == (2, 8, (8, 6))
    assert build_attention("transformer", 8, 6, heads=4, size=12).head == 3
    assert not isinstance(build_attention("luong", 8, 6, heads=2), MultiHead)


def test_a_scope_is_named_or_given_or_both():
    assert build_attention("dot+local", 4, 4).scope == Local()
    assert build_attention("transformer", 4, 4, scope="causal").scope == Causal()
    assert intersect_scopes("causal", "local") == Causal() & Local()
    assert build_attention("additive+local", 4, 4, scope="causal").scope == Causal() & Local()


def test_the_location_score_reaches_far():
    made = build_attention("location", 4, 4)
    assert made.remember(torch.randn(1, 300, 4)).keys.shape[2] == 300


def test_parts_are_sorted_by_kind():
    assert split_name("sparsemax+additive+local") == {"normalise": "sparsemax", "score": "additive", "scope": "local"}


@pytest.mark.parametrize(
    ("name", "error", "text"),
    [
        ("aditive", LookupError, "no stage or mechanism is called 'aditive'; did you mean 'additive'"),
        ("additive+", LookupError, "no stage or mechanism is called ''"),
        ("additive+dot", ValueError, "names two of the kind score, additive and dot; name one"),
        (
            "bahdanau+dot",
            ValueError,
            "combines the mechanism bahdanau with the score dot; this mechanism brings its own score",
        ),
        ("sinusoidal", ValueError, "'sinusoidal' is one of the positions; an attention is joined from score"),
    ],
)
def test_a_name_that_makes_no_sense_is_refused(name, error, text):
    with pytest.raises(error, match=text):
        build_attention(name, 4, 4)


def test_heads_must_divide_the_size():
    with pytest.raises(ValueError, match="needs a size that its heads divide, got size 8 and 3 heads; choose a number"):
        build_attention("transformer", 8, 8, heads=3)
    with pytest.raises(ValueError, match="got size 8 and 0 heads"):
        build_mechanism("transformer", 8, 8, 0, {"size": None})


def test_self_attention_has_heads_of_any_score_under_a_scope_of_its_own():
    made = build_self_attention("rotary+sparsemax+local", 8, 2, dropout=0.25, scope="causal")
    assert (type(made.score).__name__, made.normalise, made.scope) == ("Rotary", Sparsemax(), Causal() & Local())
    assert (made.heads, made.dropout) == (2, 0.25)
    assert type(build_self_attention("sparsemax", 8, 2).score).__name__ == "ScaledDot"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("luong", "self-attention is made of stages, and 'luong' is a mechanism; name a score"),
        ("dot+marginal", "'dot\\+marginal' names marginal, which is about what a decoder writes"),
        ("dot+hard", "'dot\\+hard' draws where it looks, which only an attention to the source is taught to do"),
    ],
)
def test_self_attention_of_what_cannot_be_is_refused(name, text):
    with pytest.raises(ValueError, match=text):
        build_self_attention(name, 8, 2)


def test_a_transformer_takes_any_score_in_its_heads():
    assert type(build_attention("transformer+rotary", 8, 8, heads=2).score).__name__ == "Rotary"


def test_no_source_is_longer_than_the_limit():
    made = build_attention("location", 4, 4, limit=3)
    with pytest.raises(ValueError, match="Location was made for at most 3 keys, got 4"):
        made.remember(torch.randn(1, 4, 4))


def test_an_attention_without_bias_has_none_in_its_projections():
    made = build_attention("transformer+dot", 8, 6, heads=2, bias=False)
    assert made.query.bias is made.output.bias is None
    assert type(made.score).__name__ == "Dot"


def test_a_mechanism_that_has_biases_says_so():
    with pytest.raises(ValueError, match="attention 'memory_network' has biases, and none were asked for; choose another"):
        build_attention("memory_network", 8, 8, bias=False)


@pytest.mark.parametrize("name", ["luong", "local_m", "local_p", "memory_network"])
def test_a_product_of_what_has_variance_one_begins_by_looking_around(name):
    made = build_attention(name, 256, 256)
    attended = made(torch.randn(4, 15, 256), made.remember(torch.randn(4, 15, 256)), offset=0, statistics=("entropy",))
    assert attended.statistics["entropy"][:, 0].mean() > 0.5 * math.log(15)  # W as large as usual: 0.17 of it and less
