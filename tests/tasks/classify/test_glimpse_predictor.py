from dataclasses import replace

import torch
from torch.testing import assert_close

from regard import tasks
from regard.data.image.types import ImageExample
from regard.data.image.writing import png
from regard.tasks.classify.codec import LabelCodec
from regard.tasks.classify.config import ClassifyData, ClassifyModel
from regard.tasks.classify.experiment import build
from regard.tasks.classify.glimpse_predictor import Glimpser, coarser, sample_offsets
from regard.tasks.classify.loss import average_probabilities
from regard.tasks.classify.task import Config
from regard.viewer.io import load, save

CODEC = LabelCodec(("a", "b", "c"), height=28, width=28, channels=1, stride=1, mean=(0.2,), deviation=(0.3,))
CONFIG = Config(
    data=ClassifyData(height=28, width=28, channels=1),
    model=ClassifyModel(hidden_size=16, glimpses=4, eval_episodes=1),
)


def glimpser(runs=1):
    config = replace(CONFIG, model=replace(CONFIG.model, eval_episodes=runs))
    torch.manual_seed(0)
    return Glimpser(tasks.bind("classify"), config, CODEC, build(config, CODEC))


def test_each_glimpse_is_a_map_that_can_be_read(tmp_path):
    (tmp_path / "a.png").write_bytes(png(torch.rand(1, 28, 28)))
    [found] = glimpser().predict([str(tmp_path / "a.png")], align=True)
    assert found.text in CODEC.labels
    assert found.target == [f"glimpse {number}" for number in (1, 2, 3, 4)]
    assert found.grid == (14, 14)
    assert_close(found.weights.sum(1), torch.ones(4))
    assert found.source[found.links[0][0]] in ("6,6", "6,7", "7,6", "7,7")  # the first begins in the middle, 8 pixels wide


def test_squares_of_places_are_added_up():
    maps = torch.arange(15.0).view(1, 3, 5)
    assert_close(coarser(maps, 2), torch.tensor([[[0 + 1 + 2 + 5 + 6 + 7 + 10 + 11 + 12.0, 3 + 4 + 8 + 9 + 13 + 14.0]]]))
    assert torch.equal(coarser(maps, 9), maps)


def test_an_answer_is_the_mean_over_ways_and_depends_on_its_picture_alone():
    model = glimpser(3)
    examples = [ImageExample(torch.rand(1, 28, 28)) for _ in range(2)]
    [(_, batch)] = CODEC.loader(examples, 1 << 12).in_order()
    found = model.infer(batch, weights=True)
    each = [model.model(batch.source, offsets=offsets).logits for offsets in sample_offsets(3, 4, torch.device("cpu"))]
    assert not torch.equal(each[0], each[1])
    assert_close(found.logits, average_probabilities(torch.stack(each)).detach())
    [(_, alone)] = CODEC.loader(examples[:1], 1 << 12).in_order()
    assert_close(model.infer(alone).logits, found.logits[:1])
    assert_close(sample_offsets(3, 4, torch.device("cpu"))[0], torch.zeros(4, 2))


def test_a_trace_has_the_way_over_the_pixels_and_what_was_said_at_its_end(tmp_path):
    (tmp_path / "a.png").write_bytes(png(torch.rand(1, 28, 28)))
    model = glimpser()
    save(model.trace([str(tmp_path / "a.png")]), tmp_path / "t.attn.safetensors")
    [example] = load(tmp_path / "t.attn.safetensors").examples
    assert example.axes["picture"].grid == (28, 28)
    assert example.axes["glimpse"].labels == ["glimpse 1", "glimpse 2", "glimpse 3", "glimpse 4"]
    [look] = [each for each in example.attentions if each.name == "glimpses"]
    assert look.weights.shape == (1, 4, 784)
    [best] = model.predict([str(tmp_path / "a.png")])
    assert (example.steps[0].query, example.steps[0].token) == (3, best.text)


def test_a_glimpse_is_of_no_label():
    assert not glimpser().pointed(ImageExample(torch.rand(1, 28, 28)))
