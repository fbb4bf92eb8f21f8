import pytest
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

from regard.data.special_tokens import BOS
from regard.data.text import tokenizers
from regard.data.text.tokenizers.pretrained import Pretrained
from regard.decoding.constraints.prefix import Prefix, build_table

TEXTS = ["the cat sees the catalogue", "Tom chases a cat", "Tom chatted"] * 5


def written(prefix, tokenizer):
    """Every way to write a prefix, as text, with the tokens that it takes."""
    ways, found = [((), 0)], []
    while ways:
        tokens, state = ways.pop()
        if state == len(prefix.states):
            found.append(tokens)
        else:
            ways += [((*tokens, token), after) for token, after in prefix.states[state].items()]
    return {tokenizer.decode(tokens): tokens for tokens in found}


def test_forced_tokens_come_one_by_one():
    assert Prefix.forced([7, 5]).states == ({7: 1}, {5: 2})


def test_the_last_word_stays_open():
    tokenizer = tokenizers.train("words", TEXTS, 100)
    assert set(written(Prefix.of("Tom cha", tokenizer), tokenizer)) == {"Tom chases", "Tom chatted"}
    assert set(written(Prefix.of("the cat", tokenizer), tokenizer)) == {"the cat", "the catalogue"}


def test_a_space_closes_the_last_word():
    tokenizer = tokenizers.train("words", TEXTS, 100)
    assert set(written(Prefix.of("the cat ", tokenizer), tokenizer)) == {"the cat"}


def test_characters_are_what_they_are():
    tokenizer = tokenizers.train("characters", TEXTS, 100)
    assert set(written(Prefix.of("Tom c", tokenizer), tokenizer)) == {"Tom c"}


@pytest.mark.parametrize("kind", ["bytes", "bpe", "unigram"])
@pytest.mark.parametrize("text", ["Tom cha", "the cat", "the cat ", "t", "汤姆", "Tom  c"])
def test_parts_of_words_write_the_prefix_in_every_way_and_nothing_else(kind, text):
    tokenizer = tokenizers.train(kind, TEXTS, 300)
    ways = written(Prefix.of(text, tokenizer), tokenizer)
    assert ways
    assert all(each.startswith(text) for each in ways)
    assert text in ways


def test_complete_words_are_cut_as_the_tokenizer_cuts_them_and_the_last_as_the_model_likes():
    tokenizer = tokenizers.train("bpe", TEXTS, 300)
    forced = tokenizer.encode("the cat")
    prefix = Prefix.of("the cat ", tokenizer)
    assert [list(each) for each in prefix.states[: len(forced)]] == [[token] for token in forced]
    after = {tokenizer.decode([token]) for token in prefix.states[len(forced)]}
    assert " cat" in after
    assert all(each.startswith(" ") for each in after)


def test_a_word_that_the_model_cannot_write_is_an_error():
    tokenizer = tokenizers.train("words", TEXTS, 100)
    with pytest.raises(ValueError, match=r"the prefix 'Tom dog' holds 'dog', which the model cannot write; begin with"):
        Prefix.of("Tom dog", tokenizer)
    with pytest.raises(ValueError, match="holds 'ca', which the model cannot write"):
        Prefix.of("ca sees", tokenizer)


def test_a_table_leads_through_every_prefix_to_the_free_state():
    one, two = Prefix.forced([5, 6]), Prefix()
    rows, firsts = build_table([one, two, one], 8)
    assert rows.shape == (3, 8)
    assert firsts[two] == 0
    first = firsts[one]
    assert rows[first].tolist() == [-1, first, -1, -1, -1, first + 1, -1, -1]
    assert rows[first + 1, 6] == 0
    assert rows[first + 1, BOS] == first + 1
    assert rows[0].eq(0).all()


def test_tokens_from_elsewhere_write_a_prefix_as_their_decoder_joins_them():
    pieces = ["<pad>", "</s>", "<unk>", "▁the", "▁cat", "▁c", "at", "alogue", "▁", "ing", "▁catx"]
    model = Tokenizer(models.Unigram([(piece, -1.0) for piece in pieces], unk_id=2))
    model.pre_tokenizer, model.decoder = pre_tokenizers.Metaspace(), decoders.Metaspace()
    tokenizer = Pretrained((0, 1, 1, 2, *range(3, 11)), model)
    assert set(written(Prefix.of("the ca", tokenizer), tokenizer)) == {"the cat", "the catx", "the calogue"}
    assert set(written(Prefix.of("the cat", tokenizer), tokenizer)) == {"the cat", "the catx"}
    assert set(written(Prefix.of("the catx", tokenizer), tokenizer)) == {"the catx"}  # nothing goes on behind "▁cat"
    assert all(text.startswith("the cat ") for text in written(Prefix.of("the cat ", tokenizer), tokenizer))
    assert set(written(Prefix.of("cat", tokenizer), tokenizer)) == {"cat", "catx"}
    for text in ("the cow", "zebra cat"):
        with pytest.raises(ValueError, match=f"the prefix '{text}' holds what the model cannot write; begin with"):
            Prefix.of(text, tokenizer)


def test_a_prefix_stands_behind_a_first_token_that_writes_nothing():
    assert Prefix.forced([7, 5]).behind(9).states == ({9: 1}, {7: 2}, {5: 3})
