"""What holds for every kind of tokenizer."""

import os
import subprocess
import sys
from hashlib import sha256

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.data.special_tokens import BOS, EOS, NAMES, PAD, UNK
from regard.data.text.tokenizers import KINDS, Tokenizer, load, train

from .samples import TEXTS, trained, unicode

EXACT = ("bytes", "bpe", "unigram")
every = pytest.mark.parametrize("kind", KINDS)
exact = pytest.mark.parametrize("kind", EXACT)


def holds_together(tokenizer: Tokenizer, text: str) -> None:
    """Numbers, pieces and what is shown agree with one another."""
    numbers = tokenizer.encode(text)
    pieces = tokenizer.pieces(text)
    assert len(pieces) == len(numbers) == len(tokenizer.shown(numbers))
    assert all(number == UNK or len(NAMES) <= number < tokenizer.size for number in numbers)
    assert all(piece.text == text[piece.start : piece.end] and piece.text for piece in pieces)
    assert sorted(pieces, key=lambda piece: piece.start) == pieces


@exact
@settings(max_examples=100)
@given(unicode)
def test_every_text_comes_back_unchanged(kind, text):
    assert trained(kind).decode(trained(kind).encode(text)) == text
    holds_together(trained(kind), text)


@pytest.mark.soak
@pytest.mark.timeout(3600)
@exact
@settings(max_examples=50_000)
@given(unicode)
def test_fifty_thousand_texts_come_back_unchanged(kind, text):
    assert trained(kind).decode(trained(kind).encode(text)) == text
    holds_together(trained(kind), text)


def listed_come_back(text: str) -> None:
    """Characters give a known text back unchanged; words narrow its spaces."""
    for kind, expected in (("characters", text), ("words", " ".join(text.split()))):
        tokenizer = train(kind, [text], 10_000)
        assert tokenizer.decode(tokenizer.encode(text)) == expected
        assert UNK not in tokenizer.encode(text)
        holds_together(tokenizer, text)


@settings(max_examples=100)
@given(unicode)
def test_known_words_and_characters_come_back(text):
    listed_come_back(text)


@pytest.mark.soak
@pytest.mark.timeout(3600)
@settings(max_examples=50_000)
@given(unicode)
def test_fifty_thousand_known_texts_come_back(text):
    listed_come_back(text)


@exact
@settings(max_examples=25)
@given(st.lists(unicode, max_size=4), st.integers(262, 300))
def test_any_texts_will_do_to_train_on(kind, texts, size):
    trains_on(kind, texts, size)


@pytest.mark.soak
@pytest.mark.timeout(3600)
@exact
@settings(max_examples=5_000)
@given(st.lists(unicode, max_size=4), st.integers(262, 300))
def test_any_of_five_thousand_texts_will_do_to_train_on(kind, texts, size):
    trains_on(kind, texts, size)


def trains_on(kind: str, texts: list[str], size: int) -> None:
    """A tokenizer trained on anything writes everything."""
    tokenizer = train(kind, texts, size)
    assert 260 <= tokenizer.size <= size
    for text in [*texts, "Tom 汤姆 ▁"]:
        assert tokenizer.decode(tokenizer.encode(text)) == text


@every
def test_code_points_of_every_plane_are_taken(kind):
    takes(kind, "".join(map(chr, [*range(0, 0xD800, 61), *range(0xE000, 0x110000, 251)])))


@pytest.mark.soak
@pytest.mark.timeout(3600)
@every
def test_all_code_points_are_taken(kind):
    for start in (*range(0, 0xD800, 0x400), *range(0xE000, 0x110000, 0x400)):
        takes(kind, "".join(map(chr, range(start, start + 0x400))))


def takes(kind: str, text: str) -> None:
    """A text can be written, and comes back where that is promised."""
    tokenizer = trained(kind)
    assert len(tokenizer.pieces(text)) == len(tokenizer.encode(text))
    if kind in EXACT:
        assert tokenizer.decode(tokenizer.encode(text)) == text


@every
def test_half_a_surrogate_pair_is_read_as_the_replacement_character(kind):
    tokenizer = train(kind, ["a\ufffdb", "\udc00"], 400)
    assert tokenizer.encode("a\ud83db") == tokenizer.encode("a\ufffdb")
    assert tokenizer.decode(tokenizer.encode("a\ud83db")) == "a\ufffdb"
    assert tokenizer.pieces("a\ud83db") == tokenizer.pieces("a\ufffdb")


