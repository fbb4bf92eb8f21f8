import pytest
import torch
from torch.testing import assert_close

from regard.config import Dropout, Model
from regard.data.batch import pad, shifted
from regard.models.encoders import hierarchical
from regard.models.encoders.hierarchical import Hierarchical, split_sentences
from regard.models.seq2seq import build

STOP = 5


@pytest.fixture
def encoder():
    torch.manual_seed(0)
    return Hierarchical(9, 8, ends=[STOP], layers=2).eval()


def test_sentences_end_with_their_marks_and_are_not_too_long(monkeypatch):
    monkeypatch.setattr(hierarchical, "LONGEST_SENTENCE", 3)
    ends = torch.tensor([[0, 1, 0, 0, 0, 0, 1]]).bool()
    split = split_sentences(ends, torch.ones(1, 7, dtype=torch.bool))
    assert split.number.tolist() == [[0, 0, 1, 1, 1, 2, 2]]
    assert split.place.tolist() == [[0, 1, 0, 1, 2, 0, 1]]
    assert split.lengths.tolist() == [[2, 3, 2]]


def test_padding_and_other_documents_change_nothing(encoder):
    one, other = [6, 7, STOP, 8, STOP, 2], [6, 2]
    both = encoder(pad([one, other]))
    assert both.data[1, 2:].eq(0).all()
    for row, tokens in enumerate((one, other)):
        alone = encoder(pad([tokens]))
        assert_close(both.data[row, : len(tokens)], alone.data[0])
        assert_close(both.final[0][row], alone.final[0][0])


def test_a_word_knows_its_sentence_and_the_others(encoder):
    before = encoder(pad([[6, STOP, 7, STOP]])).data
    after = encoder(pad([[6, STOP, 8, STOP]])).data
    assert not torch.allclose(before[0, 0], after[0, 0])


def test_documents_without_an_end_or_a_word_are_read(encoder):
    encoded = encoder(pad([[6] * 200, []]))
    assert encoded.data.isfinite().all()
    assert encoded.data[1].eq(0).all()


@pytest.mark.parametrize("decoder", ["recurrent", "transformer"])
def test_a_decoder_learns_through_it(decoder):
    model = build(Model(encoder="hierarchical", decoder=decoder, hidden_size=8, heads=2), Dropout(), 9, 9, True, ends=[STOP])
    target = torch.tensor([[6, 2]])
    output = model(pad([[6, STOP, 7, 2]]), shifted(target)).output
    torch.nn.functional.cross_entropy(output[0], target[0]).backward()
    assert all(parameter.grad is not None for parameter in model.encoder.parameters())


def test_an_odd_size_has_no_halves():
    with pytest.raises(ValueError, match="a hierarchical encoder needs an even size"):
        Hierarchical(9, 7)
