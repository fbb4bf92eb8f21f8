import os

import pytest

from regard.data.records import Record
from regard.errors import ConfigError, DataError
from regard.tasks.vqa.config import VqaData
from regard.tasks.vqa.data import PictureQuestion, distinct_pictures, parse_input, read


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "questions.tsv"
    path.write_text("a.png\twhat is it?\ta star\na.png\tis it red?\tno\nb.png\tis it red?\tyes\n")
    return path


def test_a_line_is_a_picture_a_question_and_an_answer(table):
    first, _, last = read(VqaData(), str(table))
    assert first == PictureQuestion(Record("a.png", "a star", f"{table}:1"), "what is it?")
    assert (last.source, last.target, last.where) == ("b.png is it red?", "yes", f"{table}:3")


def test_columns_may_have_names(tmp_path):
    path = tmp_path / "questions.jsonl"
    path.write_text('{"right": "yes", "file": "a.png", "ask": "is it?"}\n')
    assert read(VqaData(image="file", question="ask", answer="right"), str(path)) == [
        PictureQuestion(Record("a.png", "yes", f"{path}:1"), "is it?")
    ]


def test_names_and_numbers_are_not_mixed(table):
    with pytest.raises(
        ConfigError, match=r"data\.image=1, data\.question=ask and data\.answer=3 need to be all names or all"
    ):
        read(VqaData(question="ask"), str(table))


@pytest.mark.parametrize(
    ("path", "why"), [("a.txt::b.txt", "parallel files have two"), ("-", "standard input is read once")]
)
def test_what_has_no_three_columns_is_refused(path, why):
    with pytest.raises(DataError, match=f"needs to be a table with an image, a question and an answer .*: {why}"):
        read(VqaData(), path)


def test_a_line_without_an_answer_is_refused_with_its_place(table):
    table.write_text(table.read_text() + "b.png\tis it?\n")
    with pytest.raises(DataError, match=r"questions\.tsv:4 has 2 columns, and the answer is column 3; put a tab .*columns$"):
        read(VqaData(), str(table))
    table.write_text("a.png\n")
    with pytest.raises(
        DataError, match=r"questions\.tsv:1 has 1 column, and the question is column 2; put a tab .*columns$"
    ):
        read(VqaData(), str(table))
    table.write_text("a.png\t \tyes\n")
    with pytest.raises(DataError, match=r"questions\.tsv:1 has an empty question; fill it in"):
        read(VqaData(), str(table))


def test_an_input_has_a_tab_between_picture_and_question():
    assert parse_input("a b.png\twhat is it?", 3) == PictureQuestion(Record("a b.png", None, "input:3"), "what is it?")


@pytest.mark.parametrize("text", ["a.png", "a.png\t ", "\twhat is it?"])
def test_an_input_without_a_picture_or_a_question_is_refused(text):
    with pytest.raises(DataError, match=r"input:2 needs a picture and a question, PATH TAB QUESTION, got "):
        parse_input(text, 2)


def test_a_picture_that_is_asked_about_twice_has_one_place(table):
    assert [each.where for each in distinct_pictures(read(VqaData(), str(table)))] == [f"{table}:1", f"{table}:3"]


def test_a_pipe_is_read_once_and_a_table_of_questions_twice(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(DataError, match=r"needs to be a table .* on each line: .*pipe is a pipe, which is read once"):
        read(VqaData(), str(tmp_path / "pipe"))
