import pytest
import torch
from torch.testing import assert_close

from regard.attention.scope.causal import Causal
from regard.attention.scope.everywhere import Everywhere
from regard.attention.scope.local import Local
from regard.data.batch import Padded
from regard.models.encoders.convolution import Convolution
from regard.models.encoders.incremental import covers, encode_incrementally, is_causal
from regard.models.encoders.recurrent import Recurrent
from regard.models.encoders.transformer import Transformer

TOKENS = torch.tensor([[4, 5, 6, 4, 7], [7, 7, 5, 4, 6]])
ONE_WAY = {
    "lstm": lambda: Recurrent(9, 6, bidirectional=False, layers=2),
    "gru": lambda: Recurrent(9, 6, bidirectional=False, cell="gru"),
    "transformer": lambda: Transformer(9, 8, self_attention="causal", layers=2, heads=2),
    "rotary": lambda: Transformer(9, 8, self_attention="rotary+causal", positions=None, heads=2, norm="post", embedding=4),
}


@pytest.mark.parametrize("kind", ONE_WAY)
@pytest.mark.parametrize("cuts", [(1, 1, 1, 1, 1), (2, 3)], ids=str)
def test_a_few_tokens_at_a_time_are_the_whole_source(kind, cuts):
    encoder = ONE_WAY[kind]().eval()
    whole = encoder(Padded(TOKENS, torch.ones_like(TOKENS) > 0))
    state, found = (), []
    for tokens in TOKENS.split(cuts, dim=1):
        encoded, state = encode_incrementally(encoder, tokens, state)
        found.append(encoded)
    assert_close(torch.cat([each.data for each in found], dim=1), whole.data)
    assert torch.equal(torch.cat([each.tokens for each in found], dim=1), TOKENS)
    assert torch.cat([each.keep for each in found], dim=1).all()
    if isinstance(encoder, Recurrent):
        assert_close(found[-1].final, whole.final)


@pytest.mark.parametrize("kind", ONE_WAY)
def test_an_encoder_that_reads_one_way_may_begin_early(kind):
    assert covers(ONE_WAY[kind]()) is None


@pytest.mark.parametrize(
    ("encoder", "words"),
    [
        (Recurrent(9, 6), "reads from both ends"),
        (Recurrent(9, 6, bidirectional=False, reverse=True), "reads from the end"),
        (Transformer(9, 8), "looks at all others"),
        (Transformer(9, 8, self_attention="local"), "looks at all others"),
        (Convolution(9, 8), "its encoder, Convolution, sees what comes after a token too"),
    ],
    ids=lambda each: type(each).__name__,
)
def test_an_encoder_that_needs_the_whole_says_why(encoder, words):
    assert words in covers(encoder)


def test_a_scope_looks_back_alone_where_it_hides_what_comes_later():
    assert is_causal(Causal())
    assert is_causal(Causal() & Local(2))
    assert is_causal(Local(2) & Causal())
    assert is_causal(Causal() | (Causal() & Local(2)))
    assert not is_causal(Causal() | Local(2))
    assert not is_causal(Everywhere())
    assert not is_causal(~Causal())
