import torch

from regard.data.batch import pad
from regard.data.image.batch import collate_images
from regard.data.image.types import ImageBatch, ImageExample


def test_a_batch_goes_to_a_device_with_all_that_it_has():
    whole = ImageBatch(
        collate_images([torch.rand(1, 2, 2)]),
        pad([[1]]),
        ("a",),
        pad([[2]]),
        torch.rand(1, 1, 4),
        pad([[3]]),
        torch.ones(1, 1, dtype=torch.bool),
    ).to("meta")
    assert {whole.source.data.device.type, whole.target.data.device.type, whole.labels.keep.device.type} == {"meta"}
    assert {whole.boxes.device.type, whole.question.data.device.type, whole.frames.device.type} == {"meta"}
    assert whole.records == ("a",)


def test_what_a_batch_lacks_it_lacks_elsewhere_too():
    bare = ImageBatch(collate_images([torch.rand(1, 2, 2)]), records=(None,)).to("cpu")
    assert (bare.target, bare.labels, bare.boxes, bare.question, bare.frames) == (None,) * 5


def test_an_example_needs_nothing_but_its_picture():
    assert ImageExample("a.png") == ("a.png", None, None, None, None, None)


def test_examples_are_picked_with_all_that_they_have():
    labels = pad([[1, 2], [3]])
    whole = ImageBatch(
        collate_images([torch.rand(1, 2, 2), torch.rand(1, 2, 3)]),
        pad([[1, 2, 3], [4]]),
        ("a", "b"),
        labels,
        torch.rand(2, 2, 4),
    )
    assert whole.rows == 2
    picked = whole.select_rows([1])
    assert picked.source.data.shape == (1, 1, 2, 3)
    assert (picked.target.data.tolist(), picked.labels.data.tolist(), picked.records) == ([[4]], [[3]], ("b",))
    assert torch.equal(picked.boxes, whole.boxes[1:, :1])


def test_of_a_clip_all_frames_are_picked():
    frames = torch.tensor([[True, True], [True, False]])
    clips = ImageBatch(collate_images([torch.full((1, 2, 2), value) for value in (0.1, 0.2, 0.3, 0.4)]), frames=frames)
    assert clips.rows == 2
    picked = clips.select_rows([1])
    torch.testing.assert_close(picked.source.data[:, 0, 0, 0], torch.tensor([0.3, 0.4]))
    assert picked.frames.tolist() == [[True, False]]


def test_a_picture_is_picked_with_all_of_its_questions():
    whole = ImageBatch(
        collate_images([torch.full((1, 2, 2), value) for value in (0.1, 0.2, 0.3)]),
        records=("a", "b", "c", "d"),
        labels=pad([[1], [2], [3], [4]]),
        question=pad([[5], [6, 7], [8], [9]]),
        about=torch.tensor([0, 2, 1, 2]),
    )
    assert whole.rows == 3
    picked = whole.select_rows([2, 0])
    torch.testing.assert_close(picked.source.data[:, 0, 0, 0], torch.tensor([0.3, 0.1]))
    assert (picked.about.tolist(), picked.records) == ([0, 0, 1], ("b", "d", "a"))
    assert (picked.labels.data.tolist(), picked.question.data.tolist()) == ([[2], [4], [1]], [[6, 7], [9, 0], [5, 0]])
    assert whole.select_rows([1]).question.data.tolist() == [[8]]
