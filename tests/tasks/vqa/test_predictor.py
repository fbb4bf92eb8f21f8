import dataclasses

import pytest
import torch
from torch.testing import assert_close

import regard
from regard import tasks
from regard.config import Train
from regard.data.axis import Image, Text
from regard.data.image.synthetic.questions import Question, SceneQuestion
from regard.data.image.synthetic.scene import Scene, Thing
from regard.errors import DataError
from regard.models.readout import Answer
from regard.tasks.vqa.config import VqaModel
from regard.tasks.vqa.predictor import count_hit, last
from regard.tasks.vqa.synthetic import SyntheticQuestion
from regard.tasks.vqa.task import Config
from regard.training.loop import train
from regard.viewer.io import load, save


@pytest.fixture(scope="module")
def vqa(tmp_path_factory):
    """A run that has learned next to nothing."""
    usual, directory = Config(), tmp_path_factory.mktemp("vqa")
    data = dataclasses.replace(usual.data, height=32, width=32, samples=90, batch_pixels=1 << 13)
    small = dataclasses.replace(usual, data=data, model=VqaModel(hidden_size=16, depth=1), train=Train(max_steps=2))
    train(tasks.experiment("vqa", small)[0], directory, quiet=True)
    return directory


@pytest.fixture(scope="module")
def seeing(vqa):
    return regard.load(vqa)


@pytest.fixture(scope="module")
def inputs(vqa):
    lines = (vqa / "samples" / "questions.tsv").read_text().splitlines()
    return ["\t".join((str(vqa / "samples" / line.split("\t")[0]), line.split("\t")[1])) for line in lines]


def test_answers_come_best_first_with_their_log_probabilities(seeing, inputs):
    every = len(seeing.codec.answers)
    [found] = seeing.predict(inputs[:1], best=every)
    scores = torch.tensor([answer.score for answer in found])
    assert_close(scores.exp().sum(), torch.tensor(1.0))
    assert scores.tolist() == sorted(scores.tolist(), reverse=True)
    assert {answer.text for answer in found} == set(seeing.codec.answers)
    assert found[0].weights is None


def test_an_answer_says_where_on_the_map_it_looked_last(seeing, inputs):
    [answer] = seeing.predict(inputs[:1], align=True)
    assert (answer.grid, answer.weights.shape, answer.target) == ((4, 4), (1, 16), [answer.text])
    assert_close(answer.weights.sum(), torch.tensor(1.0))
    assert answer.links == [(int(answer.weights.argmax()), 0)]


def test_questions_are_answered_together_as_alone(seeing, inputs):
    together = seeing.predict(inputs)
    for text, answer in zip(inputs, together, strict=True):
        [alone] = seeing.predict([text])
        assert alone.text == answer.text
        assert abs(alone.score - answer.score) < 1e-4


def test_a_trace_shows_each_look_at_the_words_and_at_the_picture(seeing, inputs, tmp_path):
    save(seeing.trace(inputs[:2]), tmp_path / "t.attn.safetensors")
    trace = load(tmp_path / "t.attn.safetensors")
    first, _ = trace.examples
    looks = {look.name: (look.query, look.key) for look in first.attentions}
    hops = {f"hops.{hop}.{kind}" for hop in (0, 1) for kind in ("words", "regions")}
    assert looks == {
        "question.0.self": ("question", "question"),
        **{name: ("answer", "question" if name.endswith("words") else "picture") for name in hops},
    }
    words, picture = first.axes["question"], first.axes["picture"]
    assert isinstance(words, Text)
    assert isinstance(picture, Image)
    assert words.text == inputs[0].split("\t")[1]
    assert words.labels[-1] == "<eos>"
    assert picture.pixels.shape == (32, 32, 3)
    [step] = first.steps
    assert step.token == first.axes["answer"].labels[0] == step.candidates[0][0]
    assert len(step.candidates) == 5
    assert first.title == inputs[0].replace("\t", " ")


