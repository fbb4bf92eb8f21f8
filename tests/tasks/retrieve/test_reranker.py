import numpy as np
import pytest
import torch
from torch.nn import functional as F
from torch.testing import assert_close

from regard.attention.types import Encoded
from regard.tasks.retrieve.loss import reranking
from regard.tasks.retrieve.reranker import Reranking
from regard.tree import select

KEEP = torch.tensor([[True, True, True], [True, False, False]])


def made():
    return Reranking(6, 5, 16, heads=2)


def test_every_piece_of_a_text_says_where_it_looked():
    found = made()(Encoded(torch.randn(2, 4, 6)), Encoded(torch.randn(2, 3, 5), KEEP), weights=True)
    assert found.scores.shape == (2,)
    assert sorted(found.weights) == ["layers.0.cross", "layers.1.cross"]
    assert found.weights["layers.0.cross"].shape == (2, 4, 3, 4)
    assert_close(found.weights["layers.1.cross"].sum(-1), torch.ones(2, 4, 3))


def test_padding_of_either_side_changes_nothing():
    model = made().eval()
    picture, text = Encoded(torch.randn(2, 4, 6), torch.ones(2, 4, dtype=torch.bool)), Encoded(torch.randn(2, 3, 5), KEEP)
    wide = Encoded(F.pad(picture.data, (0, 0, 0, 2), value=3.0), F.pad(picture.keep, (0, 2)))
    long = Encoded(F.pad(text.data, (0, 0, 0, 2), value=3.0), F.pad(KEEP, (0, 2)))
    assert_close(model(wide, long).scores, model(picture, text).scores, atol=1e-5, rtol=1e-5)
    whole = model(picture, Encoded(text.data)).scores
    assert_close(whole[0], model(picture, text).scores[0])


def test_pairs_are_put_side_by_side_by_their_rows():
    model = made().eval()
    pictures, texts = Encoded(torch.randn(3, 4, 6), grid=(2, 2)), Encoded(torch.randn(2, 3, 5))
    rows, others = torch.tensor([0, 0, 2]), torch.tensor([0, 1, 1])
    scores = model(select(pictures, rows), select(texts, others)).scores
    assert_close(scores[2], model(select(pictures, rows[2:]), select(texts, others[2:])).scores[0])


@pytest.mark.unhooked
def test_it_learns_whether_a_picture_holds_what_a_text_names():
    draw = np.random.default_rng(0)
    model = made()
    optimiser = torch.optim.AdamW(model.parameters(), 5e-3)

    def drawn(count):  # one region of four is marked by one of five numbers, and the text names it
        number = torch.from_numpy(draw.integers(0, 5, count))
        data = torch.zeros(count, 4, 6)
        data[torch.arange(count), torch.from_numpy(draw.integers(0, 4, count)), number] = 1.0
        return Encoded(data), Encoded(F.one_hot(number, 5).float()[:, None]), number[:, None] == number[None]

    for _ in range(60):
        picture, text, same = drawn(32)
        loss = reranking(model, picture, text, torch.randn(32, 32), same)
        optimiser.zero_grad()
        loss.total.div(loss.tokens).backward()
        optimiser.step()
    picture, text, same = drawn(40)
    rows = torch.arange(40).repeat_interleave(40)
    scores = model.eval()(select(picture, rows), select(text, torch.arange(40).repeat(40))).scores.view(40, 40)
    best = scores.argmax(1)
    assert same[torch.arange(40), best].float().mean() > 0.9


def test_rows_that_do_not_pair_off_are_refused():
    with pytest.raises(ValueError, match="re-ranking scores pairs, as many pictures as texts, got 2 and 3"):
        made()(Encoded(torch.randn(2, 4, 6)), Encoded(torch.randn(3, 3, 5)))
    with pytest.raises(ValueError, match="re-ranking needs 1 layer or more, got 0"):
        Reranking(6, 5, 16, layers=0)
