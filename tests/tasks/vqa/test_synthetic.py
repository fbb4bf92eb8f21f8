import torch

from regard.data.image.synthetic.questions import draw
from regard.tasks.vqa.synthetic import SyntheticQuestion

QUESTIONS = draw(60)[0]


def test_it_draws_the_scene_and_knows_what_is_asked_in_either_language():
    english, chinese = SyntheticQuestion(QUESTIONS[0], 32), SyntheticQuestion(QUESTIONS[0], 32, "chinese")
    assert torch.equal(english(), QUESTIONS[0].picture(32))
    assert (english.record.question, english.record.target) == QUESTIONS[0].english
    assert (chinese.record.question, chinese.record.target) == QUESTIONS[0].chinese
    assert english.record.where == QUESTIONS[0].where


def test_questions_about_one_scene_draw_the_same():
    same = [SyntheticQuestion(each, 32).same for each in QUESTIONS]
    scenes = [each.scene for each in QUESTIONS]
    assert [one == other for one in same for other in same] == [one == other for one in scenes for other in scenes]
    assert SyntheticQuestion(QUESTIONS[0], 32).same != SyntheticQuestion(QUESTIONS[0], 16).same


def test_the_region_is_of_the_things_that_decide():
    drawn = [SyntheticQuestion(each, 32) for each in QUESTIONS]
    absent = [each for each in drawn if not each.sample.things]
    assert absent
    assert {each.region for each in absent} == {None}
    for each in drawn:
        if each.sample.things:
            assert torch.equal(each.region, each.sample.scene.region(each.sample.things, 32, 32))
