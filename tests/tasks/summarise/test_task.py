import pytest

from regard.data.records import Record
from regard.tasks.summarise import task
from regard.tasks.summarise.synthetic import write_reports


def test_white_space_becomes_one_space():
    assert task.prepare(Record("a\n\n b ", " c\td", "a:1")) == Record("a b", "c d", "a:1")


def test_reports_hold_the_names_of_their_headlines():
    train, valid = task.synthesise(40, seed=0)
    assert not {record.source for record in train} & {record.source for record in valid}
    for record in train:
        capitals = [word for word in record.target.split()[1:] if word[0].isupper()]
        assert all(word in record.source for word in capitals)
    assert write_reports(3, seed=1) == write_reports(3, seed=1)


def test_records_of_one_document_are_its_references():
    outputs, references = ["mayor opens bridge", "mayor opens bridge"], ["a storm", "mayor opens bridge"]
    figures = task.measure(outputs, references, ["The mayor was there."] * 2, task.Config())
    assert figures["rouge1"].value == figures["rougeL"].value == 100
    assert figures["rouge2"].low == 100
    apart = task.measure([*outputs, ""], [*references, "an end"], ["one", "two", "one"], task.Config())
    assert apart["exact"].value == pytest.approx(100 / 3), "mails of one text that stand apart are mails of their own"
    assert 0 < figures["lead.rouge1"].value < 100, "the first words of the document: the mayor"


def test_the_lead_is_as_long_as_the_references():
    assert task.lead("One two, three. Four", 3) == "one two three"
