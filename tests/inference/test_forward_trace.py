from dataclasses import replace

import numpy as np
import pytest
import torch

from regard import tasks
from regard.data.axis import Image
from regard.data.image.writing import png
from regard.tasks.classify import experiment
from regard.tasks.classify.codec import LabelCodec
from regard.tasks.classify.predictor import Classifier
from regard.viewer.io import load, save

CODEC = LabelCodec(("dark", "light"), height=16, width=16)


def made(**changes):
    torch.manual_seed(0)
    found = tasks.find("classify").Config()
    config = replace(found, model=replace(found.model, hidden_size=8, **changes))
    return Classifier(tasks.bind("classify"), config, CODEC, experiment.build(config, CODEC))


@pytest.fixture
def picture(tmp_path):
    path = tmp_path / "a.png"
    path.write_bytes(png(torch.rand(3, 16, 12)))
    return str(path)


def test_each_label_looks_at_the_places_of_the_picture(picture, tmp_path):
    seeing = made()
    trace = seeing.trace([picture])
    [example] = trace.examples
    [attention_map] = example.attentions
    assert (attention_map.name, attention_map.query, attention_map.key, attention_map.weights.shape) == (
        "queries.attention",
        "label",
        "picture",
        (4, 2, 4),
    )
    assert np.allclose(attention_map.weights.sum(-1), 1, atol=1e-6)
    [answer] = seeing.predict([picture], align=True)
    assert example.axes["label"].labels[0] == answer.text  # the likeliest comes first
    assert np.allclose(answer.weights[0], attention_map.weights.mean(0)[0], atol=1e-6)
    axis = example.axes["picture"]
    assert isinstance(axis, Image)
    assert axis.grid == (2, 2)
    again = load(save(trace, tmp_path / "a.attn.safetensors"))
    assert np.array_equal(again.attention().weights, attention_map.weights)
    assert any(node.kind == "attention" for node in again.graph.nodes)


def test_patches_that_look_at_each_other_are_places_of_the_picture_too(picture):
    [example] = made(encoder="vit", depth=2).trace([picture]).examples
    inner = [attention_map for attention_map in example.attentions if attention_map.name.startswith("encoder.")]
    assert len(inner) == 2
    assert {(attention_map.query, attention_map.key) for attention_map in inner} == {("picture", "picture")}


def test_without_attention_all_places_count_alike(picture):
    [example] = made(attention=tasks.find("classify").Config().model.attention.__class__("none")).trace([picture]).examples
    [attention_map] = example.attentions
    assert attention_map.name == "pooled"
    assert np.allclose(attention_map.weights, 0.25)


def test_one_input_has_one_example(picture):
    assert [example.title for example in made().trace(picture).examples] == [picture]
