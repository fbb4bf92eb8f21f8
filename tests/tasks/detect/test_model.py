from functools import partial

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from regard.data.image.batch import collate_images
from regard.metrics.detection import average_precision
from regard.models.attention_factory import build_attention
from regard.models.detections import Objects, add_noise, collate_objects
from regard.tasks.detect.loss import SetLoss
from regard.tasks.detect.model import Detector, Head, detections, within

from ...models.pictures.small import Tiny, blank, scene, wider


def made(**options):
    return Detector(Tiny(), 3, 32, heads=4, **{"queries": 5, "layers": 2} | options)


def test_every_query_says_where_it_looked():
    found = made()(blank(2, 16, 24), weights=True)
    assert found.logits.shape == (2, 2, 5, 3)
    assert found.boxes.shape == (2, 2, 5, 4)
    assert sorted(found.weights) == ["decoder.0.cross", "decoder.1.cross"]
    assert found.weights["decoder.1.cross"].shape == (2, 4, 5, 6)
    assert_close(found.weights["decoder.1.cross"].sum(-1), torch.ones(2, 4, 5))
    assert not made()(blank()).weights


def test_padding_changes_nothing():
    model, pictures = made(queries=20).eval(), blank(2, 16, 24)  # more queries than there are places
    found, again = model(pictures), model(wider(pictures))
    real = found.logits[-1].max(-1).values > -30
    assert real.sum(1).tolist() == [6, 6]
    for one, other in zip(detections(found, 0.0, 6), detections(again, 0.0, 6), strict=True):
        assert_close(one.scores, other.scores, atol=1e-5, rtol=1e-4)
        assert_close(one.boxes, other.boxes, atol=1e-5, rtol=1e-4)


def test_what_comes_with_noise_does_not_reach_who_searches():
    model, pictures = made().eval(), blank()
    objects = collate_objects(
        [Objects(torch.tensor([0, 1]), torch.rand(2, 4)), Objects(torch.tensor([2]), torch.rand(1, 4))]
    )
    found = model(pictures, noised=add_noise(objects, 3, groups=3))
    assert found.noised[0].shape == (2, 2, 6, 3)
    assert found.noised[1].shape == (2, 2, 6, 4)
    assert_close(found.logits, model(pictures).logits)
    assert model(pictures).noised is None


def test_pictures_without_things_have_no_noise():
    nothing = collate_objects([Objects(torch.zeros(0, dtype=torch.long), torch.zeros(0, 4))] * 2)
    found = made()(blank(), noised=add_noise(nothing, 3))
    assert found.noised is None


def test_detections_come_surest_first_with_their_queries():
    found = made()(blank(), weights=True)
    found.logits[-1, 0, :, 1] = torch.tensor([-9.0, 2.0, -9.0, 3.0, 0.0])
    first = detections(found, least=0.6)[0]
    assert first.queries.tolist() == [3, 1]
    assert first.labels.tolist() == [1, 1]
    assert_close(first.scores, torch.tensor([3.0, 2.0]).sigmoid())
    assert_close(first.boxes[0], within(found.boxes[-1, 0, 3]))
    assert len(detections(found, least=0.6, most=1)[0].labels) == 1


def test_before_anything_is_learned_boxes_stand_at_their_places_and_classes_are_rare():
    model = made()
    found = model(blank(1, 16, 24))
    assert_close(found.proposals.boxes[0, :, 2:], torch.full((6, 2), 0.1))
    assert_close(found.proposals.boxes[0, 0, :2], torch.tensor([4 / 24, 4 / 16]))
    assert found.logits.sigmoid().mean() < 0.1


def test_any_attention_may_read_the_map():
    found = made(attention=partial(build_attention, "additive"))(blank(), weights=True)
    assert found.weights["decoder.0.cross"].shape == (2, 1, 5, 6)


def test_a_box_is_corrected_in_units_of_itself():
    head, boxes = Head(8, 2), torch.tensor([[[0.5, 0.5, 0.2, 0.4], [0.2, 0.3, 0.1, 0.1]]])
    data = torch.zeros(1, 2, 8)
    assert_close(head(data, boxes)[1], boxes)
    with torch.no_grad():
        head.box[-1].bias.copy_(torch.tensor([0.5, -0.25, torch.tensor(2.0).log(), 0.0]))
    assert_close(head(data, boxes)[1], torch.tensor([[[0.6, 0.4, 0.4, 0.4], [0.25, 0.275, 0.2, 0.1]]]))
    assert_close(within(torch.tensor([-0.1, 1.2, 0.0, 3.0])), torch.tensor([0.0, 1.0, 1e-3, 1.0]))


@pytest.mark.unhooked
def test_it_learns_to_find_things_by_heart():
    draw = np.random.default_rng(0)
    scenes = [scene(draw) for _ in range(6)]
    pictures, objects = collate_images([picture for picture, _ in scenes]), collate_objects([there for _, there in scenes])
    model, loss = Detector(Tiny(24), 3, 32, queries=12, layers=2, heads=4), SetLoss()
    optimiser = torch.optim.AdamW(model.parameters(), 3e-3)
    for _ in range(100):
        cost = loss(model(pictures, noised=add_noise(objects, 3, groups=2)), objects)
        optimiser.zero_grad()
        cost.total.div(cost.tokens).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
    with torch.no_grad():
        found = detections(model.eval()(pictures))
    assert average_precision(found, [there for _, there in scenes], 3).mean > 0.9


def test_sizes_that_cannot_be_are_refused():
    with pytest.raises(ValueError, match=r"a detector needs a size that is a multiple of 8, .* got 36"):
        Detector(Tiny(), 3, 36)
    with pytest.raises(ValueError, match="needs 1 class, query and layer or more, got 3 classes, 5 queries and 0 layers"):
        made(layers=0)
