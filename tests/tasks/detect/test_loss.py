import pytest
import torch
from torch.nn import functional as F
from torch.testing import assert_close

from regard.data.image.batch import collate_images
from regard.metrics.boxes import generalised_iou
from regard.models.detections import Objects, collate_objects
from regard.tasks.detect.loss import SetLoss, focal
from regard.tasks.detect.model import Detected, Detector, Proposals

from ...models.pictures.small import Tiny

LEFT, RIGHT, SMALL = [0.25, 0.5, 0.3, 0.3], [0.75, 0.5, 0.3, 0.3], [0.5, 0.9, 0.1, 0.1]
NOTHING = Objects(torch.zeros(0, dtype=torch.long), torch.zeros(0, 4))


def objects(*things):
    return Objects(torch.tensor([label for label, _ in things]), torch.tensor([box for _, box in things]))


def detected(logits, boxes, layers=1, noised=None):
    logits, boxes = torch.tensor(logits), torch.tensor(boxes)
    proposals = Proposals(logits, boxes, torch.ones(logits.shape[:2], dtype=torch.bool))
    return Detected(logits.expand(layers, *logits.shape), boxes.expand(layers, *boxes.shape), proposals, noised)


def test_the_focal_loss_by_hand():
    assert_close(focal(torch.zeros(1), torch.ones(1)), torch.tensor([0.25 * 0.25 * 0.6931472]))
    assert_close(focal(torch.zeros(1), torch.zeros(1)), torch.tensor([0.75 * 0.25 * 0.6931472]))
    far = focal(torch.tensor([9.0, -9.0]), torch.tensor([1.0, 0.0]))
    assert far.max() < 1e-8


def test_each_thing_gets_the_query_that_fits_it():
    found = detected([[[-2.0, 2.0], [2.0, -2.0], [-2.0, -2.0]]], [[RIGHT, LEFT, SMALL]])
    there = collate_objects([objects((0, LEFT), (1, RIGHT))])
    chosen = SetLoss().match(found.logits[0], found.boxes[0], there)
    assert chosen.tolist() == [[1, 0]]
    loss = SetLoss(proposals=0.0)(found, there)
    assert loss.parts["distance"] == 0
    assert_close(loss.parts["overlap"], torch.tensor(0.0), atol=1e-6, rtol=0)
    right = F.one_hot(torch.tensor([[1, 0, 2]]), 3)[..., :2].float()
    assert_close(loss.total, 2 * focal(found.logits[0], right).sum())
    assert loss.tokens == 2


def test_the_cost_of_a_wrong_box_by_hand():
    found, there = detected([[[0.0]]], [[LEFT]]), collate_objects([objects((0, RIGHT))])
    loss = SetLoss(proposals=0.0)(found, there)
    box_errors = 1 - generalised_iou(torch.tensor(LEFT), torch.tensor(RIGHT))
    assert_close(loss.total, 2 * 0.25 * 0.25 * torch.tensor(2.0).log() + 5 * 0.5 + 2 * box_errors)


def test_every_layer_costs_and_the_log_is_about_the_last():
    there = collate_objects([objects((0, RIGHT))])
    one, two = (SetLoss(proposals=0.0)(detected([[[0.0]]], [[LEFT]], layers), there) for layers in (1, 2))
    assert_close(two.total, 2 * one.total)
    assert two.parts["distance"] == one.parts["distance"]


def test_batches_add_up():
    logits, boxes = torch.randn(3, 4, 2).tolist(), torch.rand(3, 4, 4).clamp(0.2, 0.8).tolist()
    there = [objects((0, LEFT), (1, RIGHT)), objects((1, SMALL)), NOTHING]
    whole = SetLoss()(detected(logits, boxes), collate_objects(there)).total
    parts = [SetLoss()(detected([logits[row]], [boxes[row]]), collate_objects([there[row]])).total for row in range(3)]
    assert_close(whole, sum(parts))


def test_queries_with_nothing_to_find_learn_to_say_nothing():
    logits = torch.zeros(1, 1, 2, 2, requires_grad=True)
    found = detected([[[0.0, 0.0]] * 2], [[LEFT, RIGHT]])._replace(logits=logits)
    loss = SetLoss()(found, collate_objects([NOTHING]))
    loss.total.backward()
    assert (logits.grad > 0).all()
    assert loss.tokens == 1


def test_a_thing_teaches_the_places_nearest_to_it_and_a_place_has_one_thing():
    boxes = [[[x / 10, 0.5, 0.2, 0.2] for x in range(1, 10)]]
    found = detected([[[0.0, 0.0]] * 9], boxes)
    there = collate_objects([objects((0, [0.3, 0.5, 0.2, 0.2]), (1, [0.7, 0.5, 0.2, 0.2]))])
    loss = SetLoss(near=3)
    owner, owned = loss.assign_places(found.logits[0], found.boxes[0], found.proposals.keep, there)
    assert owned[0].tolist() == [False, True, True, True, False, True, True, True, False]
    assert owner[0, [1, 2, 3]].tolist() == [0, 0, 0]
    assert owner[0, [5, 6, 7]].tolist() == [1, 1, 1]
    hidden = torch.ones(1, 9, dtype=torch.bool)
    hidden[0, 2] = False
    assert not loss.assign_places(found.logits[0], found.boxes[0], hidden, there)[1][0, 2]


