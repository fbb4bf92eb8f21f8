"""Readers of stories: JSON lines, the format of the bAbI tasks, and folders of such files."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from regard.config import quoted
from regard.data.lines import Line, bounds, lines
from regard.errors import DataError
from regard.tasks.answer.config import StoryData
from regard.tasks.answer.records import StoryQuestion, build_record, split_sentences

AND = "+"
JSON_LINES = (".jsonl", ".json", ".ndjson")
NUMBERED = re.compile(r"(\d+)\s+(.*)")
"""Line of a bAbI file: its number in the story, and a sentence or a question with its answer and facts."""
NAME = re.compile(r"(.*?)_(?:.*_)?(?:train|test|valid)(?:\..*)?$")
"""Name of a bAbI file, such as qa1_single-supporting-fact_train.txt: the task is what stands before the first _."""


def read_stories(data: StoryData, path: str, part: str = "train") -> list[StoryQuestion]:
    """Questions of a file, a folder or several of them; `part` selects the files of a folder: train, valid or test."""
    wanted = [name.strip() for name in data.tasks.split(",") if name.strip()]
    records = [record for file in list_files(path, part) for record in read_file(data, file)]
    names = {record.task for record in records}
    if absent := [name for name in wanted if name not in names]:
        raise DataError(
            f"{path} has no task {absent[0]!r}, which data.tasks names; there are "
            f"{', '.join(sorted(names, key=order_tasks))}"
        )
    selected = [record for record in records if not wanted or record.task in wanted]
    if not selected:
        raise DataError(f"{path} has no question; a story is followed by one question or more")
    return selected


def list_files(path: str, part: str) -> list[str]:
    """Files that a path names; of a folder those whose names have the part in them, such as qa1_..._train.txt."""
    if Path(path).is_dir():
        names = sorted(file for file in Path(path).iterdir() if file.is_file())
        files = [str(file) for file in names if file.name.removesuffix(".gz").rpartition(".")[0].endswith(f"_{part}")]
        if not files:
            raise DataError(f"{path} has no file whose name ends in _{part}, such as qa1_{part}.txt; name a file itself")
        return sorted(files, key=lambda file: order_tasks(task_of(file)))
    if AND in path and not Path(path).exists():
        return [file for name in path.split(AND) for file in list_files(name, part)]
    return [path]


def read_file(data: StoryData, path: str) -> Iterator[StoryQuestion]:
    """Questions of one file, whose name says which format it has."""
    reader = read_json_lines if path.removesuffix(".gz").endswith(JSON_LINES) else read_babi
    yield from reader(data, path)


def task_of(path: str) -> str:
    """Name of the task of a bAbI file: qa1 of qa1_single-supporting-fact_train.txt."""
    match = NAME.match(Path(path).name)
    return match[1] if match else Path(path).name.partition(".")[0]


def order_tasks(name: str) -> tuple[Any, ...]:
    """Key by which names of tasks are in order, qa2 before qa10."""
    return tuple((0, int(part), "") if part.isdigit() else (1, 0, part) for part in re.split(r"(\d+)", name) if part)


def read_babi(data: StoryData, path: str) -> Iterator[StoryQuestion]:
    """Questions of a bAbI file, whose facts are the numbers of lines; a line numbered 1 begins a story."""
    task = task_of(path)
    story, places = list[str](), dict[int, int]()
    for line in lines(path, bounds=bounds(data)):
        match = NUMBERED.fullmatch(line.text.strip())
        if match is None:
            raise DataError(
                f"{line.where} needs a number and a sentence, or a number, a question, a tab, its answer, a tab and the "
                f"numbers of its facts, got {quoted(line.text)}; stories in JSON lines end in .jsonl"
            )
        number, text = int(match[1]), match[2]
        if number == 1:
            story, places = [], {}
        if "\t" not in text:
            places[number] = len(story)
            story.append(text.strip())
            continue
        question, answer, *facts = (cell.strip() for cell in text.split("\t"))
        yield build_record(StoryQuestion(tuple(story), question, answer, find_facts(facts, places, line), task, line.where))


def find_facts(cells: list[str], places: dict[int, int], line: Line) -> tuple[int, ...] | None:
    """Places of the sentences whose lines are listed as facts; None where none are listed."""
    numbers = " ".join(cells).split()
    if not numbers:
        return None
    try:
        return tuple(sorted({places[int(number)] for number in numbers}))
    except (ValueError, KeyError):
        raise DataError(
            f"{line.where} has the supporting facts {quoted(' '.join(numbers))}, which need to be numbers of sentences in "
            "front of the question"
        ) from None


def read_json_lines(data: StoryData, path: str) -> Iterator[StoryQuestion]:
    """Questions of a file with one JSON object on each line."""
    for line in lines(path, bounds=bounds(data)):
        if not line.text.strip():
            raise DataError(f"{line.where} is empty; each line needs to be one JSON object")
        try:
            row = json.loads(line.text)
        except (ValueError, RecursionError) as error:
            raise DataError(f"{line.where} is not JSON: {error}; each line needs to be one object") from error
        if not isinstance(row, dict):
            raise DataError(f"{line.where} needs a JSON object with a story, a question and an answer")
        yield parse_row(data, row, line.where)


def parse_row(data: StoryData, row: dict[str, Any], where: str) -> StoryQuestion:
    """Record of a JSON object."""
    story = row.get(data.story)
    if isinstance(story, str):
        story = split_sentences(story)
    if not isinstance(story, (list, tuple)) or not all(isinstance(sentence, str) for sentence in story):
        raise DataError(
            f"{where} needs a list of sentences, or one text, under {data.story!r} (data.story), and has "
            f"{quoted(json.dumps(row.get(data.story)))}"
        )
    facts = row.get(data.facts)
    if facts is not None and not (isinstance(facts, list) and all(type(fact) is int for fact in facts)):
        raise DataError(f"{where} needs a list of whole numbers under {data.facts!r}, the places of sentences from 0")
    return build_record(
        StoryQuestion(
            tuple(sentence.strip() for sentence in story if sentence.strip()),
            take_text(row, data.question, where) or "",
            take_text(row, data.answer, where, need=False),
            None if facts is None else tuple(facts),
            take_text(row, data.task, where, need=False) or "",
            where,
        )
    )


def take_text(row: dict[str, Any], key: str, where: str, need: bool = True) -> str | None:
    """Text under a key of a JSON object; numbers are written out."""
    value = row.get(key)
    if value is None and not need:
        return None
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise DataError(f"{where} needs a text under {key!r}, and its keys are {', '.join(map(repr, row))}")
    return str(value)
