import numpy as np
import pytest
import torch
from torch.testing import assert_close

from regard.data.image.batch import collate_images
from regard.losses.classification import single_label_loss
from regard.tasks.classify.model import Labels, Pooled

from ...models.pictures.small import Tiny, blank, single, wider


def test_every_label_says_where_it_looked():
    answer = Labels(Tiny(), 5)(blank(2, 16, 24), weights=True)
    assert answer.logits.shape == (2, 5)
    assert answer.weights["queries.attention"].shape == (2, 4, 5, 6)
    assert_close(answer.weights["queries.attention"].sum(-1), torch.ones(2, 4, 5))
    assert not Labels(Tiny(), 5)(blank()).weights


def test_padding_changes_nothing():
    model, pictures = Labels(Tiny(), 5).eval(), blank()
    assert_close(model(wider(pictures)).logits, model(pictures).logits, atol=1e-5, rtol=1e-5)


def test_a_label_is_judged_by_its_own_context_alone():
    model = Labels(Tiny(), 3).eval()
    before = model(pictures := blank()).logits
    with torch.no_grad():
        model.queries.table[1] += 1
        model.weight[1] += 1
    after = model(pictures).logits
    assert_close(after[:, [0, 2]], before[:, [0, 2]])
    assert not torch.allclose(after[:, 1], before[:, 1])


@pytest.mark.unhooked
def test_it_learns_colours_and_looks_at_the_thing():
    draw = np.random.default_rng(0)
    pictures, _, colours = single(draw, 64)
    model = Labels(Tiny(16), 3)
    optimiser = torch.optim.AdamW(model.parameters(), 5e-3)
    for _ in range(60):
        loss = single_label_loss(model(pictures).logits, colours)
        optimiser.zero_grad()
        loss.total.div(loss.tokens).backward()
        optimiser.step()
    unseen, _, wanted = single(draw, 64)
    answer = model.eval()(unseen, weights=True)
    assert (answer.logits.argmax(-1) == wanted).float().mean() > 0.9
    weights = answer.weights["queries.attention"].mean(1)[torch.arange(64), wanted]  # of the right label
    thing = torch.nn.functional.max_pool2d(unseen.data.amax(1), 8).flatten(1) > 0
    share = (weights * thing).sum(1).mean()
    assert share > 1.3 * thing.float().mean()  # more than looking anywhere would give


def test_all_places_with_a_picture_count_alike():
    model = Pooled(Tiny(), 4).eval()
    pictures = collate_images([torch.rand(3, 16, 16), torch.rand(3, 8, 16)])
    answer = model(pictures, weights=True)
    encoded = model.encoder(pictures)
    weights = answer.weights["pooled"]
    assert weights.shape == (2, 1, 1, 4)
    assert weights[1].flatten().tolist() == [0.5, 0.5, 0, 0]
    assert_close(answer.logits, model.output((weights[:, 0] @ encoded.data)[:, 0]))
    assert not model(pictures).weights


def test_padding_does_not_count_in_the_mean_of_a_map():
    model, pictures = Pooled(Tiny(), 4).eval(), blank()
    assert_close(model(wider(pictures)).logits, model(pictures).logits, atol=1e-5, rtol=1e-5)
