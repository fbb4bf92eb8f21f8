"""Exports to transformers that run without regard, by the code in their README.md."""

import pytest

import regard
from regard.interop.huggingface.importer import files as imported
from regard.interop.huggingface.write import write
from regard.interop.output import write_directory

from ..readme import HIDDEN, answers, run
from ..transformers_ import opened, sources
from ..transformers_ import run as trained
from .tiny import saved, tiny

pytestmark = pytest.mark.timeout(300)
BARE = tuple(name for name in HIDDEN if name not in ("torch", "transformers", "safetensors"))


def test_the_page_answers_with_the_length_rule_of_the_run(tmp_path):
    write(trained("pre"), tmp_path / "out")
    texts = [*sources(3), "Tom chases a zebra"]
    expected = [answer.text for answer in opened("pre").predict(texts, beam=1)]
    found = answers(tmp_path / "out", *texts, hidden=BARE)
    assert [text.replace("<unk>", "").split() for text in found] == [text.replace("<unk>", "").split() for text in expected]
    page = (tmp_path / "out" / "README.md").read_text()
    assert "max_length=min(12, int(3.0 * len(ids)) + 10) + 1" in page
    assert "transformers has no limit that grows with the source" in page
    assert "ValueError: the model knows nothing in 'zebra'" in run(tmp_path / "out", "zebra", hidden=BARE).stderr
    strange = run(tmp_path / "out", more="generate([4, 100000, 2])", hidden=BARE)
    assert "ValueError: a source has ids below" in strange.stderr


def test_without_a_tokenizer_the_page_reads_ids(tmp_path):
    write_directory(tmp_path / "run", imported(saved(tiny("bart"), tmp_path / "theirs")))
    write(tmp_path / "run", tmp_path / "out")
    [answer] = answers(tmp_path / "out", "17 4 25", hidden=BARE)
    expected = regard.load(tmp_path / "run", "cpu").predict("17 4 25").text
    ids = [each for each in answer.strip("[]").split(", ") if each not in ("1", "2")]
    assert ids == expected.split()
    assert "there is no tokenizer: its texts are made of ids" in (tmp_path / "out" / "README.md").read_text()
