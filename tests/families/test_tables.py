import pytest

from regard.config import ClassifyData
from regard.data.lines import DataError
from regard.families.tables import paths


def test_two_tables_are_named_or_none():
    assert paths(ClassifyData()) is None
    assert paths(ClassifyData(train="a.tsv", valid="b.tsv")) == ("a.tsv", "b.tsv")
    with pytest.raises(DataError, match=r"data\.train is given and data\.valid is not: name a file to validate with"):
        paths(ClassifyData(train="a.tsv"))
    with pytest.raises(DataError, match=r"data\.valid is given and data\.train is not: name a file to train on"):
        paths(ClassifyData(valid="a.tsv"))