@every
def test_the_name_of_a_special_token_is_text_like_any_other(kind):
    for name in NAMES:
        tokenizer = train(kind, [name], 400)
        assert not {PAD, BOS, EOS, UNK} & set(tokenizer.encode(name))
        assert tokenizer.decode(tokenizer.encode(name)) == name


@every
def test_special_tokens_are_silent_but_for_the_unknown(kind):
    tokenizer = trained(kind)
    text = tokenizer.encode("Tom")
    assert tokenizer.decode([BOS, *text, EOS, PAD, PAD]) == "Tom"
    assert "<unk>" in tokenizer.decode([UNK])
    shown = tokenizer.shown([BOS, *text, UNK, EOS, PAD])
    assert shown == ["<bos>", *tokenizer.shown(text), "<unk>", "<eos>", "<pad>"]
    assert "".join(tokenizer.shown(text)) == "Tom"


@every
def test_many_at_once_are_the_same_as_one_by_one(kind):
    tokenizer = trained(kind)
    texts = [*TEXTS[:5], "", "a  b", " lead", "trail ", "unseen wörter 字"]
    assert tokenizer.encode_all(texts) == [tokenizer.encode(text) for text in texts]
    assert tokenizer.encode_all([]) == []
    assert tokenizer.encode("") == []
    assert tokenizer.decode([]) == ""


@every
def test_every_number_can_be_decoded_in_any_order(kind):
    tokenizer = trained(kind)
    numbers = [number * 97 % tokenizer.size for number in range(tokenizer.size)]
    assert isinstance(tokenizer.decode(numbers), str)
    assert len(tokenizer.shown(numbers)) == len(numbers)


@every
def test_what_is_saved_comes_back(tmp_path, kind):
    folder = tmp_path / "分词器🙂"
    folder.mkdir()
    files = trained(kind).save(folder, "源")
    assert sorted(files) == sorted(folder.iterdir())
    loaded = load(folder, "源")
    assert isinstance(loaded, Tokenizer)
    assert loaded.kind == kind
    assert loaded.size == trained(kind).size
    assert loaded.encode_all(TEXTS) == trained(kind).encode_all(TEXTS)
    assert loaded.decode(loaded.encode(TEXTS[0])) == TEXTS[0]


@every
def test_a_long_text_without_a_space_is_no_trouble(kind):
    text = "abcdefghij" * 3_000
    tokenizer = trained(kind)
    assert sum(len(piece.text) for piece in tokenizer.pieces(text)) == len(text)


PROGRAM = """
import sys, pathlib
from regard.data.text.tokenizers import KINDS, train
texts = pathlib.Path(sys.argv[1]).read_text(encoding="utf-8").split("|")
for kind in KINDS:
    train(kind, texts, 400).save(pathlib.Path(sys.argv[2]), kind)
"""


def test_training_gives_the_same_files_in_every_process(tmp_path):
    (tmp_path / "texts").write_text("|".join(TEXTS), encoding="utf-8")
    sums = []
    for seed in ("1", "2"):
        (tmp_path / seed).mkdir()
        arguments = [sys.executable, "-c", PROGRAM, str(tmp_path / "texts"), str(tmp_path / seed)]
        subprocess.run(arguments, check=True, env=os.environ | {"PYTHONHASHSEED": seed})
        sums.append({path.name: sha256(path.read_bytes()).hexdigest() for path in (tmp_path / seed).iterdir()})
    assert len(sums[0]) == 9
    assert sums[0] == sums[1]


def test_an_unknown_kind_names_the_nearest():
    with pytest.raises(ValueError, match=r"no tokenizer is called 'word'; did you mean 'words'\?"):
        train("word", ["a"], 10)
    with pytest.raises(ValueError, match="there are words, characters, bytes, bpe, unigram"):
        train("os.system", ["a"], 10)


def test_importing_the_package_imports_no_library():
    check = "import sys, regard.data.text.codec; print([m for m in ('tokenizers', 'sentencepiece', 'pydantic') if m in sys.modules])"
    found = subprocess.run([sys.executable, "-c", check], check=True, capture_output=True, text=True)
    assert found.stdout.strip() == "[]"
