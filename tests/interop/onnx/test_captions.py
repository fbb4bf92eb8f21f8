"""A model that tells what is on a picture, asked by its graphs."""

import pytest
import torch
from typer.testing import CliRunner

import regard
from regard.cli import app
from regard.data.axis import Image
from regard.data.image.batch import Images
from regard.data.image.synthetic.captioned import Drawing
from regard.data.image.writing import png
from regard.data.table import read
from regard.interop.onnx import write as writing
from regard.interop.onnx.engine import Onnx
from regard.interop.onnx.engine import opened as by_graphs
from regard.interop.onnx.sessions import ENCODER
from regard.tasks.caption import task
from regard.training.run_directory import STEP
from regard.viewer.trace import Trace

pytestmark = [pytest.mark.unhooked, pytest.mark.timeout(600)]

SIZES = [(32, 32), (16, 24), (9, 30), (31, 17), (1, 1), (80, 90)]
"""Heights and widths: whole places of the map and not, and larger than what is read."""


@pytest.fixture
def pictures(tmp_path):
    """Drawn pictures of different sizes."""
    scenes, found = task.synthesise(20, seed=1)[0], []
    for number, (height, width) in enumerate(SIZES):
        drawing = Drawing(scenes[number], 96, "english")()
        found.append(tmp_path / f"{number}.png")
        found[-1].write_bytes(png(drawing[:, :: 96 // min(height, 96), :: 96 // min(width, 96)][:, :height, :width]))
    return list(map(str, found))


@pytest.mark.parametrize("asked", [{}, {"beam": 4, "best": 3}, {"align": True}, {"beam": 3, "align": True}], ids=str)
def test_the_graphs_tell_of_pictures_of_all_sizes_what_the_model_does(captions, pictures, asked):
    ours, theirs = (regard.load(captions / each, "cpu") for each in ("run", "exported"))
    assert isinstance(theirs, Onnx)
    for right, found in zip(*(each.predict(pictures, **{"best": 1, **asked}) for each in (ours, theirs)), strict=True):
        assert [each.text for each in found] == [each.text for each in right]
        assert [each.score for each in found] == pytest.approx([each.score for each in right], abs=1e-5)
        assert [each.grid for each in found] == [each.grid for each in right]
        for one, other in zip(right, found, strict=True):
            if "align" in asked:
                assert other.weights.shape[1] == one.grid[0] * one.grid[1]
                torch.testing.assert_close(other.weights, one.weights, atol=1e-5, rtol=0)


def test_the_graphs_are_measured_as_the_model_is(captions):
    records = list(read(captions / "run" / "samples" / "captions.tsv", "1", "2"))
    right, found = (regard.load(captions / each, "cpu").evaluate(records) for each in ("run", "exported"))
    assert found["perplexity"].value == pytest.approx(right["perplexity"].value, rel=1e-4)
    assert found["chrf"] == right["chrf"]


def test_a_trace_of_graphs_has_the_picture_for_an_axis_and_the_decoders_looks(captions, pictures):
    right, found = (regard.load(captions / each, "cpu").trace(pictures[:2], beam=2) for each in ("run", "exported"))
    for one, other in zip(right.examples, found.examples, strict=True):
        assert isinstance(other.axes["source"], Image)
        assert other.axes["source"].grid == one.axes["source"].grid
        assert [step.token for step in other.steps] == [step.token for step in one.steps]
        looks = {look.name: look for look in one.attentions}
        assert [look.name for look in other.attentions] == ["decoder.0.self", "decoder.0.cross"]
        for look in other.attentions:
            assert look.weights == pytest.approx(looks[look.name].weights, abs=1e-3)
        assert other.beams.tokens == one.beams.tokens


def test_int8_answers_are_likely_to_the_model_too(captions, pictures):
    ours, small = (regard.load(captions / each, "cpu") for each in ("run", "small"))
    assert (captions / "small" / STEP).stat().st_size < (captions / "exported" / STEP).stat().st_size
    for right, found in zip(ours.predict(pictures), small.predict(pictures), strict=True):
        assert found.score == pytest.approx(right.score, abs=0.1)


@pytest.mark.parametrize("name", ["graphs", "model.zip"])
def test_the_command_exports_and_asks_what_it_wrote(captions, pictures, tmp_path, monkeypatch, name):
    given = {each: (captions / "exported" / each).read_bytes() for each in (ENCODER, STEP)}
    monkeypatch.setattr(writing.tracing, "encoder", lambda *_: given[ENCODER])
    monkeypatch.setattr(writing.tracing, "step", lambda *_: given[STEP])
    out, trace = tmp_path / name, tmp_path / "t.attn.safetensors"
    done = CliRunner().invoke(app, ["export", str(captions / "run"), "--to", "onnx", "--out", str(out)])
    assert done.exit_code == 0, done.output
    right = CliRunner().invoke(app, ["predict", str(captions / "run"), pictures[1], "--align", "--device", "cpu"])
    done = CliRunner().invoke(app, ["predict", str(out), pictures[1], "--align", "--trace", str(trace)])
    assert (right.exit_code, done.exit_code) == (0, 0), done.output
    assert done.stdout == right.stdout
    assert Trace.load(trace).example().axes["source"].grid == (2, 3)


def test_an_engine_makes_the_graphs_of_a_run_that_reads_pictures(captions, pictures, tmp_path, monkeypatch):
    run = tmp_path / "run"
    run.symlink_to(captions / "run")
    made = {each: (captions / "exported" / each).read_bytes() for each in (ENCODER, STEP)}
    monkeypatch.setattr(writing, "files", lambda trained, precision: made)
    found = by_graphs(run)
    assert isinstance(found, Onnx)
    right = regard.load(captions / "run", "cpu").predict(pictures)
    assert [each.text for each in found.predict(pictures)] == [each.text for each in right]


@pytest.mark.parametrize("size", [(40, 32), (32, 56), (12, 16)], ids=str)
def test_pictures_of_other_sizes_than_the_graphs_take_are_refused(captions, size):
    model, keep = regard.load(captions / "exported").model, torch.ones(1, *size, dtype=torch.bool)
    with pytest.raises(
        ValueError, match=rf"pictures of up to 32 x 48 pixels, in whole places of 8 x 8, got {size[0]} x {size[1]}; make"
    ):
        model.encode(Images(torch.zeros(1, 3, *size), keep))
