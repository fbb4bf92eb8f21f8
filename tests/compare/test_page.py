import re

import pytest

from regard.compare.page import html

from .conftest import compared, done, lost

TWO = ("model.attention", "model.decoder")
EVIL = "</script><script>alert(1)</script>"


@pytest.fixture
def comparison():
    outcomes = [done("none", d, seed=s, bleu=b + s, test=b) for d, b in (("rnn", 10.0), ("cnn", 9.0)) for s in (0, 1)]
    outcomes += [done("additive", d, seed=s, bleu=b + s, test=b) for d, b in (("rnn", 30.0), ("cnn", 31.0)) for s in (0, 1)]
    outcomes += [lost(EVIL, d, reason=EVIL, seed=s) for d in ("rnn", "cnn") for s in (0, 1)]
    return compared(*outcomes, settings=TWO, jobs=2, beam=5)


def test_the_page_says_what_was_found_and_what_the_spread_leaves_of_it(comparison):
    page = html(comparison)
    assert "6 combinations × 2 seeds: 8 of 12 trained, 2 at a time, beam 5" in page
    assert "Best is <b>additive · cnn</b>: test BLEU 31.000 ± 0.000. Indistinguishable within the spread: none." in page
    close = "Indistinguishable within the spread: additive · rnn."
    assert f"Best is <b>additive · cnn</b>: valid BLEU 31.50 ± 0.71, valid loss 68.50 ± 0.71. {close}" in page
    assert "these seeds do not distinguish the two" in page
    assert "凭这些种子无法区分二者" in page


def test_one_training_each_is_told_to_be_no_more_than_that():
    page = html(compared(done("none", bleu=10.0), done("additive")))
    assert "what a seed changes is not known, and a difference may be chance" in page
    assert "Not told apart" not in page
    assert "2 combinations × 1 seed: 2 of 2 trained<" in page


def test_a_page_on_which_nothing_is_trained_yet_is_a_page():
    page = html(compared(lost("none", state="waiting", reason=None)))
    assert "not trained yet" in page
    assert "What did not train" not in page


def test_names_and_reasons_are_no_markup(comparison):
    page = html(comparison)
    assert EVIL not in page
    assert page.count("<script>") == 1
    assert "&lt;/script&gt;&lt;script&gt;alert(1)" in page
    assert html(compared(done("\ud800"))).encode("utf-8")


def test_the_page_runs_its_own_script_alone_and_asks_for_nothing(comparison):
    page = html(comparison)
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)[1]
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe" not in policy
    assert not re.search(r"https?://|src=|href=|url\(|@import| style=| on\w+=", page)


def rows(page):
    return page.locator("#grid tbody th").all_inner_texts()


def test_the_page_sorts_shows_and_hides_and_speaks_two_languages(comparison, watched):
    page = watched.show(html(comparison))
    assert page.locator("h1").inner_text().startswith("translate")
    shown = "#grid thead tr:nth-child(2) th:visible"
    assert page.locator(shown).count() == 2 * 5, "test BLEU, valid BLEU and three costs in each group"
    page.locator("#grid button[data-sort='0-0']").click()
    assert rows(page) == ["additive", "none", EVIL], "the best first, what has no number last"
    page.locator("#grid button[data-sort='0-0']").click()
    assert rows(page) == ["none", "additive", EVIL]
    assert page.locator("#grid th[aria-sort]").get_attribute("aria-sort") == "ascending"
    page.locator("#grid button[data-sort='r0']").click()
    assert rows(page)[1:] == ["additive", "none"]
    page.locator("input[data-column='2']").click()
    assert page.locator(shown).count() == 2 * 6
    assert [each.get_attribute("colspan") for each in page.locator("#grid thead th[data-span]").all()] == ["6", "6"]
    page.locator("nav button", has_text="中文").click()
    assert page.locator("html").get_attribute("lang") == "zh-CN"
    assert "种组合" in page.locator("body").inner_text()
    assert "combinations" not in page.locator("body").inner_text()


def test_a_reader_of_chinese_is_spoken_to_in_chinese_and_the_dark_is_dark(comparison, watched):
    page = watched.show(html(comparison), locale="zh-CN", color_scheme="dark")
    assert page.locator("html").get_attribute("data-language") == "zh"
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(20, 23, 26)"


def test_all_that_tie_for_best_are_named():
    page = html(compared(done("none", bleu=30.0), done("additive", bleu=30.0), done("dot", bleu=10.0)))
    assert "Tied for best are <b>none</b>, <b>additive</b>: BLEU 30.0" in page
    assert "并列最佳为 <b>none</b>, <b>additive</b>" in page
