import warnings

import pytest

import regard
from regard.errors import DataError, DataWarning
from regard.tasks.summarise import predictor
from regard.tasks.summarise.synthetic import write_reports


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    out = tmp_path_factory.mktemp("runs") / "sum"
    data = {"samples": 40, "max_source_length": 40}
    model = {"hidden_size": 8, "coverage": True, "encoder": "hierarchical"}
    regard.train("summarise", out=out, data=data, model=model, train={"max_steps": 2, "evaluate_every": 2})
    return regard.load(out)


def test_a_file_is_one_document_unless_it_has_json_objects(run):
    assert list(run.group_lines(iter(["", "Dear all,", "", "it is\tover"]))) == ["Dear all, it is over"]
    assert list(run.group_lines(iter(['{"body": "one"}', "", '{"1": "two\\n 2"}']))) == ["one", "", "two 2"]
    assert list(run.group_lines(iter([" "]))) == []


@pytest.mark.parametrize("line", ['{"body": 1}', "{}", "{broken"])
def test_an_object_without_a_text_is_refused(run, line):
    with pytest.raises(DataError, match="input:1"):
        list(run.group_lines(iter(['{"body": "one"}' if line == "" else line])))


def test_a_long_document_is_cut_and_the_warning_says_by_how_much(run):
    report = write_reports(1, seed=3)[0].source
    long = f"{report} " * 60
    with pytest.warns(DataWarning, match=r"input:2 has [\d,]+ tokens: the first 39 are read, and [\d,]+ are cut"):
        _, prediction = run.predict([report[:60], long], copies=True)
    assert all(copy.source < 40 for copy in prediction.copies)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        assert run.predict(long).text == prediction.text


def test_a_file_without_an_end_is_read_in_part(run, monkeypatch):
    monkeypatch.setattr(predictor, "LONGEST", 20)
    with pytest.warns(DataWarning, match="the file is longer than 20 characters: the rest is not read"):
        assert list(run.group_lines(iter(["some words", "more", "and more", "end"]))) == ["some words more"]


def test_documents_that_are_cut_are_evaluated(run):
    figures = run.evaluate_records(write_reports(4, seed=5))
    assert {"rouge1", "rouge2", "rougeL", "lead.rouge1", "perplexity"} <= figures.keys()


def test_what_was_copied_is_marked(run):
    run.model.decoder.outcome.copying.gate.bias.data.fill_(-20.0)
    prediction = run.predict("Xanadu won.", copies=True, beam=1)
    assert prediction.copies
    assert prediction.marked.replace("[", "").replace("]", "") == prediction.text
    assert "[" in prediction.marked


def test_a_trace_marks_what_was_copied(run):
    run.model.decoder.outcome.copying.gate.bias.data.fill_(-20.0)
    trace = run.trace("Xanadu won.", beam=2)
    marked = run.predict("Xanadu won.", copies=True, beam=2).marked
    assert trace.notes[1] == f"Copied from the source, in brackets: {marked}."
