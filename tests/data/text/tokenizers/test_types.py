import pytest

from regard.data.text.tokenizers import KINDS, Tokenizer

from .samples import trained


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_has_the_face_of_a_tokenizer(kind):
    assert isinstance(trained(kind), Tokenizer)
    assert trained(kind).kind == kind
    assert len(trained(kind).table) == trained(kind).size


def test_something_else_has_not():
    assert not isinstance("text", Tokenizer)
