import math

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from regard.data.batch import pad
from regard.models.encoders.recurrent import Recurrent
from regard.tasks.retrieve.dual_encoder import Towers
from regard.tasks.retrieve.loss import contrastive

from ...models.pictures.small import Tiny, blank, single, wider

TEXTS = pad([[4, 5, 6], [7, 8]])


def made(size=16):
    return Towers(Tiny(size), Recurrent(12, size), 8)


def test_both_towers_give_vectors_of_length_one_and_say_where_they_looked():
    model = made()
    seen, read = model.see(blank(2, 16, 24), weights=True), model.read(TEXTS, weights=True)
    for each in (seen, read):
        assert_close(each.vectors.norm(dim=-1), torch.ones(2))
    assert seen.weights["picture.query.attention"].shape == (2, 4, 1, 6)
    assert read.weights["text.query.attention"].shape == (2, 4, 1, 3)
    assert seen.encoded.grid == (2, 3)
    assert not model.see(blank()).weights


def test_logits_are_scaled_cosines():
    model, pictures = made().eval(), blank()
    cosines = model.see(pictures).vectors @ model.read(TEXTS).vectors.mT
    assert_close(model(pictures, TEXTS), cosines / 0.07)
    with torch.no_grad():
        model.heat.fill_(math.log(1e6))
    assert_close(model.scale, torch.tensor(100.0))


def test_padding_changes_nothing():
    model, pictures = made().eval(), blank()
    assert_close(model.see(wider(pictures)).vectors, model.see(pictures).vectors, atol=1e-5, rtol=1e-5)


@pytest.mark.unhooked
def test_it_learns_to_find_the_text_of_a_picture_it_has_not_seen():
    draw = np.random.default_rng(0)

    def drawn(count):
        pictures, _, colours = single(draw, count)
        return pictures, pad([[4 + each] for each in colours.tolist()]), colours

    model = made()
    optimiser = torch.optim.AdamW(model.parameters(), 5e-3)
    for _ in range(60):
        pictures, texts, colours = drawn(32)
        same = colours[:, None] == colours[None]
        loss = contrastive(model(pictures, texts), same)
        optimiser.zero_grad()
        loss.total.div(loss.tokens).backward()
        optimiser.step()
    pictures, _, colours = drawn(64)
    found = model.eval()(pictures, pad([[4], [5], [6]])).argmax(-1)
    assert (found == colours).float().mean() > 0.9
