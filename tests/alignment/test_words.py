import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.alignment import words
from regard.alignment.words import Units, expand_links, merge_links, merge_weights
from regard.config import Data
from regard.data.table import Record
from regard.data.text.codec import TextCodec
from regard.data.text.tokenizers import KINDS

RECORDS = [Record("the dog, it sleeps", "der Hund schläft", "a:1"), Record("a  cat", "eine Katze", "a:2")]


def fit(kind, **options):
    return TextCodec.fit(RECORDS, Data(tokenizer=kind, vocab_size=300, **options))


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "characters"])
@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.where)
def test_a_word_is_what_stands_between_spaces_whatever_the_tokens(kind, record):
    codec = fit(kind)
    example = codec.encode(record)
    for side, text, numbers in (
        (words.source_units(codec, record), record.source, example.source),
        (words.target_units(codec, record), record.target, example.target),
    ):
        assert list(side.texts) == text.split()
        assert side.members.shape == (len(text.split()), len(numbers))
        assert not side.members[:, -1].any()  # the end
        assert side.members.any(1).all()


def test_a_word_is_made_of_its_tokens():
    codec = fit("words")
    side = words.source_units(codec, RECORDS[0])  # the dog , it sleeps <eos>
    assert side.texts == ("the", "dog,", "it", "sleeps")
    assert side.members.int().tolist() == [[1, 0, 0, 0, 0, 0], [0, 1, 1, 0, 0, 0], [0, 0, 0, 1, 0, 0], [0, 0, 0, 0, 1, 0]]


def test_characters_are_units_and_so_is_any_token_that_is_asked_for():
    assert words.source_units(fit("characters"), RECORDS[1]).texts == tuple("a  cat")
    side = words.source_units(fit("words"), RECORDS[0], tokens=True)
    assert side.texts == ("the", "dog", ",", "it", "sleeps")
    assert torch.equal(side.members, torch.eye(6, dtype=torch.bool)[:5])


def test_what_was_cut_away_has_no_tokens():
    side = words.source_units(fit("words", max_source_length=4), RECORDS[0])
    assert len(side.texts) == 4
    assert side.members.any(1).tolist() == [True, True, False, False]


@pytest.mark.parametrize("kind", ["words", "bpe", "bytes"])
def test_an_answer_has_the_units_of_the_text_that_it_is(kind):
    codec = fit(kind)
    numbers = codec.encode(RECORDS[0]).target
    found, given = words.output_units(codec, numbers), words.target_units(codec, RECORDS[0])
    assert found.texts == given.texts == ("der", "Hund", "schläft")
    assert torch.equal(found.members, given.members)


def test_weights_are_summed_over_the_source_and_averaged_over_the_target():
    source = Units(("a", "bc"), torch.tensor([[1, 0, 0, 0], [0, 1, 1, 0]], dtype=torch.bool))
    target = Units(("xy", "z"), torch.tensor([[1, 1, 0, 0], [0, 0, 1, 0]], dtype=torch.bool))
    weights = torch.tensor([[0.1, 0.2, 0.3, 0.4], [0.5, 0.1, 0.1, 0.3], [0.0, 0.0, 0.9, 0.1], [1.0, 0.0, 0.0, 0.0]])
    torch.testing.assert_close(merge_weights(weights, source, target), torch.tensor([[0.3, 0.35], [0.0, 0.9]]))


def test_a_token_over_two_words_gives_each_a_half():
    source = Units(("a", "b"), torch.tensor([[1], [1]], dtype=torch.bool))
    target = Units(("x",), torch.tensor([[1]], dtype=torch.bool))
    torch.testing.assert_close(merge_weights(torch.tensor([[0.8]]), source, target), torch.tensor([[0.4, 0.4]]))


def test_words_are_linked_when_any_of_their_tokens_are():
    source = Units(("a", "bc"), torch.tensor([[1, 0, 0, 0], [0, 1, 1, 0]], dtype=torch.bool))
    target = Units(("xy", "z"), torch.tensor([[1, 1, 0, 0], [0, 0, 1, 0]], dtype=torch.bool))
    assert merge_links({(2, 0), (0, 1), (3, 2), (1, 3)}, source, target) == {(1, 0), (0, 0)}


@settings(max_examples=20)
@given(st.frozensets(st.tuples(st.integers(0, 3), st.integers(0, 2))))
def test_links_that_are_spread_onto_tokens_come_back(links):
    codec = fit("bpe")
    source, target = words.source_units(codec, RECORDS[0]), words.target_units(codec, RECORDS[0])
    over = expand_links(links, source, target)
    assert merge_links(over, source, target) == links
    assert len(over) == sum(int(source.members[s].sum() * target.members[t].sum()) for s, t in links)
