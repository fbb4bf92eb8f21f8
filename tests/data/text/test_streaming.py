import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.data.special_tokens import EOS
from regard.data.table import Record
from regard.data.text.streaming import encode_stable_tokens, find_obstacle, stream_token_ids
from regard.data.text.tokenizers import KINDS
from regard.data.text.tokenizers.pretrained import Pretrained

from ...decoding.streaming.models import codec

LETTERS = st.sampled_from("aTom .,'-  \t\n\r\u3000猫追¿(）ΑΣσé\u0301\U0001f600▁￭\x1c<eos>1\xa0")
TEXTS = st.lists(st.text(LETTERS, max_size=5), max_size=8)


@settings(max_examples=50)
@given(pieces=TEXTS, kind=st.sampled_from(KINDS), lowercase=st.booleans(), longest=st.sampled_from([3, 6, 256]))
def test_what_is_settled_stays_and_together_it_is_the_whole(pieces, kind, lowercase, longest):
    made = codec(kind, lowercase=lowercase, max_source_length=longest)
    found = list(stream_token_ids(made, pieces))
    assert [number for each in found for number in each] == made.encode(Record("".join(pieces), None, "")).source
    assert all(found)


@pytest.mark.parametrize("lowercase", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_a_word_is_handed_on_before_the_source_has_ended(kind, lowercase):
    made = codec(kind, lowercase=lowercase)
    assert made.source.decode(encode_stable_tokens(made, "that likes Je")).startswith("that likes")


def test_a_word_waits_until_it_can_grow_no_more():
    words, bpe = (codec(kind) for kind in ("words", "bpe"))
    assert words.source.decode(encode_stable_tokens(words, "Tom cha")) == "Tom"
    assert encode_stable_tokens(words, "Tom chases") == encode_stable_tokens(words, "Tom ")
    assert bpe.source.decode(encode_stable_tokens(bpe, "Tom chases ")) == "Tom chases"
    assert encode_stable_tokens(bpe, "Tom") == encode_stable_tokens(bpe, "") == []


def test_a_sigma_waits_for_the_end_of_its_word():
    made = codec("characters", lowercase=True)
    assert encode_stable_tokens(made, "ΑΣ") == []
    assert encode_stable_tokens(made, "ΑΣ ") == made.source.encode("ας")


def test_a_source_that_is_too_long_is_cut_and_no_more_of_it_is_asked_for():
    made = codec("characters", max_source_length=4)
    pieces = iter(["To", "m chases", " Jerry"])
    *_, last = stream_token_ids(made, pieces)
    assert last == [EOS]
    assert list(pieces) == [" Jerry"]


def test_tokens_from_elsewhere_settle_with_the_whole_text_alone():
    made = codec("words")
    assert find_obstacle(made) is None
    strange = type(made)(Pretrained((0, 1, 2, 3, 4)), made.target)
    assert find_obstacle(strange).startswith("its tokens are pretrained, and what follows may change any of them")
