import torch

from regard.data.batch import pad
from regard.data.image.batch import collect
from regard.data.image.pictured import PictureBatch, Pictured


def test_a_batch_goes_to_a_device_with_all_that_it_has():
    whole = PictureBatch(
        collect([torch.rand(1, 2, 2)]),
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
    bare = PictureBatch(collect([torch.rand(1, 2, 2)]), records=(None,)).to("cpu")
    assert (bare.target, bare.labels, bare.boxes, bare.question, bare.frames) == (None,) * 5


def test_an_example_needs_nothing_but_its_picture():
    assert Pictured("a.png") == ("a.png", None, None, None, None, None)
