import pytest

from regard.data.text.axis import guess_language


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("Tom chases Jerry", None),
        ("", None),
        ("汤姆追逐杰瑞", "zh"),
        ("トムはジェリーを追う", "ja"),
        ("漢字かな", "ja"),
        ("톰이 제리를 쫓는다", "ko"),
        ("توم يطارد جيري", "ar"),
        ("טום רודף", "he"),
        ("ทอมไล่", "th"),
        ("Том гонится", None),
        ("𠀀", "zh"),
        ("👨‍👩‍👧", None),
    ],
)
def test_a_script_tells_its_language_or_nothing(text, language):
    assert guess_language(text) == language
