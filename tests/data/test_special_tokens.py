"""Special tokens are the first ids of every vocabulary."""

import pytest

from regard.config import Data
from regard.data.special_tokens import BOS, EOS, NAMES, PAD, UNK
from regard.data.table import Record
from regard.data.text.codec import TextCodec
from regard.data.text.tokenizers import KINDS


def test_they_are_numbered_from_zero_in_the_order_of_their_names():
    assert [NAMES[token] for token in (PAD, BOS, EOS, UNK)] == ["<pad>", "<bos>", "<eos>", "<unk>"]


@pytest.mark.parametrize("kind", KINDS)
def test_no_text_is_encoded_as_one_of_them_but_for_what_is_unknown(kind):
    records = [Record("<pad> <bos> <eos> <unk> Tom chases Jerry", "<eos> <pad> Jerry", f"a:{line}") for line in range(3)]
    codec = TextCodec.fit(records, Data(tokenizer=kind, vocab_size=400))
    assert not {PAD, BOS, EOS} & set(codec.source.encode(records[0].source))
    assert codec.source.size > UNK
