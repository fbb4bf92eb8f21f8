"""The glossary: every term has a sentence and a path that exists, and both languages have the same rows."""

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parent.parent / "docs"
CELLS = re.compile(r"(?<!\\)\|")
PAGES = ["glossary.md", "glossary.zh-CN.md"]


def read_rows(name: str) -> list[list[str]]:
    """Cells of every row below a heading of a table."""
    lines = (DOCS / name).read_text(encoding="utf-8").splitlines()
    tables = [[cell.strip() for cell in CELLS.split(line.strip("|"))] for line in lines if line.startswith("| ")]
    return [cells for cells in tables if "](" in cells[-1]]


@pytest.mark.parametrize("name", PAGES)
def test_every_term_has_a_sentence_and_a_path_that_exists(name):
    rows = read_rows(name)
    assert len(rows) >= 100
    terms = [cells[0] for cells in rows]
    assert len(set(terms)) == len(terms)
    for term, other, meaning, paths in rows:
        assert term
        assert other
        assert meaning.endswith((".", "。")), term
        for text, path in re.findall(r"\[([^]]+)\]\(([^)]+)\)", paths):
            assert (DOCS / path).exists(), f"{term}: {path}"
            assert path == ("../src/regard/" + text.removeprefix("src/regard/"))


def test_both_languages_have_the_same_terms_at_the_same_places():
    english, chinese = (read_rows(name) for name in PAGES)
    assert [(cells[0], cells[1]) for cells in english] == [(cells[1], cells[0]) for cells in chinese]
    places = [[re.findall(r"\]\(([^)]+)\)", cells[-1]) for cells in rows] for rows in (english, chinese)]
    assert places[0] == places[1]


@pytest.mark.parametrize("name", PAGES)
def test_the_words_of_this_project_are_defined(name):
    terms = " ".join(cells[0] + " " + cells[1] for cells in read_rows(name))
    for word in ("score", "normalise", "scope", "combine", "attend", "keep", "remember", "Memory", "Attended", "trace"):
        assert word in terms
