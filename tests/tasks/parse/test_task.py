import json
import re

import pytest

import regard
from regard.data.records import Record
from regard.errors import ConfigError, DamagedError, DataError
from regard.tasks.parse import task
from regard.tasks.parse.predictor import TARGETS, load_tree
from regard.tasks.parse.synthetic import write_questions

QUESTION = "how many rivers are there of Xanadu"
GRAMMAR = 'query = "SELECT" ( "name" | "length" ) "FROM" "river" "WHERE" "country" "=" \'"\' CONSTANT \'"\' ";"\n'


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    out = tmp_path_factory.mktemp("runs") / "sql"
    options = {"max_steps": 2, "evaluate_every": 2, "monitor": "exact"}
    search = {"grammar": "targets", "beam": 2}
    regard.train("parse", out=out, data={"samples": 60}, model={"hidden_size": 8}, train=options, search=search)
    return out


def test_symbols_stand_alone_and_quotes_come_back():
    record = task.prepare(Record("who is 'Zoe'?", 'SELECT a FROM b WHERE c="Zoe Li" AND d>=3;', "a:1"))
    assert record.source == "who is ' Zoe ' ?"
    assert record.target == 'SELECT a FROM b WHERE c = " Zoe Li " AND d >= 3 ;'
    assert task.finish(record.target) == 'SELECT a FROM b WHERE c = "Zoe Li" AND d >= 3 ;'


def test_queries_are_equal_up_to_case_and_spaces_outside_of_quotes():
    right, wrong = 'select A from B where c="Zoe" and d = 3', 'SELECT a FROM b WHERE c = "zoe" AND d = 4'
    gold = 'SELECT a FROM b WHERE c = "Zoe" AND d = 3'
    figures = task.measure([right, wrong], [gold, gold], ["", ""], task.Config())
    assert figures["exact"].value == 50
    assert figures["template"].value == 100


def test_questions_hold_the_constants_of_their_queries():
    for record in write_questions(30, seed=0):
        for constant in task.QUOTED.findall(record.target):
            assert constant.strip('"') in record.source


def test_answers_keep_to_the_targets_of_the_training(run):
    text = regard.load(run).predict(QUESTION).text
    train, _ = task.synthesise(60, seed=0)
    templates = {task.mask_constants(task.normalise(record.target)) for record in train}
    template = re.sub(
        r"([<>]) \w+", r"\1 #", task.mask_constants(task.normalise(text))
    )  # any word may be copied as a number
    assert template in templates


def test_answers_keep_to_a_grammar(run, tmp_path):
    path = tmp_path / "query.txt"
    path.write_text(GRAMMAR)
    model = regard.load(run)
    model.config = model.config.__class__(
        model.config.data, model.config.model, search=model.config.search.__class__(grammar=str(path), max_length=60)
    )
    assert task.normalise(model.predict(QUESTION).text).startswith(("select name from river", "select length from river"))


def test_a_run_without_its_targets_says_so(run, tmp_path):
    model = regard.load(run)
    model.home = tmp_path
    with pytest.raises(DataError, match=f"search.grammar=targets needs the file {TARGETS}"):
        model.predict(QUESTION)
    for content in ("{", '{"targets": [["a"]], "constants": []}', json.dumps([1])):
        with pytest.raises(DamagedError, match="needs to be the targets of a training"):
            load_tree(content.encode(), "x")


def test_settings_that_contradict_copying_are_refused(tmp_path):
    for train in ({"confidence_penalty": 0.1}, {"packing_length": 64}):
        with pytest.raises(ConfigError, match=r"with model\.copy=true each source has words of its own|packing_length"):
            regard.train("parse", out=tmp_path / "run", train=train)
    with pytest.raises(ConfigError, match="copies from where an attention points, and this model has none"):
        regard.train("parse", out=tmp_path / "run", model={"attention": "none"})
    with pytest.raises(ConfigError, match=r"model\.coverage=true adds a coverage vector to an additive score"):
        regard.train("parse", out=tmp_path / "run", model={"attention": "bilinear", "coverage": True})
