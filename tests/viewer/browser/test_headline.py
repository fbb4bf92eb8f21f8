"""The first line of a page says which model, what went in and what came out."""

import numpy as np
import pytest

from regard.data.axis import Text
from regard.viewer.html import render
from regard.viewer.trace import AttentionMap, Choice, Example, Trace

from ..invented import causal, forecast, picture, sound, translation


def headline(page) -> str:
    return " ".join(page.locator(".headline").inner_text().split())


@pytest.mark.parametrize(
    ("make", "wanted"),
    [
        (translation, "Model transformer In “Tom chase Jerry” → Out “汤姆追逐杰瑞”"),
        (picture, "Model caption In a picture in 4 × 4 patches → Out “a square”"),
        (sound, "Model speech In 0.5 s of sound → Out “h e l l o”"),
        (forecast, "Model forecast In load: 48 moments → Out ahead: 12 places"),
    ],
)
def test_the_headline_has_model_input_and_output(pages, make, wanted):
    assert headline(pages.show(render.html([make()]))) == wanted


def test_the_picture_that_went_in_stands_in_the_headline(pages):
    page = pages.show(render.html([picture()]))
    middle = "(() => { const it = document.querySelector('.headline-picture');"
    middle += " return [...it.getContext('2d').getImageData(it.width / 2, it.height / 2, 1, 1).data] })()"
    assert page.evaluate(middle) == [200, 120, 40, 255]


def test_two_models_have_one_input_and_an_output_of_each_in_chinese_too(pages):
    traces = [translation(name="additive"), translation(4, name="luong")]
    told = headline(pages.show(render.html(traces, language="zh")))
    assert told == "模型 A additive B luong 输入 “Tom chase Jerry” → 输出 A “汤姆追逐杰瑞” → 输出 B “汤姆追逐杰瑞”"


def test_what_a_language_model_continued_is_its_output(pages):
    words = Text.of(["<s>", "once", "upon", "a", "time"], special=(0,), lang="en")
    steps = (Choice(2, "a", -0.1), Choice(3, "time", -0.2))
    example = Example({"tokens": words}, (AttentionMap("h.0.attn", "tokens", "tokens", causal(2, 5)),), steps)
    assert headline(pages.show(render.html([Trace("gpt", (example,))]))) == "Model gpt In “once upon” → Out “a time”"


def test_a_long_text_is_cut_and_the_whole_is_one_press_away(pages):
    words = Text.of([f"word{place}" for place in range(60)])
    weights = np.full((1, 60, 60), 1 / 60, np.float32)
    example = Example({"tokens": words}, (AttentionMap("h.0.attn", "tokens", "tokens", weights),))
    page = pages.show(render.html([Trace("long", (example,))]))
    assert "word59" not in headline(page)
    page.get_by_text("all of it").click()
    assert "word59" in headline(page)
