import numpy as np
import pytest
import torch
from torch.testing import assert_close

from regard.data.image.batch import collate_images
from regard.tasks.classify.glimpse_model import Glimpses, sense
from regard.tasks.classify.loss import reinforce_loss

from ...models.pictures.small import blank, shape, wider


def test_a_glimpse_is_the_square_around_a_point():
    picture = torch.arange(64.0).view(1, 8, 8) / 64
    found = sense(collate_images([picture]), torch.tensor([[0.0, 0.0]]), 4, 1)
    assert_close(found[0], picture[:, 2:6, 2:6])
    found = sense(collate_images([picture]), torch.tensor([[0.5, -0.5]]), 4, 1)
    assert_close(found[0], picture[:, 0:4, 4:8])


def test_larger_scales_are_means_of_larger_squares():
    picture = torch.rand(2, 8, 8)
    found = sense(collate_images([picture]), torch.tensor([[0.0, 0.0]]), 4, 2)
    assert found.shape == (1, 4, 4, 4)
    assert_close(found[0, 2:], torch.nn.functional.avg_pool2d(picture[None], 2)[0])


def test_beyond_the_picture_there_is_nothing():
    found = sense(collate_images([torch.ones(1, 8, 8)]), torch.tensor([[-1.0, -1.0]]), 4, 1)[0, 0]
    assert found[:2].sum() == 0
    assert found[:, :2].sum() == 0
    assert_close(found[2:, 2:], torch.ones(2, 2))


def test_a_glimpse_is_where_it_should_be_in_bfloat16():
    picture = (torch.arange(1001) % 256 / 256).expand(1, 9, 1001)  # bfloat16 has each of these numbers
    exact = collate_images([picture])
    half = exact._replace(data=exact.data.bfloat16())
    points = torch.tensor([[0.8203125, 0.0]])
    found = sense(half, points.bfloat16(), 4, 2)
    assert found.dtype == torch.bfloat16
    assert torch.equal(found, sense(exact, points, 4, 2).bfloat16())


def test_boxes_and_cover_are_where_they_should_be_in_bfloat16():
    model, exact = Glimpses(3, side=4, size=16), collate_images([torch.zeros(1, 9, 1001)])
    half, points = exact._replace(data=exact.data.bfloat16()), torch.tensor([[[0.8203125, 0.0]]])
    assert torch.equal(model.boxes(half, points.bfloat16()), model.boxes(exact, points))
    assert torch.equal(model.cover(half, points.bfloat16()) > 0, model.cover(exact, points) > 0)


def test_points_are_of_each_picture_itself():
    picture = torch.rand(1, 8, 8)
    alone = sense(collate_images([picture]), torch.tensor([[0.3, -0.2]]), 4, 1)
    beside = sense(collate_images([picture, torch.rand(1, 12, 16)]), torch.tensor([[0.3, -0.2]] * 2), 4, 1)
    assert_close(beside[:1], alone)


@pytest.mark.parametrize("core", ["relu", "lstm"])
def test_it_looks_where_it_says(core):
    model = Glimpses(3, 3, side=4, scales=2, steps=5, size=16, core=core)
    found = model(pictures := blank(2, 16, 24), weights=True)
    assert found.logits.shape == (2, 3)
    assert found.points.shape == (2, 5, 2)
    assert found.log_probabilities.shape == found.baselines.shape == (2, 5)
    weights = found.weights["glimpses"]
    assert weights.shape == (2, 1, 5, 16 * 24)
    assert_close(weights.sum(-1), torch.ones(2, 1, 5))
    x = (weights[0, 0, 0].view(16, 24).sum(0) * (torch.arange(24) + 0.5)).sum() / 24
    assert abs(x - (found.points[0, 0, 0] + 1) / 2) < 1 / 24
    boxes = model.eval().glimpses(pictures)
    assert boxes.shape == (2, 5, 2, 4)
    assert_close(boxes[0, 0, :, 2:], torch.tensor([[4 / 24, 4 / 16], [8 / 24, 8 / 16]]))


