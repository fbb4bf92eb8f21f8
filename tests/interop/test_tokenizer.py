import random

import pytest
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

from regard.data.special_tokens import BOS, EOS, NAMES, PAD, UNK
from regard.data.text import tokenizers
from regard.data.text.codec import TextCodec
from regard.data.text.synthetic import grammar
from regard.data.text.tokenizers.pretokenize import join, mark
from regard.data.text.tokenizers.pretrained import Pretrained
from regard.data.text.tokenizers.words import Words
from regard.interop.pretrained_tokenizer import renumber
from regard.interop.tokenizer import build_tokenizer
from regard.interop.word_tokenizer import build_decoder, build_normalizer

TEXTS = [text for record in grammar(250, 0) for text in (record.source, record.target)]
ODD = [
    "",
    " ",
    "  two  blanks ",
    "naïve café 😀",
    "tab\tand\nline",
    "汤姆 Tom",
    "ﬁ ½ Ω",
    'Tom\'s "cat" (a dog), 1.5!',
    "<eos> <pad>",
]
LETTERS = "ab.,!()'“”汤姆￭▁ \t\n\x1f\u0301\u0300-_…é☃<>"


def written(count, letters=LETTERS):
    """Random texts, of letters that matter to the spacing and of any code points."""
    draw = random.Random(5)
    every = [chr(code) for code in range(1, 0x110000) if not 0xD800 <= code < 0xE000]
    for index in range(count):
        pool = letters if index % 3 else every
        yield "".join(draw.choice(pool if draw.random() < 0.7 else letters) for _ in range(draw.randint(0, 14)))


def test_words_and_their_marks_are_those_of_the_pre_tokenizer():
    normalizer, decoder = build_normalizer(), build_decoder()
    for text in [*TEXTS, *ODD, *written(1500)]:
        tokens = mark(text)
        assert normalizer.normalize_str(text).replace("\n", " ").split(" ") == (tokens or [""]), repr(text)
        assert decoder.decode(tokens) == join(tokens), tokens


@pytest.mark.parametrize("kind", ["words", "characters", "bytes", "bpe", "unigram"])
@pytest.mark.parametrize("lowercase", [False, True])
def test_its_ids_and_its_texts_are_ours(kind, lowercase):
    ours = tokenizers.train(kind, [text.lower() if lowercase else text for text in TEXTS], 420)
    theirs = Tokenizer.from_str(build_tokenizer(ours, lowercase).to_str())
    theirs.encode_special_tokens = True
    assert theirs.get_vocab_size() == ours.size
    assert [theirs.id_to_token(number) for number in range(4)] == list(NAMES)
    odd = ODD[:-1] if kind == "unigram" else ODD  # its model has the names of special tokens as pieces
    for text in [*TEXTS, *odd, "ΟΔΟΣ ΣΑΣ"]:
        numbers = [*ours.encode(text.lower() if lowercase else text), EOS]
        assert theirs.encode(text).ids == numbers, text
        assert theirs.decode([BOS, *numbers, PAD]) == ours.decode(numbers), text


def test_words_of_a_text_that_came_apart_are_what_stands_between_spaces():
    ours = tokenizers.train("words", ["a b , c .", "a , b . c"] * 20, 100)
    assert isinstance(ours, Words)
    assert ours.whole
    theirs = build_tokenizer(ours)
    for text in ("a , strange c", "", " a  b "):
        numbers = ours.encode(text)
        assert theirs.encode(text).ids == [*numbers, EOS]
        assert theirs.decode(numbers) == ours.decode(numbers)


def worded(model, template="<s> $A </s>"):
    tokenizer = Tokenizer(model)
    tokenizer.normalizer = normalizers.NFKC()
    tokenizer.pre_tokenizer, tokenizer.decoder = pre_tokenizers.Metaspace(), decoders.Metaspace()
    tokenizer.add_special_tokens(["<s>", "<pad>", "</s>", "<unk>", "eng"])
    if template:
        tokens = [(name, tokenizer.token_to_id(name)) for name in template.split() if name != "$A"]
        tokenizer.post_processor = processors.TemplateProcessing(single=template, special_tokens=tokens)
    return tokenizer


PIECES = ["<s>", "<pad>", "</s>", "<unk>", "▁Tom", "▁sees", "a", "b", "▁a", "▁", "."]
MODELS = {
    "unigram": lambda: models.Unigram([(piece, -1.0 - index) for index, piece in enumerate(PIECES)], unk_id=3),
    "words": lambda: models.WordLevel({piece: number for number, piece in enumerate(PIECES)}, unk_token="<unk>"),
    "bpe": lambda: models.BPE({piece: number for number, piece in enumerate(PIECES)}, [("▁", "a")], unk_token="<unk>"),
}


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("template", ["<s> $A </s>", "eng $A </s>", "<s> $A", ""])
def test_a_tokenizer_from_elsewhere_gets_our_numbers(kind, template):
    model = worded(MODELS[kind](), template)
    # the padding, a copy of the end, the end, the unknown, and the others; the last has no token
    tokens = Pretrained((1, 2, 2, 3, 0, *range(4, 13)), model)
    theirs = build_tokenizer(tokens)
    for text in ("Tom sees a b", "a", "strange Tom.", ""):
        numbers = tokens.encode(text)
        assert theirs.encode(text).ids == [*numbers, EOS]
        assert theirs.decode(numbers) == tokens.decode(numbers)


def test_roberta_and_others_that_name_their_ends_by_pairs_are_renumbered():
    model = worded(MODELS["words"](), "")
    model.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0))
    tokens = Pretrained((1, 2, 2, 3, 0, *range(4, 12)), model)
    assert renumber(tokens).encode("Tom a").ids == [4, 5, 9, EOS] == [*tokens.encode("Tom a"), EOS]


def test_where_there_is_none_the_reason_is_told():
    assert build_tokenizer(Pretrained((1, 2, 2, 3, 0, 4))) == "its texts are made of ids"
    model = worded(MODELS["words"]())
    assert build_tokenizer(Pretrained((1, 2, 2, 3, 0, *range(4, 12)), model), lowercase=True).startswith("its texts are put")
    assert UNK in TextCodec(tokenizers.train("words", TEXTS, 20), tokenizers.train("words", TEXTS, 20)).source.encode(
        "zebra"
    )
