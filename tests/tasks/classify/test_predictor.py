from dataclasses import replace

import pytest
import torch
from torch.testing import assert_close

from regard import tasks
from regard.config import AttentionPart
from regard.data.image.synthetic.boxes import Boxed
from regard.data.image.synthetic.scene import Scene, Thing
from regard.data.image.synthetic.shapes import SHAPES
from regard.data.image.types import ImageBatch, ImageExample
from regard.data.image.writing import png
from regard.data.records import Record
from regard.tasks.classify.codec import LabelCodec
from regard.tasks.classify.config import ClassifyData, ClassifyModel
from regard.tasks.classify.experiment import build
from regard.tasks.classify.predictor import Classifier, ClassifierOutput, labelled, mark_labels
from regard.tasks.classify.synthetic import SyntheticScene
from regard.tasks.classify.task import Config
from regard.viewer.io import load, save

CODEC = LabelCodec(("circle", "square", "star"), True, height=16, width=32)
CONFIG = Config(data=ClassifyData(height=16, width=32), model=ClassifyModel(hidden_size=16, depth=1))


def classifier(several=True, config=CONFIG):
    codec = replace(CODEC, several=several)
    torch.manual_seed(0)
    return Classifier(tasks.bind("classify"), config, codec, build(config, codec))


def output(*logits, weights=None):
    mask = torch.ones(len(logits), 8, dtype=torch.bool)
    return ClassifierOutput(torch.tensor(logits), {} if weights is None else {"queries.attention": weights}, mask)


def pictured(picture=None, labels=None):
    return ImageExample(
        torch.zeros(3, 16, 32) if picture is None else picture, record=Record("1.png", None, "input:1"), labels=labels
    )


def test_where_several_may_hold_all_do_that_are_likelier_than_not():
    [[found]] = classifier().decode([pictured()], output([1.0, -1.0, 2.0]), 1, False)
    assert (found.text, found.target) == ("star, circle", ["star", "circle"])
    [[none]] = classifier().decode([pictured()], output([-1.0, -1.0, -2.0]), 1, False)
    assert (none.text, none.score) == ("", 0.0)


def test_where_one_holds_it_is_the_likeliest_and_more_can_be_asked_for():
    [found] = classifier(several=False).decode([pictured()], output([0.0, 1.0, 2.0]), 2, False)
    assert [each.text for each in found] == ["star", "square"]
    assert_close(torch.tensor([each.score for each in found]), torch.tensor([0.0, 1.0, 2.0]).log_softmax(0)[[2, 1]])


def test_each_label_has_its_own_look():
    weights = torch.zeros(1, 2, 3, 8)
    weights[0, :, 0, 3], weights[0, :, 2, 5] = 1.0, 1.0
    [[found]] = classifier().decode([pictured()], output([1.0, -1.0, 2.0], weights=weights), 1, True)
    assert found.links == [(5, 0), (3, 1)]
    assert found.grid == (2, 4)
    assert found.source[5] == "2,2"


def test_pictures_of_two_sizes_in_one_batch_are_looked_at_as_each_alone(tmp_path):
    for name, width in (("a", 32), ("b", 8)):
        (tmp_path / f"{name}.png").write_bytes(png(torch.rand(3, 16, width)))
    model, paths = classifier(), [str(tmp_path / f"{name}.png") for name in "ab"]
    together = model.predict(paths, best=3, align=True)
    for path, found in zip(paths, together, strict=True):
        [alone] = model.predict([path], best=3, align=True)
        for one, other in zip(found, alone, strict=True):
            assert one.grid == other.grid
            assert_close(one.weights, other.weights)


def test_figures_are_by_hand():
    model = classifier()
    examples = [pictured(labels=[0]), pictured(labels=[])]
    model.forward = lambda batch, weights=False: output([10.0, 10.0, -10.0], [-10.0, -10.0, -10.0])
    figures = model.evaluate_examples(examples)
    assert figures["accuracy"].value == 50
    assert_close(figures["f1"].value, 100 * 2 / 3)
    assert_close(figures["loss"].value, 5.0, atol=1e-3, rtol=0)
    assert "looks" not in figures
    one = classifier(several=False)
    one.forward = lambda batch, weights=False: output([0.0, 9.0, 0.0], [9.0, 0.0, 0.0])
    assert one.evaluate_examples([pictured(labels=[1]), pictured(labels=[2])])["accuracy"].value == 50


def test_looks_counts_labels_whose_largest_weight_lies_on_such_a_thing():
    scene = Scene((Thing("circle", "red", 64, 64, 30), Thing("star", "blue", 192, 192, 30)))
    boxed = Boxed(scene, [SHAPES.index(each.shape) for each in scene.things], scene.boxes(), "drawn:1")
    model = classifier()
    model.codec = replace(CODEC, height=16, width=16)
    weights = torch.zeros(1, 1, 3, 4)
    weights[0, 0, :, 0] = 1.0  # all three look at the circle, in the top left corner
    found = ClassifierOutput(
        torch.tensor([[9.0, -9.0, 9.0]]), {"queries.attention": weights}, torch.ones(1, 4, dtype=torch.bool)
    )
    model.forward = lambda batch, weights=False: found
    figures = model.evaluate_examples([pictured(SyntheticScene(boxed, 16), [0, 2])])
    assert (figures["looks"].value, figures["accuracy"].value) == (50, 100)


def test_without_attention_nothing_is_said_of_looks():
    plain = replace(CONFIG, model=replace(CONFIG.model, attention=AttentionPart("none")))
    assert not classifier(config=plain).pointed(pictured(SyntheticScene(Boxed(Scene(()), [], Scene(()).boxes(), ""), 16)))


def test_a_trace_shows_the_likeliest_labels_first_over_the_picture(tmp_path):
    (tmp_path / "a.png").write_bytes(png(torch.rand(3, 16, 32)))
    model = classifier(several=False)
    trace = model.trace([str(tmp_path / "a.png")])
    save(trace, tmp_path / "t.attn.safetensors")
    [example] = load(tmp_path / "t.attn.safetensors").examples
    [best] = model.predict([str(tmp_path / "a.png")])
    assert example.axes["label"].labels[0] == best.text == example.steps[0].token
    assert example.axes["picture"].grid == (2, 4)
    assert example.attentions[-1].weights.shape == (4, 3, 8)


def test_labels_that_hold_are_marked_and_a_batch_without_any_is_refused():
    loader = classifier().codec.loader([pictured(labels=[0, 2]), pictured(labels=[])], 1 << 12)
    [(_, batch)] = loader.in_order()
    assert mark_labels(batch, 3).tolist() == [[True, False, True], [False] * 3]
    with pytest.raises(ValueError, match="a batch needs labels, and this one has only pictures"):
        labelled(ImageBatch(batch.source))
