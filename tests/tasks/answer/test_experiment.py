"""One small training from the command line's door, and what can be done with it."""

import json
from dataclasses import replace

import pytest
import torch

import regard
from regard.errors import ConfigError, DataError, DataWarning
from regard.losses.types import Progress
from regard.tasks.answer.batch import UNKNOWN, StoryLoader
from regard.tasks.answer.config import AnswerTrain
from regard.tasks.answer.loss import AnswerLoss
from regard.tasks.answer.records import StoryQuestion

SMALL = {"max_steps": 30, "evaluate_every": 30, "checkpoint_every": 1000, "learning_rate": 0.01}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    out = tmp_path_factory.mktemp("answer") / "run"
    train = SMALL | {"supporting_facts": 1.0, "linear_start": 5}
    regard.train("answer", out=out, data={"samples": 300}, model={"hidden_size": 16}, train=train, quiet=True)
    return out


@pytest.fixture(scope="module")
def model(run):
    return regard.load(run)


def test_a_run_keeps_samples_and_the_figures_of_its_validation(run):
    figures = json.loads((run / "metrics.json").read_text())["valid"]
    assert set(figures) == {"loss", "accuracy", "error", "facts", "best_hop"}
    assert figures["error"] == pytest.approx(100 - figures["accuracy"], abs=5)  # tasks have almost equally many questions
    assert (run / "samples/story1.txt").read_text().endswith(".\n")


def test_predictions_say_which_sentence_each_hop_read(model):
    story = "Anna went to the garden. Boris went to the attic."
    answer = model.predict(f"{story}\tWhere is Anna?", align=True)
    assert answer.text in model.codec.answers
    assert answer.weights.shape == (3, 2)
    assert [hop["text"] in story for hop in answer.fields["hops"]] == [True] * 3
    assert len(model.predict(f"{story}\tWhere is Anna?", best=3)) == 3


def test_one_question_is_about_every_story_and_an_empty_line_stands_between_stories(run):
    model = regard.load(run)
    assert list(model.group_lines(iter(["one", "two"]))) == ["one", "two"]
    model.set_options({"question": "Where is Anna?"})
    lines = ["Anna ran home.", "Boris slept.", "", "Anna sat."]
    assert list(model.group_lines(iter(lines))) == ["Anna ran home.\nBoris slept.", "Anna sat."]
    assert model.complete("Anna sat.") == "Anna sat.\tWhere is Anna?"
    with pytest.raises(DataError, match="input:1 has a story with no sentence"):
        model.complete(" ")
    with pytest.raises(DataError, match="--question is for every story, and input 1 has a tab"):
        model.complete("a\tb")


def test_evaluation_has_the_error_of_each_task_and_counts_unseen_answers_as_wrong(model, run, jsonl):
    metrics = model.evaluate(str(run / "samples/stories.jsonl"))
    errors = [metrics[name].value for name in metrics if name.startswith("error ")]
    assert len(errors) == 5
    assert metrics["error"].value == pytest.approx(sum(errors) / 5)
    row = {"story": ["Anna went home."], "question": "Where is Anna?", "answer": "moon"}
    with pytest.warns(DataWarning, match=r"has the answer 'moon', which was never seen in training, and counts as wrong"):
        metrics = model.evaluate(jsonl(row))
    assert metrics["accuracy"].value == 0
    assert "loss" not in metrics
    with pytest.raises(DataError, match="has no answer"):
        model.evaluate(jsonl({name: row[name] for name in ("story", "question")}))


def test_a_trace_has_each_hop_over_the_sentences(model):
    trace = model.trace("Anna went to the garden. Boris went to the attic.\tWhere is Boris?")
    [example] = trace.examples
    assert [attention.name for attention in example.attentions] == ["hops.0", "hops.1", "hops.2"]
    assert example.axes["story"].labels == ["Anna went to the garden.", "Boris went to the attic."]


def test_a_question_without_a_label_costs_nothing_and_facts_cost_where_they_are_asked_for(model, codec, stories):
    examples = codec.encode_all(stories[:4]).examples
    batch = StoryLoader(examples, 4, shuffle=False).batch(0)
    network = model.task.build(replace(model.config, train=AnswerTrain()), codec)
    plain = AnswerLoss(AnswerTrain())(network.eval(), batch, Progress(0, 1))
    guided = AnswerLoss(AnswerTrain(supporting_facts=0.5))(network, batch, Progress(0, 1))
    assert guided.total > plain.total
    assert "facts" not in plain.parts
    optimiser = torch.optim.Adam(network.parameters(), 0.03)
    for _ in range(15):
        optimiser.zero_grad()
        AnswerLoss(AnswerTrain(supporting_facts=5.0))(network, batch, Progress(0, 1)).total.backward()
        optimiser.step()
    read = network(batch.source).hops.max(1).values
    assert read[batch.facts].min() > 0.5
    batch.target.data.fill_(UNKNOWN)
    assert AnswerLoss(AnswerTrain())(network, batch, Progress(0, 1)).total == 0


@pytest.mark.parametrize(
    ("model", "train", "text"),
    [
        ({"kind": "entity"}, {"linear_start": 3}, "train.linear_start=3 would change nothing: it needs a memory network"),
        ({"kind": "entity", "hops": 2}, {}, "model.hops=2 would change nothing"),
        ({"kind": "dynamic", "layers": 2}, {}, "it needs the attentional reader"),
        ({"nonlinear": True, "hidden_size": 15}, {}, "needs an even model.hidden_size, got 15"),
        ({}, {"monitor": "bleu"}, "train.monitor needs to be one of loss, accuracy, error, facts, best_hop"),
        ({"tying": "none"}, {}, "model.tying needs to be adjacent or layerwise"),
    ],
)
def test_settings_without_effect_are_refused(tmp_path, model, train, text):
    with pytest.raises(ConfigError, match=text.replace(".", r"\.")):
        regard.train("answer", out=tmp_path / "run", data={"samples": 20}, model=model, train=SMALL | train, quiet=True)


def test_facts_that_are_asked_for_and_not_there_are_an_error(tmp_path, jsonl):
    rows = [
        {"story": [f"Anna went {place}.", "So."], "question": "Where?", "answer": place} for place in ("home", "out", "in")
    ]
    with pytest.raises(ConfigError, match=r"train\.supporting_facts needs supporting facts, and no question has any"):
        regard.train(
            "answer", out=tmp_path / "run", data={"train": jsonl(*rows)}, train=SMALL | {"supporting_facts": 1.0}, quiet=True
        )


def test_records_are_inputs_without_their_answers(model):
    record = StoryQuestion(("Anna went to the garden.",), "Where is Anna?", "moon", (0,))
    assert model.predict(record).text in model.codec.answers
    assert torch.isfinite(torch.tensor(model.predict(record).score))
