import numpy as np
import pytest
import torch
from torch.testing import assert_close

from regard.data.image.batch import Images, collate_images
from regard.losses.classification import single_label_loss
from regard.tasks.classify.video_model import Frames

from ...models.pictures.small import Tiny, blank, shape


def clips(draw, count, frames=4):
    """Squares that move left or right."""
    labels, pictures = draw.integers(0, 2, count), []
    for label in labels:
        x, y = draw.uniform(6, 10, 2)
        for time in range(frames):
            away = (2 if label else -2) * (time - (frames - 1) / 2)
            pictures.append(shape(0, x + away, y, 4, 16, 16)[None].float())
    return collate_images(pictures), torch.ones(count, frames, dtype=torch.bool), torch.from_numpy(labels)


def test_it_says_where_it_looked_in_space_and_in_time():
    frames = torch.tensor([[True, True, True], [True, True, False]])
    answer = Frames(Tiny(), 4, heads=2)(blank(6, 16, 24), frames, weights=True)
    assert answer.logits.shape == (2, 4)
    space, time = answer.weights["space.attention"], answer.weights["time.attention"]
    assert space.shape == (2, 4, 3, 6)
    assert time.shape == (2, 4, 1, 3)
    assert_close(space.sum(-1), frames[:, None].float().expand(2, 4, 3))
    assert time[1, :, :, 2].abs().sum() == 0
    assert not Frames(Tiny(), 4)(blank(6), frames).weights


def test_a_frame_that_is_not_there_changes_nothing():
    model, pictures = Frames(Tiny(), 4).eval(), blank(4)
    three = Images(*(torch.cat((each[:2], each[:1], each[2:], each[3:])) for each in pictures))
    short = model(pictures, torch.ones(2, 2, dtype=torch.bool)).logits
    assert_close(model(three, torch.tensor([[True, True, False]] * 2)).logits, short, atol=1e-5, rtol=1e-5)


def test_a_frame_asks_its_own_places():
    model, frames = Frames(Tiny(), 4).eval(), torch.ones(2, 2, dtype=torch.bool)
    pictures = blank(4)
    before = model(pictures, frames, weights=True).weights["space.attention"]
    pictures.data[1] = 0
    after = model(pictures, frames, weights=True).weights["space.attention"]
    assert not torch.allclose(before[0, :, 1], after[0, :, 1])
    assert_close(before[0, :, 0], after[0, :, 0])
    assert_close(before[1], after[1])


@pytest.mark.unhooked
def test_it_learns_which_way_things_move():
    draw = np.random.default_rng(0)
    pictures, frames, labels = clips(draw, 64)
    model = Frames(Tiny(16, channels=1, depth=2), 2)
    optimiser = torch.optim.AdamW(model.parameters(), 3e-3)
    for _ in range(120):
        loss = single_label_loss(model(pictures, frames).logits, labels)
        optimiser.zero_grad()
        loss.total.div(loss.tokens).backward()
        optimiser.step()
    unseen, frames, wanted = clips(draw, 64)
    assert (model.eval()(unseen, frames).logits.argmax(-1) == wanted).float().mean() > 0.9


def test_pictures_that_are_not_whole_clips_are_refused():
    with pytest.raises(ValueError, match="2 clips of 3 frames need 6 pictures, clip after clip, got 5"):
        Frames(Tiny(), 4)(blank(5), torch.ones(2, 3, dtype=torch.bool))
