import re
from collections import Counter
from random import Random

import pytest
import torch

from regard.data.image.synthetic.questions import KINDS, answers, ask, draw
from regard.data.image.synthetic.scene import COLOURS, Scene, Thing, relations
from regard.data.image.synthetic.shapes import SHAPES
from regard.data.image.synthetic.words import plural

TRAIN, VALID = draw(1500)
EVERY = TRAIN + VALID


def answer(scene: Scene, question: str) -> str:
    """What is right, found from the words of the question."""
    things = scene.things
    words = re.findall(r"\w+", question)
    shapes = [shape for word in words for shape in SHAPES if word in (shape, plural(shape))]
    colours = [word for word in words if word in COLOURS]
    like = [
        thing for thing in things if (not shapes or thing.shape == shapes[0]) and (not colours or thing.colour == colours[0])
    ]
    if question.startswith("what colour"):
        return like[0].colour
    if question.startswith("what shape"):
        return like[0].shape
    if question.startswith("how many"):
        return str(len(like))
    if question.startswith("is there"):
        return "yes" if like else "no"
    if question.startswith("where"):
        return f"{'top' if like[0].y < 128 else 'bottom'} {'left' if like[0].x < 128 else 'right'}"
    [other] = [thing for thing in things if thing.shape == shapes[1] and thing.colour == colours[1]]
    [way] = [word for word in words if word in ("left", "right", "above", "below")]
    return "yes" if way in relations(like, [other]) else "no"


def test_every_answer_is_right():
    for example in EVERY:
        assert answer(example.scene, example.english.text) == example.english.answer, example.english


def test_a_question_of_each_kind():
    scene = Scene((Thing("star", "red", 60, 60, 24), Thing("circle", "blue", 60, 190, 24)))
    found = {}
    for kind in KINDS:
        for seed in range(60):
            asked = ask(scene, kind, Random(seed))
            found[asked.english] = (*asked.chinese, asked.things)
    assert found["what colour is the star?", "red"] == ("五角星是什么颜色？", "红色", (0,))
    assert found["what shape is the blue thing?", "circle"] == ("蓝色的是什么形状？", "圆", (1,))
    assert found["how many red things are there?", "1"] == ("有几个红色的图形？", "1", (0,))
    assert found["how many circles are there?", "1"] == ("有几个圆？", "1", (1,))
    assert found["is there a red star?", "yes"] == ("有红色的五角星吗？", "有", (0,))
    assert found["is there a blue star?", "no"] == ("有蓝色的五角星吗？", "没有", ())
    assert found["where is the red star?", "top left"] == ("红色的五角星在哪里？", "左上", (0,))
    assert found["is the red star above the blue circle?", "yes"] == ("红色的五角星在蓝色的圆上面吗？", "是", (0, 1))
    assert found["is the red star below the blue circle?", "no"] == ("红色的五角星在蓝色的圆下面吗？", "不是", (0, 1))


@pytest.mark.parametrize("kind", ["colour", "shape", "where", "relation"])
def test_nothing_is_asked_of_a_thing_that_is_there_twice(kind):
    assert ask(Scene((Thing("star", "red", 60, 60, 24), Thing("star", "red", 190, 60, 24))), kind, Random(0)) is None


@pytest.mark.parametrize("kind", ["where", "relation"])
def test_nothing_is_asked_of_a_place_that_is_not_clear(kind):
    assert ask(Scene((Thing("star", "red", 128, 60, 24), Thing("ring", "red", 128, 60, 24))), kind, Random(0)) is None


def test_nothing_is_asked_about_a_shape_that_is_there_in_all_colours():
    everywhere = Scene(tuple(Thing("star", colour, 60, 60, 24) for colour in COLOURS))
    assert {ask(everywhere, "exists", Random(seed)) for seed in range(20)} == {None}


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_is_asked_about_nothing(kind):
    assert ask(Scene(()), kind, Random(0)) is None


@pytest.mark.parametrize("samples", [0, 2])
def test_too_few_questions_to_hold_a_scene_out_are_refused(samples):
    assert sum(map(len, draw(3))) == 3
    with pytest.raises(ValueError, match=f"at least 3 questions are needed, got {samples}: up to 2 are about one scene"):
        draw(samples)


def test_scenes_may_be_simpler_and_have_more_questions():
    kinds = ("colour", "shape", "where")
    train, valid = draw(300, per_scene=8, kinds=kinds, shapes=("circle", "star", "ring"), most=2, radii=(40, 44))
    assert {example.kind for example in train + valid} == set(kinds)
    scenes = {example.scene for example in train + valid}
    assert {thing.shape for scene in scenes for thing in scene.things} == {"circle", "star", "ring"}
    assert {thing.radius for scene in scenes for thing in scene.things} <= {40, 41, 42, 43, 44}
    assert {len(scene.things) for scene in scenes} <= {1, 2}
    asked = Counter((example.scene, example.english.text) for example in train + valid)
    assert max(asked.values()) == 1
    assert max(Counter(example.scene for example in train + valid).values()) == 6  # three kinds, of two things


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"per_scene": 0}, "at least 2 questions are needed, got 20: up to 0 are about one scene"),
        ({"kinds": ("colour", "why")}, "of the kinds colour, shape, count, exists, where, relation, got 'why'"),
        ({"radii": (0, 9)}, "from 1 to 48, the smaller one first, got 0 and 9"),
        ({"radii": (40, 30)}, "from 1 to 48, the smaller one first, got 40 and 30"),
        ({"radii": (40, 49)}, "from 1 to 48, the smaller one first, got 40 and 49"),
        ({"shapes": ("circle", "star")}, r"2 to 5 things of 3 or more of the shapes circle, .* got 5 of circle, star"),
        ({"shapes": ("circle", "star", "moon")}, "got 5 of circle, star, moon"),
        ({"most": 6}, "got 6 of circle"),
        ({"most": 1}, "got 1 of circle"),
    ],
)
def test_scenes_that_cannot_be_asked_about_are_refused(options, text):
    with pytest.raises(ValueError, match=text):
        draw(20, **options)


def test_answers_are_known_in_both_languages():
    assert {example.english.answer for example in EVERY} <= set(answers())
    assert {example.chinese.answer for example in EVERY} <= set(answers("chinese"))
    assert len(answers()) == len(set(answers())) == 28


def test_kinds_are_mixed_and_yes_is_as_likely_as_no():
    kinds = Counter(example.kind for example in EVERY)
    assert set(kinds) == set(KINDS)
    assert min(kinds.values()) > 100
    for kind in ("exists", "relation"):
        told = Counter(example.english.answer for example in EVERY if example.kind == kind)
        assert 0.4 < told["yes"] / kinds[kind] < 0.6


def test_no_scene_is_in_both_parts():
    assert len(EVERY) == 1500
    assert 100 < len(VALID) < 200
    assert not {example.scene for example in TRAIN} & {example.scene for example in VALID}


def test_a_seed_gives_the_same_questions_and_another_gives_others():
    assert draw(20, seed=1) == draw(20, seed=1)
    assert draw(20, seed=1) != draw(20, seed=2)


def test_an_example_gives_its_picture_and_its_record():
    example = TRAIN[0]
    assert torch.equal(example.picture(32), example.scene.picture(32))
    assert example.record() == (*example.english, example.where, ())
    assert example.record("chinese")[:2] == example.chinese


def test_an_unknown_kind_is_refused():
    with pytest.raises(ValueError, match="of the kinds colour, shape, count, exists, where, relation, got 'why'"):
        ask(TRAIN[0].scene, "why", Random(0))
