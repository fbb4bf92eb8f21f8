"""Word times as text: TextGrid of Praat, JSON, and subtitles in SRT and WebVTT."""

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal

from regard.alignment.times import TimedWord

TimeFormat = Literal["textgrid", "json", "srt", "vtt"]
SUFFIXES = {".textgrid": "textgrid", ".json": "json", ".srt": "srt", ".vtt": "vtt"}
"""Format of a file, by its suffix in small letters."""
LONGEST_LINE = 42
"""Characters of a subtitle."""
LONGEST_CUE = 6.0
"""Seconds of a subtitle."""
PAUSE = 0.8
"""Seconds of silence that end a subtitle."""


def format_times(words: Sequence[TimedWord], kind: TimeFormat, duration: float, **fields: Any) -> str:
    """Words with their times in a format, for a sound of `duration` seconds; JSON holds further `fields` as they are."""
    if kind not in FORMATS:
        raise ValueError(f"times are written as {', '.join(FORMATS)}, got {kind!r}")
    if fields and kind != "json":
        raise ValueError(f"{kind} holds words alone, and no {', '.join(fields)}; json holds more")
    return FORMATS[kind](words, duration, **fields)


def format_json(words: Sequence[TimedWord], duration: float, **fields: Any) -> str:
    """JSON: the duration, and of each word its text, start, end and confidence, in seconds to a millisecond."""
    listed = [
        {
            "word": word.text,
            "start": round(word.start, 3),
            "end": round(word.end, 3),
            "confidence": round(word.confidence, 4),
        }
        for word in words
    ]
    return json.dumps({"duration": round(duration, 3), "words": listed} | fields, ensure_ascii=False, indent=1) + "\n"


def format_textgrid(words: Sequence[TimedWord], duration: float) -> str:
    """TextGrid with one tier of intervals, "words", without gaps: pauses are intervals with an empty text.

    https://www.fon.hum.uva.nl/praat/manual/TextGrid_file_formats.html
    """
    end = max([duration, *(word.end for word in words)])
    intervals = list(_fill_pauses(words, end))
    lines = ['File type = "ooTextFile"', 'Object class = "TextGrid"', "", "xmin = 0", f"xmax = {end:.3f}", "tiers? <exists>"]
    lines += ["size = 1", "item []:", "    item [1]:", '        class = "IntervalTier"', '        name = "words"']
    lines += ["        xmin = 0", f"        xmax = {end:.3f}", f"        intervals: size = {len(intervals)}"]
    for number, (text, first, last) in enumerate(intervals, 1):
        quoted = text.replace('"', '""')
        lines += [f"        intervals [{number}]:", f"            xmin = {first:.3f}", f"            xmax = {last:.3f}"]
        lines += [f'            text = "{quoted}"']
    return "\n".join(lines) + "\n"


def _fill_pauses(words: Sequence[TimedWord], end: float) -> Iterator[tuple[str, float, float]]:
    """Intervals from 0 to the end; a word that overlaps the one before begins where that ends."""
    at = 0.0
    for word in words:
        first = max(at, word.start)
        last = max(first, word.end)
        if last - first < 0.0005:  # Praat refuses an interval without length
            continue
        if first - at >= 0.0005:
            yield "", at, first
        else:
            first = at
        yield word.text, first, last
        at = last
    if end - at >= 0.0005 or at == 0.0:
        yield "", at, end


def format_srt(words: Sequence[TimedWord], duration: float) -> str:
    """SubRip subtitles: numbered cues of a line each."""
    cues = [
        f"{number}\n{_clock(cue[0].start, ',')} --> {_clock(cue[-1].end, ',')}\n{_join(cue)}\n"
        for number, cue in enumerate(split_cues(words), 1)
    ]
    return "\n".join(cues)


def format_vtt(words: Sequence[TimedWord], duration: float) -> str:
    """WebVTT subtitles, whose words have times of their own inside a cue: https://www.w3.org/TR/webvtt1/."""
    cues = ["WEBVTT\n"]
    for cue in split_cues(words):
        head, *rest = cue
        timed = "".join(f" <{_clock(word.start, '.')}>{_escape(word.text)}" for word in rest)
        cues.append(f"{_clock(head.start, '.')} --> {_clock(cue[-1].end, '.')}\n{_escape(head.text)}{timed}\n")
    return "\n".join(cues)


def split_cues(words: Sequence[TimedWord]) -> list[list[TimedWord]]:
    """Words in cues, which end at a pause, at the length of a line, and after some seconds."""
    cues: list[list[TimedWord]] = []
    for word in words:
        cue = cues[-1] if cues else []
        too_long = len(_join([*cue, word])) > LONGEST_LINE or (bool(cue) and word.end - cue[0].start > LONGEST_CUE)
        if not cue or too_long or word.start - cue[-1].end >= PAUSE:
            cues.append([word])
        else:
            cue.append(word)
    return cues


def _join(words: Sequence[TimedWord]) -> str:
    return " ".join(word.text for word in words)


def _escape(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _clock(seconds: float, point: str) -> str:
    whole = round(1000 * max(0.0, seconds))
    minutes, milliseconds = divmod(whole, 60_000)
    return f"{minutes // 60:02d}:{minutes % 60:02d}:{milliseconds // 1000:02d}{point}{milliseconds % 1000:03d}"


FORMATS: dict[str, Callable[..., str]] = {
    "textgrid": format_textgrid,
    "json": format_json,
    "srt": format_srt,
    "vtt": format_vtt,
}
