import pytest

from regard.data.text.tokenizers import load, settings


def test_settings_come_back(tmp_path):
    path = settings.write(tmp_path, "source", "words", whole=True)
    assert path == tmp_path / "source.json"
    assert settings.read(tmp_path, "source") == {"format": 1, "tokens": "words", "whole": True}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "in JSON, and is not"),
        ("[" * 100_000, "in JSON, and is not"),
        ("[]", "settings of a tokenizer, format 1"),
        ('{"format": 2, "tokens": "words"}', "format 1"),
        ('{"format": 1, "tokens": 3}', "format 1"),
    ],
)
def test_damaged_settings_are_refused_by_name(tmp_path, text, message):
    (tmp_path / "source.json").write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=message) as refused:
        settings.read(tmp_path, "source")
    assert "source.json" in str(refused.value)


def test_settings_can_name_no_kind_that_there_is_not(tmp_path):
    settings.write(tmp_path, "source", "os.path")
    with pytest.raises(ValueError, match=r"no tokenizer is called 'os\.path'"):
        load(tmp_path, "source")
