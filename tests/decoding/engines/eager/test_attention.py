import pytest
import torch
from torch import nn

from regard import registry
from regard.attention.types import Encoded, Memory
from regard.data.batch import pad
from regard.decoding.engines.eager.attention import (
    BatchAttention,
    FoldedAttention,
    PreparedAttention,
    covers,
    has_empty_source,
    split_linear,
)
from regard.models.attention_factory import build_attention
from regard.tree import select

KEEP = pad([[1] * 7, [1] * 3, [1]]).keep
COVERED = ("dot", "scaled_dot", "bilinear", "additive", "transformer")


def read(name: str):
    """An attention of queries of 8 over sources of 8, three sources with NaN where nobody may look, and their memory."""
    torch.manual_seed(0)
    made = build_attention(name, 8, 8)
    data = torch.randn(3, 7, 8).masked_fill(~KEEP[..., None], float("nan"))
    with torch.no_grad():
        return made, made.remember(Encoded(data, KEEP))


@pytest.mark.parametrize("name", COVERED)
@pytest.mark.parametrize("width", [1, 4])
def test_it_finds_what_the_attention_finds(name, width):
    made, memory = read(name)
    assert covers(made) is None
    queries = torch.randn(3, width, 8)
    with torch.no_grad():
        found = PreparedAttention(made, "float32").begin(memory)(queries.flatten(0, 1))
        torch.testing.assert_close(found, made(queries, memory).context.flatten(0, 1))


@pytest.mark.parametrize("name", COVERED)
def test_sources_that_leave_change_nothing_for_the_others(name):
    made, memory = read(name)
    queries = torch.randn(3, 8)
    with torch.no_grad():
        looking = PreparedAttention(made, "float32").begin(memory)
        before = looking(queries)
        looking.leave(torch.tensor([0, 2]))
        torch.testing.assert_close(looking(queries[[0, 2]]), before[[0, 2]])


@pytest.mark.parametrize("name", COVERED)
@pytest.mark.parametrize("sources", [1, 3])
def test_it_is_added_to_what_was_before_through_the_layer_behind(name, sources):
    made, memory = read(name)
    memory = select(memory, torch.arange(sources))
    behind, before, queries = nn.Linear(made.size, 24), torch.randn(sources, 24), torch.randn(sources, 8)
    with torch.no_grad():
        looking = PreparedAttention(made, "float32", split_linear(behind)).begin(memory)
        expected = before + behind(made(queries[:, None], memory).context)[:, 0]
        assert looking.onto(before, queries) is before
    torch.testing.assert_close(before, expected)


@pytest.mark.parametrize(
    ("name", "sources", "kind"),
    [("bilinear", 1, FoldedAttention), ("bilinear", 3, BatchAttention), ("additive", 1, BatchAttention)],
)
def test_few_sources_have_their_projections_folded_in_where_the_score_is_a_product(name, sources, kind):
    made, memory = read(name)
    behind = nn.Linear(made.size, 8)
    assert (
        type(PreparedAttention(made, "float32", split_linear(behind)).begin(select(memory, torch.arange(sources)))) is kind
    )


def test_sources_of_one_length_need_no_mask():
    made, _ = read("scaled_dot")
    with torch.no_grad():
        memory = made.remember(Encoded(torch.randn(2, 4, 8), torch.ones(2, 4, dtype=torch.bool)))._replace(keep=None)
        queries = torch.randn(2, 8)
        found = PreparedAttention(made, "float32").begin(memory)(queries)
        torch.testing.assert_close(found, made(queries[:, None], memory).context[:, 0])


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("local_p", "reads no mechanism of its own way, such as"),
        ("monotonic", "reads no mechanism of its own way, such as"),
        ("cosine", "needs one of the scores Dot, ScaledDot, Bilinear, Additive, got Cosine"),
        ("additive+sparsemax", "needs Softmax and Everywhere, got Sparsemax"),
    ],
)
def test_what_it_does_not_cover_it_says(name, reason):
    assert covers(build_attention(name, 8, 8)).startswith(reason)


@pytest.mark.parametrize("name", registry.names("mechanisms"))
def test_every_mechanism_is_covered_rightly_or_refused(name):
    made, memory = read(name)
    if covers(made) is None:
        queries = torch.randn(3, 2, 8)
        with torch.no_grad():
            found = PreparedAttention(made, "float32").begin(memory)(queries.flatten(0, 1))
            torch.testing.assert_close(found, made(queries, memory, made.start(memory)).context.flatten(0, 1))


def test_a_source_with_nothing_to_see_is_told():
    data = torch.zeros(2, 1, 3, 4)
    assert not has_empty_source(Memory(data, data))
    assert not has_empty_source(Memory(data, data, torch.tensor([[True, False, False], [True, True, True]])))
    assert has_empty_source(Memory(data, data, torch.tensor([[True, True, True], [False, False, False]])))
