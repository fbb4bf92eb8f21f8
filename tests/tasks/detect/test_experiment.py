import json

import pytest
import torch

from regard import tasks
from regard.attention.score.additive import Additive
from regard.config import read
from regard.data.image.types import ImageExample
from regard.data.image.writing import png
from regard.data.records import Record
from regard.data.table import DataError
from regard.errors import ConfigError
from regard.losses.types import Progress
from regard.tasks._validate import buildable, heeded
from regard.tasks.detect.config import DetectData
from regard.tasks.detect.experiment import build_small, check_query_count, write_samples
from regard.tasks.detect.predictor import Detector
from regard.tasks.detect.task import Config, synthesise

TINY = [
    "data.samples=20",
    "model.hidden_size=16",
    "model.layers=1",
    "model.queries=8",
    "model.heads=2",
    "model.attention.heads=2",
]


def config(*overrides):
    return read(Config, overrides=[*TINY, *overrides])


def table(tmp_path, rows, name="train.jsonl"):
    (tmp_path / "a.png").write_bytes(png(torch.rand(3, 40, 60)))
    path = tmp_path / name
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return str(path)


def row(*labels, image="a.png"):
    return {"image": image, "labels": list(labels), "boxes": [[10, 10, 30, 30]] * len(labels)}


def test_without_data_it_draws_scenes_and_leaves_some_to_begin_with():
    made, report = tasks.experiment("detect", config("data.language=chinese"))
    assert (report.encoded, len(made.valid)) == (18, 2)
    assert set(made.codec.labels) <= {"圆", "正方形", "三角形", "五角星", "菱形", "十字", "圆环", "心形"}
    assert {"samples/1.png", "samples/objects.jsonl"} <= made.extra_files.keys()
    first = json.loads(made.extra_files["samples/objects.jsonl"].decode().splitlines()[0])
    assert first["image"] == "1.png"
    assert len(first["labels"]) == len(first["boxes"]) > 0


@pytest.mark.parametrize("noised", [0, 2])
def test_what_is_found_costs_and_what_is_noised_too(noised):
    made, _ = tasks.experiment("detect", config(f"model.denoising_groups={noised}"))
    batch = made.train.batch(0)
    loss = made.loss(made.model, batch, Progress(0, 1))
    loss.total.backward()
    assert loss.tokens == batch.labels.keep.sum()
    assert ("denoising" in loss.parts) == bool(noised)
    made.train.close()


def test_a_batch_with_nothing_on_it_teaches_that(tmp_path):
    path = table(tmp_path, [row("cat"), row(), row()])
    made, _ = tasks.experiment("detect", config(f"data.train={path}", f"data.valid={path}"))
    batch = made.train.batch(0).select_rows([0])
    empty = batch._replace(labels=batch.labels._replace(data=batch.labels.data[:, :0], keep=batch.labels.keep[:, :0]))
    loss = made.loss(made.model, empty._replace(boxes=torch.zeros(1, 0, 4)), Progress(0, 1))
    assert torch.isfinite(loss.total)
    assert loss.tokens == 1
    made.train.close()


def test_a_table_of_ones_own_is_trained_on_and_opened(tmp_path):
    path = table(tmp_path, [row("cat", "dog"), row("dog"), row()])
    chosen = config(f"data.train={path}", f"data.valid={path}")
    made, _ = tasks.experiment("detect", chosen)
    assert made.codec.labels == ("cat", "dog")
    assert not made.extra_files
    figures = made.evaluate(made.model.eval())
    assert figures.keys() == {"loss", "map50", "map"}
    from regard.alignment.heads import Head
    from regard.tasks.kinds.types import family

    assert isinstance(family(chosen).build_predictor(tasks.bind("detect"), chosen, made.codec, made.model, Head()), Detector)


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([row("cat"), row("cat", image="lost.png")], r"2 of 4 pictures are missing: .*:2 lost\.png"),
        ([row("cat") | {"boxes": [[10, 10, 30, 41]]}], r"1 errors .*:1 box 1 \(cat: 10, 10, 30, 41\) reaches outside"),
        ([row("cat") | {"boxes": []}], "needs a box for each of its 1 labels"),
    ],
)
def test_what_is_wrong_with_a_table_is_told_before_anything_is_trained(tmp_path, rows, said):
    path = table(tmp_path, rows)
    with pytest.raises(DataError, match=said):
        tasks.experiment("detect", config(f"data.train={path}", f"data.valid={path}"))


def test_a_label_that_only_valid_has_is_told(tmp_path):
    paths = table(tmp_path, [row("cat")]), table(tmp_path, [row("cow")], "valid.jsonl")
    with pytest.raises(DataError, match=r"1 labels were not there to be learned: .*valid\.jsonl:1 'cow'; there are cat"):
        tasks.experiment("detect", config(f"data.train={paths[0]}", f"data.valid={paths[1]}"))


def test_more_things_than_queries_are_told_with_their_line():
    crowded = ImageExample("a.png", record=Record("a.png", None, "t.jsonl:4"), labels=[0] * 9)
    check_query_count([crowded], 9)
    with pytest.raises(ConfigError, match=r"model\.queries=8 is the most .* t\.jsonl:4 has 9; set model\.queries=9 or more"):
        check_query_count([crowded], 8)


def test_an_attention_is_needed_and_any_will_do():
    with pytest.raises(ConfigError, match="a detector reads by an attention, and got none"):
        buildable(config("model.attention=none"))
    assert isinstance(build_small(config("model.attention=additive")).decoder[0].cross.score, Additive)


def test_heads_of_its_layers_count_and_settings_for_others_do_not():
    default = Config()
    heeded([config("model.heads=2", "model.feedforward_size=32")], default)
    with pytest.raises(ConfigError, match=r"train\.label_smoothing=0\.1 would change nothing: it needs a task that chooses"):
        heeded([config("train.label_smoothing=0.1")], default)
    with pytest.raises(ConfigError, match=r"data\.box_format=xywh would change nothing: it needs boxes of your own"):
        heeded([config("data.box_format=xywh")], default)
    with pytest.raises(ConfigError, match=r"model\.queries needs to be 1 or more, got 0"):
        config("model.queries=0")


def test_no_pictures_leave_no_samples():
    assert write_samples([]) == {}
    assert len(write_samples(synthesise(30, 0)[1])) == 3 + 1
    assert DetectData().columns == ("image", "labels", "boxes")
