import json

import pytest

from regard.alignment.time_formats import format_times, split_cues
from regard.alignment.times import TimedWord

WORDS = [TimedWord("say", 0.5, 0.75, 0.9), TimedWord('"<b>"', 0.75, 1.0), TimedWord("again", 3661.5, 3662.0)]


def test_json_holds_words_and_further_fields():
    content = json.loads(format_times(WORDS[:1], "json", 2.0, text="say"))
    assert content == {
        "duration": 2.0,
        "words": [{"word": "say", "start": 0.5, "end": 0.75, "confidence": 0.9}],
        "text": "say",
    }


def test_a_textgrid_has_intervals_without_gaps():
    text = format_times(WORDS[:2], "textgrid", 2.0)
    assert text.startswith('File type = "ooTextFile"\nObject class = "TextGrid"\n')
    rows = [line.partition("= ")[2] for line in text.splitlines() if line.startswith("            ")]
    assert rows == [
        *("0.000", "0.500", '""'),
        *("0.500", "0.750", '"say"'),
        *("0.750", "1.000", '"""<b>"""'),
        *("1.000", "2.000", '""'),
    ]
    assert "intervals: size = 4" in text
    assert "intervals: size = 1" in format_times([], "textgrid", 1.0)


def test_subtitles_have_cues_that_end_at_pauses():
    assert format_times(WORDS, "srt", 4000.0) == (
        '1\n00:00:00,500 --> 00:00:01,000\nsay "<b>"\n\n2\n01:01:01,500 --> 01:01:02,000\nagain\n'
    )
    assert format_times(WORDS, "vtt", 4000.0) == (
        'WEBVTT\n\n00:00:00.500 --> 00:00:01.000\nsay <00:00:00.750>"&lt;b&gt;"\n\n01:01:01.500 --> 01:01:02.000\nagain\n'
    )


def test_a_cue_is_no_longer_than_a_line():
    words = [TimedWord("word", 0.3 * place, 0.3 * place + 0.3) for place in range(20)]
    assert [len(cue) for cue in split_cues(words)] == [8, 8, 4]


@pytest.mark.unhooked
def test_other_formats_are_refused():
    with pytest.raises(ValueError, match="times are written as textgrid, json, srt, vtt, got 'txt'"):
        format_times(WORDS, "txt", 2.0)
    with pytest.raises(ValueError, match="srt holds words alone, and no text"):
        format_times(WORDS, "srt", 2.0, text="say")
