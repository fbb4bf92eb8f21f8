from functools import partial

import numpy as np
import pytest
import torch
from torch.nn import functional as F
from torch.testing import assert_close

from regard.data.batch import Padded, pad
from regard.losses.classification import compute_accuracy, single_label_loss
from regard.models.attention_factory import build_attention
from regard.models.encoders.recurrent import Recurrent
from regard.models.encoders.transformer import Transformer
from regard.tasks.vqa.model import Stacked
from regard.tree import select

from ...models.pictures.small import Tiny, blank, single, wider

QUESTIONS = pad([[4, 5, 6], [7, 8]])


def made(question=None, **options):
    return Stacked(Tiny(), question or Recurrent(12, 8), 5, 16, **options)


@pytest.mark.parametrize("question", [Recurrent(12, 8), Transformer(12, 8, heads=2)], ids=["recurrent", "transformer"])
def test_every_hop_says_where_it_looked_in_picture_and_question(question):
    answer = made(question)(blank(2, 16, 24), QUESTIONS, weights=True)
    assert answer.logits.shape == (2, 5)
    assert sorted(answer.weights) == ["hops.0.regions", "hops.0.words", "hops.1.regions", "hops.1.words"]
    assert answer.weights["hops.1.regions"].shape == (2, 1, 1, 6)
    assert_close(answer.weights["hops.0.words"].sum(-1), torch.ones(2, 1, 1))
    assert answer.weights["hops.0.words"][1, 0, 0, 2] == 0
    assert not made()(blank(), QUESTIONS).weights


def test_without_attention_to_words_a_hop_is_the_papers():
    model = made(words=partial(build_attention, "none"), hops=1).eval()
    pictures = blank(2, 16, 24)
    answer = model(pictures, QUESTIONS, weights=True)
    assert list(answer.weights) == ["hops.0.regions"]
    regions, score = model.regions(pictures).data, model.hops[0].regions.score
    asked = model.ask(model.question(QUESTIONS).final[0][:, -1])
    hidden = torch.tanh(score.W(asked[:, None, None]) + score.U(regions[:, None]))
    shares = (hidden * score.v.weight.flatten()).sum(-1).softmax(-1)  # batch 1 places
    assert_close(answer.weights["hops.0.regions"][:, 0], shares)
    found = (shares @ regions)[:, 0]
    both = F.layer_norm(asked, (16,)) * F.layer_norm(found, (16,))
    assert_close(answer.logits, model.output(torch.cat((found + asked, both), dim=-1)))


def test_padding_of_either_side_changes_nothing():
    model, pictures = made().eval(), blank()
    longer = Padded(F.pad(QUESTIONS.data, (0, 2), value=9), F.pad(QUESTIONS.keep, (0, 2)))
    assert_close(model(wider(pictures), longer).logits, model(pictures, QUESTIONS).logits, atol=1e-5, rtol=1e-5)


def test_questions_that_share_a_picture_get_the_answers_that_each_would_get_alone():
    model, pictures, about = made().eval(), blank(2, 16, 24), torch.tensor([1, 0, 1])
    questions = pad([[4, 5, 6], [7, 8], [9]])
    together = model(pictures, questions, about=about, weights=True)
    apart = model(select(pictures, about), questions, weights=True)
    assert_close(together.logits, apart.logits)
    assert_close(together.weights, apart.weights)


@pytest.mark.unhooked
def test_it_learns_to_answer_what_depends_on_both():
    draw = np.random.default_rng(0)
    train, valid = single(draw, 192, 16, 16), single(draw, 96, 16, 16)

    def drawn(pictures, _, colours, count=32):
        rows = torch.from_numpy(draw.permutation(len(colours))[:count])
        asked = torch.from_numpy(draw.integers(0, 3, count))  # is it red, green, blue? yes or no
        return select(pictures, rows), pad([[4, 5 + each] for each in asked.tolist()]), (asked == colours[rows]).long()

    model = Stacked(Tiny(16), Transformer(12, 16, heads=2), 2, 16)
    optimiser = torch.optim.AdamW(model.parameters(), 5e-3)
    for _ in range(150):
        pictures, questions, answers = drawn(*train)
        loss = single_label_loss(model(pictures, questions).logits, answers)
        optimiser.zero_grad()
        loss.total.div(loss.tokens).backward()
        optimiser.step()
    pictures, questions, answers = drawn(*valid)
    assert compute_accuracy(model.eval()(pictures, questions).logits, answers) > 0.9


def test_what_cannot_be_is_refused():
    with pytest.raises(ValueError, match="stacked attention needs 1 hop or more, got 0"):
        made(hops=0)
    with pytest.raises(ValueError, match=r"needs a size that is a multiple of 4, for the waves of places, got 18"):
        Stacked(Tiny(), Recurrent(12, 8), 5, 18)
    with pytest.raises(ValueError, match="stacked attention reads by an attention, and got none"):
        made(regions=partial(build_attention, "none"))
