"""Exports that run without regard: by the code in their README.md."""

import json
import shutil

import onnx
import pytest
import torch

import regard
from regard.data.image.writing import png
from regard.errors import DamagedError
from regard.interop.onnx.sessions import ENCODER
from regard.interop.standalone import CONFIG, README
from regard.training.run_directory import STEP

from ..readme import answers, run

pytestmark = [pytest.mark.unhooked, pytest.mark.timeout(600)]
SOURCES = ["Tom chases Jerry", "a cat sees the dog", "Tom chases a zebra", "Tom " * 300]
"""Known words, one unknown word, and more than the model reads."""


@pytest.mark.filterwarnings("ignore:input.4 has more than the 255 tokens that the model reads")
def test_the_page_answers_as_the_run_does(home, exported):
    expected = [answer.text for answer in regard.load(home / "run", "cpu").predict(SOURCES, beam=1)]
    assert answers(exported, *SOURCES) == expected
    assert len(answers(exported)) == 1


def test_in_int8_it_is_the_page_of_those_graphs(small, tmp_path):
    shutil.copytree(small, tmp_path / "small")
    done = run(tmp_path / "small")
    assert "encoder.onnx is not the file of this export" in done.stderr  # graphs of another precision than export.json says


def test_sources_without_anything_known_and_strange_ids_are_errors(exported):
    for text in ("", "zebra", "  "):
        assert f"ValueError: the model knows nothing in {text!r}" in run(exported, text).stderr
    for ids in ("[4, 100000, 2]", "[-1, 2]", "[4, 5]", "[]"):
        done = run(exported, "Tom chases Jerry", more=f"generate({ids})")
        assert done.returncode != 0, ids
    assert "a source has ids below" in run(exported, more="generate([4, 100000, 2])").stderr


def test_the_tokenizer_of_another_export_is_an_error_for_the_page_and_for_regard(exported, tmp_path):
    shutil.copytree(exported, tmp_path / "other")
    path = tmp_path / "other" / "source_tokenizer.json"
    path.write_text(path.read_text(encoding="utf-8").replace('"Tom"', '"Tim"'), encoding="utf-8")
    assert "ValueError: source_tokenizer.json is not the file of this export" in run(tmp_path / "other").stderr
    with pytest.raises(DamagedError, match=r"source_tokenizer\.json"):
        regard.load(tmp_path / "other")


def test_export_json_has_what_a_search_needs(exported):
    table = json.loads((exported / CONFIG).read_text())
    assert table["special_tokens"] == {"pad": 0, "bos": 1, "eos": 2, "unk": 3}
    codec = regard.load(exported).codec
    assert table["vocabulary"] == {"source": codec.source.size, "target": codec.target.size}
    assert table["search"]["max_length"] == 200
    assert (table["search"]["max_length_ratio"], table["search"]["max_length_slack"]) == (3.0, 10)
    assert {ENCODER, STEP} < table["files"].keys()
    assert README not in table["files"]


def test_the_open_axes_of_the_graphs_have_names(exported, captions):
    def axes(path):
        graph = onnx.load(path).graph
        return {
            value.name: [size.dim_param or size.dim_value for size in value.type.tensor_type.shape.dim]
            for value in (*graph.input, *graph.output)
        }

    assert axes(exported / ENCODER)["source"] == ["batch", "source"]
    step = axes(exported / STEP)
    assert step["token"] == ["batch", "beams"]
    assert step["keep"] == ["batch", "source"]
    assert step["log_probabilities"][:2] == ["batch", "beams"]
    assert step["weights.decoder.cross"] == ["batch", "beams", 1, "source"]
    assert axes(captions / "exported" / ENCODER)["source"] == ["batch", 3, "height", "width"]
    pictured = axes(captions / "exported" / STEP)
    assert pictured["keep"] == ["batch", "rows", "columns"]
    assert any("target" in sizes for name, sizes in pictured.items() if name.startswith("state."))


def test_the_page_of_a_model_of_images_tells_of_them(captions, tmp_path):
    paths = []
    for number, (height, width) in enumerate([(32, 48), (9, 30)]):
        picture = torch.randint(0, 256, (3, height, width), generator=torch.Generator().manual_seed(number))
        paths.append(str(tmp_path / f"{number}.png"))
        (tmp_path / f"{number}.png").write_bytes(png(picture.to(torch.uint8)))
    expected = [answer.text for answer in regard.load(captions / "run", "cpu").predict(paths, beam=1)]
    assert answers(captions / "exported", *paths) == expected
    assert len(answers(captions / "exported")) == 1
    more = "generate(np.zeros((33, 48, 3), np.uint8))"
    assert "an image has bytes of height x width x channels" in run(captions / "exported", more=more).stderr