def test_it_draws_while_training_and_is_sure_otherwise():
    model, pictures = Glimpses(3, 3, side=4, size=16), blank()
    assert not torch.equal(model(pictures).points, model(pictures).points)
    model.eval()
    assert torch.equal(model(pictures).points, model(pictures).points)
    assert model(pictures).log_probabilities.abs().sum() == 0
    assert_close(model(wider(pictures)).points, model(pictures).points)


def test_the_logarithm_is_that_of_the_normal_distribution():
    model = Glimpses(3, side=4, size=16, deviation=0.2)
    middle = torch.tensor([[0.1, -0.3]])
    point, log = model.sample_point(middle)
    assert_close(log, torch.distributions.Normal(middle, 0.2).log_prob(point).sum(-1))


@pytest.mark.unhooked
def test_it_learns_to_look_where_the_answer_is():
    draw = np.random.default_rng(0)

    def drawn(count):
        labels, pictures = draw.integers(0, 2, count), []
        for label in labels:  # a bright bar points to the corner in which a square or a cross tells the label
            picture, right = torch.zeros(1, 16, 16), bool(draw.integers(2))
            picture[0, 7:9, 6:10] = 0.5
            picture[0, 7:9, 9 if right else 6] = 1.0
            picture[0, shape(0 if label else 2, 13 if right else 3, 8, 5, 16, 16)] = 1.0
            pictures.append(picture)
        return collate_images(pictures), torch.from_numpy(labels)

    model = Glimpses(2, side=6, steps=3, size=64, deviation=0.2)
    optimiser = torch.optim.Adam(model.parameters(), 5e-3)
    for _ in range(120):
        pictures, labels = drawn(48)
        loss = reinforce_loss(model(pictures), labels)
        optimiser.zero_grad()
        loss.total.div(loss.tokens).backward()
        optimiser.step()
    pictures, labels = drawn(128)
    found = model.eval()(pictures)
    assert (found.logits.argmax(-1) == labels).float().mean() > 0.9


@pytest.mark.parametrize("name", ["side", "scales", "steps", "deviation"])
def test_what_has_to_be_above_zero_is(name):
    with pytest.raises(ValueError, match=f"glimpses need a {name} above 0, got 0"):
        Glimpses(3, **{name: 0.0 if name == "deviation" else 0})


@pytest.mark.unhooked
def test_a_core_that_is_not_known_is_refused():
    with pytest.raises(ValueError, match="core needs to be 'relu' or 'lstm', got 'gru'"):
        Glimpses(3, core="gru")


def test_pictures_of_other_channels_are_refused():
    with pytest.raises(
        ValueError, match=r"made for pictures of \(batch, 1, height, width\), got \(2, 3, 16, 24\); .* channels=3"
    ):
        Glimpses(3, side=4, size=16)(blank(2, 16, 24))


def test_pictures_are_standardised_first():
    plain, other = Glimpses(3, side=4, size=16), Glimpses(3, side=4, size=16, standard=((0.2,), (0.5,)))
    other.load_state_dict({**plain.state_dict(), "mean": other.mean, "spread": other.spread})
    picture = torch.rand(1, 8, 8)
    found = other.eval()(collate_images([picture])).logits
    assert_close(found, plain.eval()(collate_images([(picture - 0.2) / 0.5])).logits)


def test_glimpses_may_be_put_aside_unless_training():
    model, pictures = Glimpses(3, 3, side=4, size=16, steps=2).eval(), blank()
    offsets = torch.tensor([[1.0, -2.0], [0.0, 0.0]])
    assert_close(model(pictures, offsets=offsets).points[:, 0], model(pictures).points[:, 0] + torch.tensor([0.1, -0.2]))
    assert model(pictures, offsets=offsets * 99).points.abs().max() <= 1