def test_what_fills_a_batch_up_teaches_nothing():
    found = detected(torch.zeros(2, 4, 2).tolist(), torch.rand(2, 4, 4).clamp(0.2, 0.8).tolist())
    there = collate_objects([objects((0, LEFT), (1, RIGHT)), objects((1, SMALL))])
    moved = there._replace(boxes=there.boxes.clone(), labels=there.labels.clone())
    moved.boxes[1, 1], moved.labels[1, 1] = torch.tensor(LEFT), 1
    assert_close(SetLoss()(found, there).total, SetLoss()(found, moved).total)


def test_noise_that_is_seen_through_costs_nothing():
    there = collate_objects([objects((0, LEFT), (1, RIGHT)), objects((1, SMALL))])
    logits = (F.one_hot(there.labels, 2).float() * 40 - 20).repeat(1, 3, 1)[None]
    boxes = there.boxes.repeat(1, 3, 1)[None]
    clean = detected(torch.zeros(2, 2, 2).tolist(), [[LEFT, RIGHT], [SMALL, LEFT]], noised=(logits, boxes))
    assert SetLoss()(clean, there).parts["denoising"].abs() < 1e-5
    boxes = boxes.clone()
    boxes[0, 0, 2, 0] += 0.1  # the first thing of the second group
    dirty = clean._replace(noised=(logits, boxes))
    moved = 1 - generalised_iou(boxes[0, 0, 2], torch.tensor(LEFT))
    assert_close(SetLoss()(dirty, there).parts["denoising"], (5 * 0.1 + 2 * moved) / 3, atol=1e-5, rtol=1e-5)


def test_more_things_than_queries_are_refused():
    there = collate_objects([objects((0, LEFT), (1, RIGHT))])
    with pytest.raises(ValueError, match="a picture has 2 objects and the detector 1 queries, and each object needs one"):
        SetLoss()(detected([[[0.0, 0.0]]], [[LEFT]]), there)


def test_a_small_picture_beside_a_large_one_has_its_own_queries_alone():
    logits, boxes, there = torch.zeros(2, 3, 1), torch.tensor([[LEFT, RIGHT, SMALL]] * 2), [NOTHING, objects((0, SMALL))]
    real = torch.tensor([[True, True, True], [True, False, False]])
    assert SetLoss().match(logits, boxes, collate_objects(there)).tolist() == [[0], [2]]
    assert SetLoss().match(logits, boxes, collate_objects(there), real)[1].tolist() == [0]
    found, crowded = detected(logits.tolist(), boxes.tolist(), layers=2)._replace(real=real), objects((0, LEFT), (0, RIGHT))
    SetLoss()(found, collate_objects([crowded, objects((0, SMALL))]))
    with pytest.raises(ValueError, match="a picture has 2 objects and the detector 1 queries, and each object needs one"):
        SetLoss()(found, collate_objects([NOTHING, crowded]))


def test_a_detector_says_which_queries_are_real_and_what_is_too_much_is_refused():
    model = Detector(Tiny(), 3, 32, heads=4, queries=9, layers=1)
    small, large = torch.rand(3, 4, 4), torch.rand(3, 16, 16)
    there = objects((0, LEFT), (1, RIGHT))
    alone, beside = model(collate_images([small])), model(collate_images([small, large]))
    assert beside.real.sum(1).tolist() == [alone.logits.shape[2], 4] == [1, 4]  # a place is 8 pixels wide and high
    for found, things in ((alone, [there]), (beside, [there, NOTHING])):
        with pytest.raises(ValueError, match="a picture has 2 objects and the detector 1 queries"):
            SetLoss()(found, collate_objects(things))


@pytest.mark.parametrize("near", [0, -1])
def test_things_that_teach_no_place_are_refused(near):
    with pytest.raises(
        ValueError, match=f"near needs 1 place or more for each object, got {near}; proposals=0 trains no place"
    ):
        SetLoss(near=near)


def test_the_cost_of_each_picture_is_that_of_its_answer_alone():
    found = detected([[[2.0, -2.0], [-2.0, 2.0]]] * 2, [[LEFT, RIGHT], [LEFT, SMALL]], layers=2)
    there = collate_objects([objects((0, LEFT), (1, RIGHT)), objects((1, RIGHT))])
    loss = SetLoss(proposals=0.0)
    whole = [
        loss(Detected(*(part[-1:, row : row + 1] for part in found[:2]), found.proposals), alone).total
        for row, alone in enumerate(
            (collate_objects([objects((0, LEFT), (1, RIGHT))]), collate_objects([objects((1, RIGHT))]))
        )
    ]
    assert_close(loss.answer(found, there), torch.stack(whole))
