import io
import re
import zlib
from dataclasses import replace

import pytest
from PIL import Image as Picture

from regard.errors import UnwritableError
from regard.viewer.figure import figure

from .traces import causal, peak, softmax, trace, translated, translation, words


def written(drawn, kind, **options):
    page = io.BytesIO()
    drawn.savefig(page, format=kind, **options)
    return page.getvalue()


def test_a_png_has_300_dots_per_inch_and_says_what_it_shows(tmp_path):
    translated().savefig(tmp_path / "map.png")
    with Picture.open(tmp_path / "map.png") as page:
        assert page.width == 975
        assert page.info["dpi"] == pytest.approx((300, 300), abs=0.1)
        assert page.text["Title"] == "tiny: decoder.cross, mean of heads"
        assert "attention weights from 0 to 1, queries down, keys across" in page.text["Description"]


def test_the_text_of_an_svg_is_text_in_latin_and_in_chinese():
    page = written(translated(), "svg").decode()
    shown = re.findall(r"<text[^>]*>([^<]*)</text>", page)
    assert {"汤姆", "追逐", "chases", "source (keys)", "target (queries)"} <= set(shown)
    assert "&lt;eos&gt;" in shown
    assert page.count("<image") == 2, "the map and its bar"
    assert "tiny: decoder.cross" in page


def test_the_letters_of_an_svg_become_outlines_when_asked():
    page = written(figure(translation(), "heatmap", text="path"), "svg").decode()
    assert "<text" not in page
    assert "<image" in page


def test_a_pdf_has_real_fonts_and_one_image_of_the_map():
    page = written(translated(), "pdf")
    assert b"/Type /Font /Subtype /Type3" not in page
    assert b"/Subtype /Type0" in page or b"/FontFile2" in page
    assert b"Type42" in page or b"/CIDFontType2" in page or b"/CIDFontType0" in page
    assert page.count(b"/Subtype /Image") == 2, "the map and its bar"
    assert "tiny".encode("utf-16-be") in page or b"tiny" in page


@pytest.mark.usefixtures("loose")
@pytest.mark.parametrize("kind", ["png", "svg", "pdf"])
def test_equal_figures_are_equal_files(kind):
    one, other = (figure(trace(softmax(1, 2, 2), words(2), words(2)), "heatmap") for _ in range(2))
    assert written(one, kind, dpi=60) == written(other, kind, dpi=60)


def test_a_notebook_gets_a_picture():
    assert translated()._repr_png_().startswith(b"\x89PNG")


def test_formats_without_metadata_are_written_too():
    assert written(translated(), "jpg", dpi=50)[:2] == b"\xff\xd8"


def test_a_figure_that_was_made_smaller_has_fewer_labels():
    drawn = figure(causal(20), "heatmap", width="page")
    drawn.draw_without_rendering()
    before = len(drawn.axes[0].get_xticklabels())
    drawn.set_size_inches(2, 2)
    drawn.draw_without_rendering()
    assert before == 20
    assert 1 < len(drawn.axes[0].get_xticklabels()) < 15


def test_two_thousand_by_two_thousand_says_that_it_was_reduced_and_stays_one_image():
    drawn = peak(2000, 2000)
    page = written(drawn, "pdf")
    assert page.count(b"/Subtype /Image") == 2
    assert len(page) < 300_000
    picture = Picture.open(io.BytesIO(written(drawn, "png")))
    assert re.search(r"2000 x 2000 weights reduced to \d+ x \d+ by maximum", picture.text["Description"])
    assert "reduced" not in Picture.open(io.BytesIO(written(translated(), "png", dpi=60))).text["Description"]


@pytest.mark.usefixtures("loose")
def test_text_in_a_pdf_can_be_searched():
    """The words of a text are there as characters: the font maps its glyphs back to them."""
    page = written(figure(trace(softmax(1, 2, 2), words(2), words(2)), "heatmap"), "pdf")
    maps = [zlib.decompress(part) for part in re.findall(rb"stream\r?\n(.*?)\r?\nendstream", page, re.S) if part[:1] == b"x"]
    assert any(b"begincmap" in each for each in maps)


@pytest.mark.parametrize("kind", ["png", "svg", "pdf"])
def test_a_file_of_a_figure_appears_whole_or_not_at_all(tmp_path, monkeypatch, kind):
    path = tmp_path / f"map.{kind}"
    translated().savefig(path)
    whole = path.read_bytes()
    assert whole.startswith({"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}[kind])

    def fail(handle):
        raise OSError(5, "Input/output error")

    monkeypatch.setattr("os.fsync", fail)
    with pytest.raises(UnwritableError, match=r"cannot write .*map.*: Input/output error; choose a place that can be"):
        translated().savefig(str(path))
    assert path.read_bytes() == whole
    assert [each.name for each in tmp_path.iterdir()] == [path.name]


def test_a_name_that_is_not_utf8_is_spelt_in_the_metadata(tmp_path):
    drawn = figure(replace(translation(), name="run\udcff"), "heatmap")
    drawn.savefig(tmp_path / "map.png")
    with Picture.open(tmp_path / "map.png") as page:
        assert page.text["Title"] == "run\\udcff: decoder.cross, mean of heads"
    assert r"run\udcff: decoder.cross" in written(drawn, "svg").decode()
    assert not drawn.missing & {"\udcff"}
