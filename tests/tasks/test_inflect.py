from regard.data.table import Record
from regard.tasks import inflect


def test_letters_and_features_become_tokens_and_spaces_survive():
    record = inflect.prepare(Record("ice cream|N;PL", "ice creams", "a:1"))
    assert record.source == "i c e ␣ c r e a m _N _PL"
    assert inflect.finish(record.target) == "ice creams"


def test_wrong_letters_are_counted():
    figures = inflect.measure(["tomel", "tila"], ["tomel", "tilan"], ["a", "b"], inflect.Config())
    assert figures["exact"].value == 50
    assert figures["cer"].value == 10
