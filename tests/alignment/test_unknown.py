import dataclasses

import pytest
import torch

from regard.alignment.unknown import copied_units, load_translations, replace_unknown
from regard.config import Data
from regard.data.special_tokens import EOS, UNK
from regard.data.table import Record
from regard.data.text.codec import TextCodec
from regard.errors import ConfigError, DataError

from .conftest import made

RECORDS = [Record("the dog sleeps .", "der hund schläft .", "a:1"), Record("the cat sleeps .", "die katze schläft .", "a:2")]
RECORD = Record("the platypus sleeps .", None, "a:3")


def written(codec, *texts):
    """Token numbers, with UNK for None."""
    return [*(UNK if text is None else codec.target.encode(text)[0] for text in texts), EOS]


def looking(*places, keys=5):
    return torch.eye(keys)[torch.tensor(places)]


@pytest.mark.parametrize(
    ("translations", "text"), [({}, "das platypus schläft ."), ({"platypus": "Schnabeltier"}, "das Schnabeltier schläft .")]
)
def test_an_unknown_word_is_the_one_it_looked_at_or_its_translation(translations, text):
    codec = TextCodec.fit([*RECORDS, Record("x", "das", "a:4")])
    numbers = written(codec, "das", None, "schläft", ".")
    assert replace_unknown(codec, RECORD, numbers, looking(0, 1, 2, 3, 4), translations) == text


def test_a_word_looked_at_twice_is_written_twice_and_the_end_is_no_word():
    codec = TextCodec.fit(RECORDS)
    numbers = written(codec, None, None, ".")
    weights = torch.tensor([[0.1, 0.3, 0.0, 0.0, 0.6], [0.0, 1.0, 0.0, 0.0, 0.0], *looking(3, 4).tolist()])
    assert replace_unknown(codec, RECORD, numbers, weights, {}) == "platypus platypus ."


def test_what_looked_at_nothing_stays_unknown():
    codec = TextCodec.fit(RECORDS)
    assert replace_unknown(codec, RECORD, written(codec, None, "schläft"), torch.zeros(3, 5), {}) == "<unk> schläft"


def test_characters_are_copied_one_by_one():
    codec = TextCodec.fit([Record("ab", "ab", "a:1")], Data(tokenizer="characters"))
    numbers = written(codec, "a", None, "b")
    assert replace_unknown(codec, Record("axb", None, "a:2"), numbers, looking(0, 1, 2, 3, keys=4), {}) == "axb"


def test_where_tokens_are_parts_of_words_the_whole_word_is_copied():
    codec = TextCodec.fit(RECORDS, Data(tokenizer="bytes"), target_tokenizer="words")
    assert copied_units(codec, RECORD).texts == ("the", "platypus", "sleeps", ".")
    record = Record("an ox", None, "a:4")  # the bytes a n _ o x, and the end
    weights = torch.tensor([[0.3, 0.0, 0.0, 0.3, 0.3, 0.1], [0, 0, 0, 0, 0, 1.0]])
    assert replace_unknown(codec, record, [UNK, EOS], weights, {}) == "ox"


def test_words_are_kept_copied_or_looked_up(tmp_path):
    path = tmp_path / "words.tsv"
    path.write_text("dog\tHund\ncat \t Katze\ndog\tKöter\n", encoding="utf-8")
    assert load_translations("keep") is None
    assert load_translations("copy") == {}
    assert load_translations(str(path)) == {"dog": "Hund", "cat": "Katze"}


@pytest.mark.parametrize("line", ["dog", "dog\t", "\tHund", "dog\tHund\tN"])
def test_a_line_needs_a_word_and_its_translation(tmp_path, line):
    path = tmp_path / "words.tsv"
    path.write_text(f"cat\tKatze\n{line}\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"words.tsv:2 needs a word, a tab and its translation, got"):
        load_translations(str(path))


def only_unknown(model, sure=1e6):
    """A model that can write nothing but UNK."""
    with torch.no_grad():
        model.model.decoder.output.bias[UNK] += sure
    return model


def test_a_model_answers_with_what_it_looks_at(tmp_path):
    model = only_unknown(made(tmp_path))
    [kept] = model.predict(["dog"], align=True)
    assert set(kept.text.split()) == {"<unk>"}
    [copied] = model.predict(["dog"], unknown="copy")
    assert copied.weights is None
    assert copied.text.split() == ["dog"] * len(kept.text.split())
    path = tmp_path / "words.tsv"
    path.write_text("dog\thund\n", encoding="utf-8")
    assert set(model.predict(["dog"], unknown=str(path))[0].text.split()) == {"hund"}
    assert model.predict(["dog"], beam=2, unknown="copy")[0].text.split()[0] == "dog"


def test_copying_needs_an_attention(tmp_path):
    with pytest.raises(ConfigError, match="an alignment needs an attention over the source, and this model has none"):
        only_unknown(made(tmp_path, "none")).predict(["dog"], unknown="copy")


def test_a_model_that_is_set_to_copy_does_so_unasked_and_when_it_is_measured(tmp_path):
    model = only_unknown(made(tmp_path), sure=50)
    records = [Record("dog", "dog " * 12 + "dog", "test:1")]
    kept = model.evaluate(records)
    model.config = dataclasses.replace(model.config, search=dataclasses.replace(model.config.search, unknown="copy"))
    assert set(model.predict(["dog"])[0].text.split()) == {"dog"}
    assert "dog" not in model.predict(["dog"], unknown="keep")[0].text
    assert model.evaluate(records)["wer"].value < 50 < kept["wer"].value


def test_a_line_of_any_length_is_quoted_short(tmp_path):
    (tmp_path / "words.tsv").write_text("x" * 9999 + "\n")
    with pytest.raises(DataError, match=rf"needs a word, a tab and its translation, got '{'x' * 80}'\.\.\.$"):
        load_translations(str(tmp_path / "words.tsv"))
