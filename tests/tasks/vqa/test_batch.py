import torch

from regard.data.image.cache import ImageCache, shared
from regard.data.image.loader import ImageLoader
from regard.data.image.types import ImageExample
from regard.data.records import Record
from regard.tasks.vqa.batch import SharedPictureLoader, group_by_picture

PICTURES = [torch.full((3, 8, 8), value) for value in (0.0, 0.5, 1.0)]


class Draws:
    def __init__(self, number):
        self.same = number

    def __call__(self):
        return PICTURES[self.same]


def asked(picture, answer):
    return ImageExample(
        Draws(picture), record=Record("x", None, f"t:{answer}"), labels=[answer], question=[4 + answer] * answer
    )


EXAMPLES = [asked(0, 1), asked(1, 2), asked(0, 3), asked(2, 4), asked(0, 5)]


def made(seed=0):
    cache = ImageCache(group_by_picture(EXAMPLES, shared(EXAMPLES)))
    return SharedPictureLoader(ImageLoader(cache, batch_pixels=2 * 64, seed=seed, prefetch=0))


def test_examples_of_one_picture_are_one_group():
    groups = group_by_picture(EXAMPLES, shared(EXAMPLES))
    assert [[each.labels for each in group.record.examples] for group in groups] == [[[1], [3], [5]], [[2]], [[4]]]
    assert [group.record.where for group in groups] == ["t:1", "t:2", "t:4"]


def test_every_question_of_an_epoch_comes_once_with_its_own_picture():
    batches, found = made(), []
    assert batches.steps_per_epoch() == 2
    for step in range(2):
        batch = batches.batch(step)
        assert batch.rows == len(batch.source.data) <= 2
        for row, about in enumerate(batch.about.tolist()):
            answer = int(batch.labels.data[row, 0])
            question = batch.question.data[row][batch.question.keep[row]].tolist()
            assert question == [4 + answer] * answer
            assert batch.records[row].where == f"t:{answer}"
            [number] = [each.picture.same for each in EXAMPLES if each.labels == [answer]]
            assert torch.allclose(batch.source.data[about], PICTURES[number], atol=0.01)
            found.append(answer)
    assert sorted(found) == [1, 2, 3, 4, 5]
    batches.close()


def test_in_order_every_question_comes_once_with_its_number():
    found = {}
    for indices, batch in made().in_order():
        assert [batch.labels.data[row, 0] for row in range(len(indices))] == [EXAMPLES[index].labels[0] for index in indices]
        found |= dict(zip(indices, batch.about.tolist(), strict=True))
    assert sorted(found) == [0, 1, 2, 3, 4]


def test_a_picture_with_many_questions_comes_several_times():
    groups = group_by_picture(EXAMPLES, shared(EXAMPLES), most=2)
    assert [group.record.numbers for group in groups] == [(0, 2), (4,), (1,), (3,)]


def test_what_not_every_question_has_a_batch_has_not():
    bare = [EXAMPLES[0]._replace(labels=None), EXAMPLES[2]]
    [(indices, batch)] = SharedPictureLoader(ImageLoader(ImageCache(group_by_picture(bare, [0, 0])), prefetch=0)).in_order()
    assert (indices, batch.labels, batch.about.tolist()) == ([0, 1], None, [0, 0])


def test_a_batch_is_a_function_of_seed_and_step():
    first, again = made(), made()
    for step in (3, 0):
        assert first.batch(step).records == again.batch(step).records
    assert any(made(1).batch(step).records != first.batch(step).records for step in range(6))
