import pytest

from regard.errors import DataError
from regard.tasks.answer.config import StoryData
from regard.tasks.answer.reading import list_files, order_tasks, read_stories, task_of
from regard.tasks.answer.records import parse_input, split_sentences

DATA = StoryData()
ROW = {"story": ["Anna went home.", "Boris slept."], "question": "Where is Anna?", "answer": "home", "facts": [0]}


def test_a_babi_file_has_facts_as_places_of_sentences(babi):
    first, second, third = read_stories(DATA, str(babi / "qa2_two_train.txt"))
    assert first.story == ("Mary moved to the bathroom.", "John went to the hallway.")
    assert (first.question, first.answer, first.facts, first.task) == ("Where is Mary?", "bathroom", (0,), "qa2")
    assert (second.story[2], second.facts) == ("Daniel took the milk there.", (1, 2))
    assert (third.story, third.facts) == (("Sandra got the apple.",), (0,))
    assert first.where.endswith("qa2_two_train.txt:3")


def test_of_a_folder_the_files_of_a_part_are_read_in_the_order_of_their_numbers(babi):
    assert [record.task for record in read_stories(DATA, str(babi), "test")[::3]] == ["qa2", "qa10"]
    assert [record.task for record in read_stories(StoryData(tasks="qa10"), str(babi))] == ["qa10"] * 3
    with pytest.raises(DataError, match=r"has no task 'qa7', which data\.tasks names; there are qa2, qa10"):
        read_stories(StoryData(tasks="qa7"), str(babi))
    with pytest.raises(DataError, match="has no file whose name ends in _valid"):
        list_files(str(babi), "valid")


def test_several_files_are_joined(babi):
    files = f"{babi / 'qa2_two_train.txt'}+{babi / 'qa10_one_train.txt'}"
    assert len(read_stories(DATA, files)) == 6
    assert sorted(["qa10", "qa2", "b"], key=order_tasks) == ["b", "qa2", "qa10"]
    assert task_of("x/stories.txt") == "stories"


def test_json_lines_have_keys_that_settings_name(jsonl):
    [record] = read_stories(DATA, jsonl(ROW | {"task": "one"}))
    assert (record.story[1], record.answer, record.facts, record.task) == ("Boris slept.", "home", (0,), "one")
    [record] = read_stories(
        StoryData(story="text", answer="a"), jsonl({"text": "One. Two? Three!", "question": "Who?", "a": 3})
    )
    assert (record.story, record.answer, record.facts) == (("One.", "Two?", "Three!"), "3", None)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"story": []}, "has a story with no sentence"),
        ({"story": 3}, "needs a list of sentences, or one text, under 'story'"),
        ({"question": "?"}, "has a question without a word, '\\?'"),
        ({"question": None}, "needs a text under 'question', and its keys are 'story'"),
        ({"answer": " "}, "has an empty answer"),
        ({"facts": [2]}, "has the supporting fact 2, and its story has the sentences 0 to 1"),
        ({"facts": "0"}, "needs a list of whole numbers under 'facts'"),
        ({"story": ["a\0b"]}, "has a NUL byte"),
    ],
)
def test_a_bad_record_is_named_with_its_line(jsonl, change, text):
    with pytest.raises(DataError, match=rf"stories\.jsonl:1 {text}"):
        read_stories(DATA, jsonl(ROW | change))


@pytest.mark.parametrize(
    ("lines", "text"),
    [
        ("Mary moved.\n", "needs a number and a sentence"),
        ("1 Mary moved.\n2 Where is she?\there\t7\n", "has the supporting facts '7', which need to be numbers of sentences"),
        ("1 Where is she?\there\t1\n", "has the supporting facts '1'"),
        ("1 Mary moved.\n", "has no question"),
    ],
)
def test_a_bad_babi_file_is_named_with_its_line(tmp_path, lines, text):
    path = tmp_path / "qa1_train.txt"
    path.write_text(lines)
    with pytest.raises(DataError, match=text):
        read_stories(DATA, str(path))


def test_an_input_is_a_story_a_tab_and_a_question():
    record = parse_input("Anna went home. Boris slept.\tWhere is Anna?", 3)
    assert (record.story, record.question, record.where) == (
        ("Anna went home.", "Boris slept."),
        "Where is Anna?",
        "input:3",
    )
    with pytest.raises(DataError, match="input:2 needs a story and a question, STORY TAB QUESTION"):
        parse_input("Anna went home.", 2)
    assert split_sentences("一句。二句！ three\nfour") == ("一句。", "二句！", "three", "four")
