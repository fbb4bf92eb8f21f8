import warnings

import pytest

from regard.data.axis import Text
from regard.viewer.figure import figure, fonts

from .traces import raster, softmax, trace, translation


@pytest.fixture
def latin_alone(monkeypatch):
    """A machine with no font but matplotlib's own."""
    monkeypatch.setattr(fonts, "installed", lambda: frozenset({"DejaVu Sans"}))


@pytest.mark.parametrize(
    ("lang", "first"),
    [
        (None, "SC"),
        ("zh", "SC"),
        ("zh-Hans", "SC"),
        ("zh-Hant", "TC"),
        ("zh-TW", "TC"),
        ("ja", "JP"),
        ("ko-KR", "KR"),
        ("en", "SC"),
    ],
)
def test_a_language_takes_its_own_forms_of_han_characters(monkeypatch, lang, first):
    monkeypatch.setattr(
        fonts,
        "installed",
        lambda: frozenset({"DejaVu Sans", *(f"Noto Sans CJK {form}" for form in ("SC", "TC", "JP", "KR"))}),
    )
    assert fonts.families(lang)[:2] == ["DejaVu Sans", f"Noto Sans CJK {first}"]
    assert len(fonts.families(lang)) == 5


def test_only_installed_fonts_are_asked_for(latin_alone):
    assert fonts.families("ja") == ["DejaVu Sans"]


def test_missing_characters_are_found_and_joiners_are_not():
    assert fonts.missing("Tom 汤姆", ["DejaVu Sans"]) == {"汤", "姆"}
    assert fonts.missing("a\u200db\ufe0f c\n", ["DejaVu Sans"]) == set()


def test_one_warning_names_the_characters_and_the_package(latin_alone):
    with pytest.warns(UserWarning, match="placeholders") as caught:
        raster(figure(translation(), "heatmap"), dpi=40)
    assert len(caught) == 1
    text = str(caught[0].message)
    assert text.startswith(
        "no installed font has 7 characters of this figure, where placeholders stand for them: 。 姆 杰 汤 瑞 追 逐;"
    )
    assert "install fonts-noto-cjk, then delete fontlist-*.json in " in text


@pytest.mark.usefixtures("loose")
def test_many_missing_characters_are_counted_and_some_are_named(latin_alone):
    tokens = [chr(0x4E00 + place) for place in range(30)]
    with pytest.warns(UserWarning, match=r"has 30 characters of this figure.* \.\.\.; install fonts-noto-cjk"):
        figure(trace(softmax(1, 2, 30), Text.of(["a", "b"]), Text.of(tokens)), "lines")


@pytest.mark.parametrize(
    ("letter", "package"),
    [("あ", "fonts-noto-cjk"), ("한", "fonts-noto-cjk"), ("न", "fonts-noto-core"), ("🏺", "fonts-symbola")],
)
def test_each_script_has_its_package(latin_alone, letter, package):
    with pytest.warns(UserWarning, match=f"install {package}"):
        assert fonts.warn({"": [letter]}) == {letter}


@pytest.mark.usefixtures("loose")
def test_a_warning_about_text_of_the_readers_own_is_not_swallowed(latin_alone):
    with pytest.warns(UserWarning, match="placeholders"):
        drawn = figure(translation(), "heatmap")
    drawn.text(0.5, 0.5, "龍")
    with pytest.warns(UserWarning, match="Glyph 40845"):
        raster(drawn, dpi=40)


@pytest.mark.skipif("Noto Sans CJK SC" not in fonts.installed(), reason="needs the package fonts-noto-cjk")
def test_with_the_fonts_there_nothing_is_missing():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert figure(translation(), "heatmap").missing == set()
        arabic = Text.of(["السلام", "שלום", "こんにちは", "안녕"])
        raster(figure(trace(softmax(1, 4, 4), arabic, arabic), "heatmap"), dpi=40)
