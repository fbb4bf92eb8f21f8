"""Points from files, one small training, and what can be done with it."""

import json

import pytest
import torch

import regard
from regard.data.modality import SourceCodec, TargetCodec
from regard.errors import ConfigError, DataError
from regard.tasks.route.batch import RouteLoader, scale_points
from regard.tasks.route.codec import PointCodec
from regard.tasks.route.config import RouteData
from regard.tasks.route.experiment import generate_instances
from regard.tasks.route.records import read_instances

SMALL = {"max_steps": 2, "evaluate_every": 2, "checkpoint_every": 1000}
SIZES = {"hidden_size": 16, "layers": 1, "heads": 2, "feedforward_size": 16}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    out = tmp_path_factory.mktemp("route") / "run"
    data = {"points": 7, "samples": 12, "batch_size": 4}
    regard.train("route", out=out, data=data, model=SIZES, train=SMALL, quiet=True)
    return out


def test_a_run_is_compared_with_two_solvers(run):
    figures = json.loads((run / "metrics.json").read_text())["valid"]
    assert set(figures) == {"length", "gap", "two_opt.length", "nearest.length"}
    assert figures["two_opt.length"] <= figures["length"]
    metrics = regard.load(run).evaluate(str(run / "samples/instances.jsonl"))
    assert metrics["gap"].value == pytest.approx(figures["gap"], abs=1e-3)
    assert 0 <= metrics["gap_starts"].value <= metrics["gap"].value


def test_a_route_is_a_permutation_with_its_length_in_the_units_of_the_points(run, tmp_path):
    model = regard.load(run)
    path = tmp_path / "square.csv"
    path.write_text("x,y\n10,10\n10,30\n30,30\n30,10\n")
    answer = model.predict(str(path), align=True)
    assert sorted(answer.fields["route"]) == [0, 1, 2, 3]
    assert answer.fields["route"][0] == 0
    assert answer.fields["length"] >= 80
    assert answer.weights.shape == (3, 4)
    [example] = model.trace(str(path)).examples
    assert [attention.name for attention in example.attentions][-1] == "pointer"
    model.set_options({"samples": "50"})
    assert model.predict(str(path)).fields["length"] == pytest.approx(80)
    assert "gap_sampled" in model.evaluate(str(run / "samples/instances.jsonl"))
    with pytest.raises(ConfigError, match="--samples needs a number of routes"):
        model.set_options({"samples": "0"})
    with pytest.raises(ConfigError, match="an instance has one route"):
        model.predict(str(path), best=2)


def test_instances_of_several_sizes_are_trained_on_and_answered(tmp_path):
    path = tmp_path / "points.jsonl"
    rows = [{"points": torch.rand(5 + number % 2, 2).tolist()} for number in range(20)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    regard.train("route", out=tmp_path / "run", data={"train": str(path)}, model=SIZES, train=SMALL, quiet=True)
    records = read_instances(RouteData(), str(path))
    model = regard.load(tmp_path / "run")
    assert [len(answer.fields["route"]) for answer in model.predict(records[:3])] == [5, 6, 5]


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("a.csv", "1,2\n3,4\n", "has 2 points, and a route needs 3 to 500"),
        ("a.csv", "x,y\n1,2\n3,a\n", "a.csv:3 needs two numbers for a point"),
        ("a.csv", "1,2,3\n", "needs two numbers, x and y with a comma between them"),
        ("a.csv", "1,2\n", "has 1 point, and a route needs 3 to 500"),
        ("a.csv", "1,2\n3,inf\n", "has a point that is not finite, or beyond 1e30: '3, inf'; correct it"),
        ("a.jsonl", "[1, 2]\n", 'needs {"points"'),
        ("a.jsonl", "{\n", "is not JSON"),
        ("a.csv", "1,2\n" * 501, "has more than 500 points"),
    ],
)
def test_a_file_that_has_no_points_is_named(tmp_path, name, text, said):
    (tmp_path / name).write_text(text)
    with pytest.raises(DataError) as error:
        read_instances(RouteData(), str(tmp_path / name))
    assert said in str(error.value)


def test_the_codec_is_one_and_is_saved(tmp_path):
    codec = PointCodec(9)
    assert isinstance(codec, SourceCodec)
    assert isinstance(codec, TargetCodec)
    codec.save(tmp_path)
    assert PointCodec.load(tmp_path) == codec
    (tmp_path / "codec.json").write_text("{}")
    with pytest.raises(ValueError, match="a codec of points, format 1: it is of another format"):
        PointCodec.load(tmp_path)


def test_a_loader_gives_every_instance_once_with_those_of_its_size():
    examples = PointCodec().encode_all(generate_instances(5, 4, 0) + generate_instances(3, 6, 1)).examples
    loader = RouteLoader(examples, 2)
    parts = [(sorted(part.indices), part.batch.source.data.shape[1]) for part in loader.in_order()]
    assert sorted(index for indices, _ in parts for index in indices) == list(range(8))
    assert [points for _, points in parts] == [4, 4, 4, 6, 6]
    assert loader.batch(3).rows == loader.batch(3).rows


def test_points_are_scaled_into_the_unit_square_by_one_factor():
    scaled = scale_points(torch.tensor([[10.0, 5.0], [30.0, 15.0]], dtype=torch.float64))
    assert scaled.tolist() == [[0.0, 0.0], [1.0, 0.5]]
    assert scale_points(torch.ones(3, 2, dtype=torch.float64)).abs().max() == 0


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"train": {"starts": 1}}, "train.baseline=starts compares several routes"),
        ({"data": {"points": 2}}, "data.points needs to be 3 to 500"),
        ({"model": {"heads": 3}}, "heads need to divide the hidden size"),
        ({"train": {"label_smoothing": 0.1}}, "train.label_smoothing=0.1 would change nothing"),
        ({"train": {"monitor": "bleu"}}, "train.monitor needs to be one of length, gap"),
    ],
)
def test_settings_that_make_no_route_are_refused(tmp_path, settings, text):
    with pytest.raises(ConfigError, match=text.replace(".", r"\.")):
        regard.train("route", out=tmp_path / "run", quiet=True, **settings)
