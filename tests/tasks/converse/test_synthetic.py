from random import Random

import pytest

from regard.tasks.converse.synthetic import REQUESTS, spell_name, write_dialogue, write_dialogues


@pytest.fixture(scope="module")
def dialogues():
    return write_dialogues(60, seed=0)


def test_dialogues_differ_and_are_those_of_their_seed(dialogues):
    assert len({tuple(turns) for turns in dialogues}) == 60
    assert write_dialogues(60, seed=0) == dialogues
    assert write_dialogues(60, seed=1) != dialogues


def test_a_dialogue_asks_for_whatever_the_request_lacks(dialogues):
    for turns in dialogues:
        [(template, questions)] = [
            (template, questions) for (template, request), questions in REQUESTS.values() if request in turns[0]
        ]
        missing = turns[1:-3:2]
        assert 1 <= len(missing) <= len(questions)
        assert [question for question in questions.values() if question in missing] == missing
        assert turns[-3].startswith(template.partition(" {")[0])


def test_the_summary_has_every_answer_and_the_farewell_the_name(dialogues):
    for turns in dialogues:
        assert len(turns) % 2 == 0
        assert all(answer in turns[-3] for answer in turns[2:-3:2])
        assert turns[-3].endswith("what is your name?")
        assert turns[-1] == f"thank you, {' '.join(turns[-2].split()[-2:])}. goodbye!"


def test_a_name_has_two_syllables():
    for seed in range(5):
        name = spell_name(Random(seed))
        assert name.istitle()
        assert [letter in "aeiou" for letter in name.lower()] == [False, True, False, True]
    assert write_dialogue(Random(3)) == write_dialogue(Random(3))