def test_an_input_needs_a_question_that_it_knows_and_that_is_short(seeing, inputs):
    picture = inputs[0].split("\t")[0]
    assert seeing.is_known(inputs[0])
    assert seeing.fits(inputs[0])
    assert not seeing.is_known(f"{picture}\txyzzy")
    assert seeing.is_known(f"{picture}\t{'what ' * 64}")
    assert not seeing.fits(f"{picture}\t{'what ' * 64}")
    with pytest.raises(DataError, match="input:1 needs a picture and a question, PATH TAB QUESTION"):
        seeing.fits(picture)
    with pytest.raises(DataError, match=r"1 of 2 pictures are missing: input:2 gone\.png"):
        seeing.predict([inputs[0], "gone.png\twhat colour is the star?"])


class Says(torch.nn.Module):
    """Answers everything with its first answer, and looks at the first place."""

    def __init__(self, answers):
        super().__init__()
        self.logits = torch.nn.Parameter(torch.tensor([2.0] + [0.0] * (answers - 1)))

    def forward(self, pictures, questions, about=None, weights=False):
        rows = len(questions.data)
        looks = torch.zeros(rows, 2, 1, 16)
        looks[..., 0] = 1
        return Answer(self.logits.detach().expand(rows, -1), {"hops.0.regions": looks})


def test_figures_are_of_what_is_right_and_where_it_looked(seeing, vqa, monkeypatch):
    monkeypatch.setattr(seeing, "model", Says(len(seeing.codec.answers)))
    first, other = seeing.codec.answers[:2]
    corner = Scene((Thing("star", "red", 20, 20, 16), Thing("ring", "red", 200, 200, 16)))
    asked = [("where is the star?", first, (0,)), ("where is the ring?", other, (1,)), ("is there a cross?", other, ())]
    sample = [
        SyntheticQuestion(SceneQuestion(corner, "where", Question(*both), Question(*both), things), 32)
        for *both, things in asked
    ]
    examples = seeing.codec.encode_all([each.record for each in sample], renderers=sample).examples
    figures = seeing.evaluate_examples(examples)
    assert (round(figures["accuracy"].value, 2), figures["looks"].value) == (33.33, 50.0)
    chances = seeing.model.logits.detach().log_softmax(-1)
    assert_close(figures["loss"].value, float(-(chances[0] + 2 * chances[1]) / 3), rtol=1e-5, atol=1e-5)


def test_a_question_that_is_too_long_counts_as_not_answered(seeing, inputs, monkeypatch):
    monkeypatch.setattr(seeing, "model", Says(len(seeing.codec.answers)))
    picture, first = inputs[0].split("\t")[0], seeing.codec.answers[0]
    records = [seeing.read(f"{picture}\t{text}") for text in ("what colour is the star?", "what " * 64)]
    known = [type(each)(each.picture._replace(target=first), each.question) for each in records]
    figures = seeing.evaluate(known)
    assert figures["accuracy"].value == 50.0
    assert "looks" not in figures


def test_the_last_look_at_the_picture_is_the_mean_of_its_heads():
    looks = {f"hops.{hop}.regions": torch.rand(1, 2, 1, 3) for hop in (0, 1)}
    weights = {**looks, "hops.1.words": torch.rand(1, 2, 1, 5)}
    assert_close(last(weights), looks["hops.1.regions"].mean(1))


def test_a_look_hits_the_box_of_a_thing_that_decides():
    scene = Scene((Thing("star", "red", 20, 20, 16),))
    there, absent = (
        SyntheticQuestion(SceneQuestion(scene, "exists", Question("a", "b"), Question("a", "b"), things), 32)
        for things in ((0,), ())
    )
    on, off = torch.eye(16)[0], torch.eye(16)[15]
    assert (count_hit(there, on, 8), count_hit(there, off, 8), count_hit(absent, on, 8), count_hit(None, on, 8)) == (
        (1, 1),
        (0, 1),
        (0, 0),
        (0, 0),
    )
