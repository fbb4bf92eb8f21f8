"""Answers of networks that were not trained."""

from dataclasses import replace

import pytest
import torch

from regard import tasks
from regard.errors import ConfigError, DataError
from regard.tasks.answer.batch import StoryExample
from regard.tasks.answer.config import AnswerModel
from regard.tasks.answer.experiment import build
from regard.tasks.answer.predictor import StoryAnswerer
from regard.tasks.answer.records import StoryQuestion
from regard.tasks.answer.task import Config

STORY = "Anna went to the garden. Boris went to the attic.\tWhere is Anna?"


@pytest.fixture
def make(codec):
    def predictor(kind="memory", **settings):
        config = Config(model=AnswerModel(kind=kind, hidden_size=8, **settings))
        return StoryAnswerer(tasks.bind("answer"), config, codec, build(config, codec).eval())

    return predictor


def test_answers_are_listed_by_probability_with_the_sentence_of_each_hop(make):
    predictor = make()
    predictor.codec = replace(predictor.codec, max_sentences=2)
    record = StoryQuestion(("Gone.", "One.", "Two."), "Where?")
    example = StoryExample(((4,), (5,)), (6,), None, (), record, cut=1)
    chances = torch.full((len(predictor.codec.answers),), -5.0)
    chances[2], chances[0] = -0.1, -1.0
    hops = torch.tensor([[0.75, 0.25], [0.0, 1.0]])
    first, second = predictor.list_answers(example, chances, hops, best=2, align=True)
    assert (first.text, second.text) == (predictor.codec.answers[2], predictor.codec.answers[0])
    assert first.score == pytest.approx(-0.1)
    assert first.fields["hops"] == [
        {"sentence": 1, "text": "One.", "weight": 0.75},
        {"sentence": 2, "text": "Two.", "weight": 1.0},
    ]
    assert first.links == [(0, 0), (1, 1)]
    assert first.weights is hops
    assert predictor.list_answers(example, chances, hops, best=1, align=False)[0].weights is None


def test_padding_of_a_batch_has_no_part_in_an_answer(make):
    predictor = make()
    longer = f"Clara sat. {STORY}"
    together, alone = predictor.predict([STORY, longer], align=True), predictor.predict(STORY, align=True)
    assert together[0].text == alone.text
    assert together[0].score == pytest.approx(alone.score, abs=1e-5)
    assert [answer.weights.shape for answer in together] == [(3, 2), (3, 3)]


@pytest.mark.parametrize(
    ("kind", "inner", "axes"),
    [("reader", ["words"], {"words"}), ("entity", ["blocks", "gates"], {"blocks"}), ("dynamic", [], set())],
)
def test_a_trace_has_the_hops_and_the_attentions_to_something_else(make, kind, inner, axes):
    [example] = make(kind).trace(STORY).examples
    names = [attention.name for attention in example.attentions]
    assert [name for name in names if not name.startswith("hops.")] == inner
    assert set(example.axes) - {"answer", "story"} == axes


def test_a_question_is_read_without_its_answer(make, codec, stories):
    stripped = make().strip_target(stories[0])
    assert (stripped.answer, stripped.facts, stripped.story) == (None, None, stories[0].story)


def test_scores_come_in_the_order_of_the_questions(make, codec, stories):
    predictor, examples = make(), codec.encode_all(stories[:9]).examples
    scores, turned = predictor.score(examples), predictor.score(examples[::-1])
    assert scores.right.tolist() == turned.right.tolist()[::-1]
    assert scores.tasks == [record.task for record in stories[:9]]
    assert predictor.evaluate_examples(examples)["accuracy"].value == pytest.approx(100 * scores.right.mean())


def test_bad_inputs_and_columns_are_named(make, jsonl):
    predictor = make()
    with pytest.raises(DataError, match=r"input:1 needs a story and a question, STORY TAB QUESTION, got"):
        predictor.predict("Anna sat.")
    with pytest.raises(ConfigError, match="text is no column of answer; it has story, question, answer"):
        predictor.read_table("x.jsonl", text="2")
    table = jsonl({"passage": ["Anna sat."], "question": "Who sat?", "answer": "Anna"})
    assert predictor.read_table(table, story="passage")[0].story == ("Anna sat.",)
    bare = jsonl({"story": ["Anna sat."], "question": "Who sat?"})
    with pytest.raises(DataError, match=r"stories\.jsonl:1 has no answer \(1 such in all\)"):
        predictor.read_table(bare)
