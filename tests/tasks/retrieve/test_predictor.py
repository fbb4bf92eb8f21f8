import dataclasses

import pytest
import torch

import regard
from regard import tasks
from regard.config import Train
from regard.data import table
from regard.data.axis import Image, Text
from regard.data.image.writing import png
from regard.data.records import Record
from regard.data.table import DataError
from regard.decoding.logprobs import UndistributedError
from regard.errors import RefusedError
from regard.tasks.retrieve.config import RetrieveData, RetrieveModel
from regard.tasks.retrieve.index import Index
from regard.tasks.retrieve.predictor import SAMPLES
from regard.tasks.retrieve.task import Config
from regard.training.loop import train
from regard.viewer.io import load, save

CONFIG = Config(
    data=RetrieveData(height=32, width=32, samples=60, batch_pixels=1 << 14, max_target_length=32),
    model=RetrieveModel(hidden_size=16, depth=1, projection_size=8, text_layers=1, rerank_top_k=3),
    train=Train(max_steps=4, evaluate_every=4, learning_rate=1e-2, monitor="recall"),
)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    directory = tmp_path_factory.mktemp("retrieve")
    experiment, _ = tasks.experiment("retrieve", CONFIG)
    train(experiment, directory, quiet=True)
    return directory, experiment


@pytest.fixture
def model(run):
    return regard.load(run[0])


def texts(run):
    return [line.split("\t")[1] for line in (run[0] / SAMPLES).read_text().splitlines()]


def sample(run, number):
    return str(run[0] / "samples" / f"{number}.png")


def test_without_an_index_the_samples_of_the_run_are_searched_both_ways(run, model):
    [pictures], [found] = model.predict([texts(run)[0]], best=3), model.predict([sample(run, 1)], best=2)
    assert len({each.text for each in pictures}) == 3
    assert all(each.text.startswith(str(run[0] / "samples")) for each in pictures)
    assert [each.score for each in pictures] == sorted((each.score for each in pictures), reverse=True)
    assert {each.text for each in found} <= set(texts(run))


def test_texts_and_pictures_may_be_asked_together(run, model):
    asked = [sample(run, 2), texts(run)[1], sample(run, 1)]
    together = model.predict(asked, best=2)
    for text, answers in zip(asked, together, strict=True):
        [alone] = model.predict([text], best=2)
        assert [each.text for each in answers] == [each.text for each in alone]
        assert [each.score for each in answers] == pytest.approx([each.score for each in alone], abs=1e-4)


@pytest.mark.parametrize("way", ["text", "picture"])
def test_it_shows_what_each_word_looked_at_on_the_picture(run, model, way):
    [answer] = model.predict([texts(run)[0] if way == "text" else sample(run, 1)], align=True)
    words = texts(run)[0] if way == "text" else answer.text
    assert answer.target[:-1] == words.split()
    assert answer.target[-1] == "<eos>"
    assert answer.grid == (4, 4)
    torch.testing.assert_close(answer.weights.sum(-1), torch.ones(len(answer.target)))
    assert answer.score == model.predict([texts(run)[0] if way == "text" else sample(run, 1)])[0].score


def test_without_a_closer_look_the_tower_of_the_picture_shows_where_it_looked(tmp_path):
    config = dataclasses.replace(CONFIG, model=dataclasses.replace(CONFIG.model, reranking_layers=0))
    train(tasks.experiment("retrieve", config)[0], tmp_path, quiet=True)
    model = regard.load(tmp_path)
    [answer] = model.predict(["a red circle"], align=True)
    assert answer.target == ["a red circle"]
    assert answer.weights.shape == (1, 16)
    assert [look.name for look in model.trace(["a red circle"]).examples[0].attentions] == [
        "picture.query.attention",
        "text.query.attention",
    ]


def test_its_trace_has_the_text_over_the_picture(run, model, tmp_path):
    save(model.trace([texts(run)[0], sample(run, 2)]), tmp_path / "t.attn.safetensors")
    examples = load(tmp_path / "t.attn.safetensors").examples
    assert len(examples) == 2
    for example in examples:
        looks = {look.name: (look.query, look.key) for look in example.attentions}
        assert looks["reranking.layers.0.cross"] == ("text", "picture")
        assert looks["picture.query.attention"] == ("vector", "picture")
        assert looks["text.query.attention"] == ("vector", "text")
        assert list(looks)[-1] == "reranking.layers.0.cross"
        assert isinstance(example.axes["picture"], Image)
        assert isinstance(example.axes["text"], Text)


def test_an_index_is_searched_from_its_file(run, model, tmp_path):
    records = [Record(f"{number}.png", None, f"{run[0] / SAMPLES}:{number}") for number in (3, 1, 2)]
    model.indexed(records, "pictures").save(tmp_path / "p.safetensors")
    [answers] = regard.load(run[0]).among(tmp_path / "p.safetensors").predict([texts(run)[0]], best=9)
    assert sorted(each.text.rpartition("/")[2] for each in answers) == ["1.png", "2.png", "3.png"]


def test_what_is_beyond_the_closer_look_is_looked_at_where_it_is_asked_for(run, model):
    """model.rerank_top_k is 3, and five are asked for: all five are, so that one order holds for all."""
    [five] = model.predict([texts(run)[2]], best=5)
    assert [each.score for each in five] == sorted((each.score for each in five), reverse=True)


def test_an_index_of_another_model_is_refused(model):
    with pytest.raises(RefusedError, match=r"the index was made by another model.*make it anew: regard index RUN"):
        model.among(Index(torch.ones(2, 8), ["a", "b"], "texts", "another"))


def test_a_picture_is_no_question_for_pictures(run, model):
    model.among(model.indexed([Record(sample(run, 1), None, "input:1")], "pictures"))
    with pytest.raises(DataError, match=r"1\.png is a picture, and this index holds pictures, .*; give a text"):
        model.predict([sample(run, 1)])


def test_pictures_that_are_gone_are_named(run, model, tmp_path):
    (tmp_path / "x.png").write_bytes(png(torch.rand(3, 8, 8)))
    model.among(model.indexed([Record(str(tmp_path / "x.png"), None, "input:1")], "pictures"))
    (tmp_path / "x.png").unlink()
    with pytest.raises(
        DataError, match=r"1 of the 1 nearest pictures are no longer where the index has them, such as .*x\.png"
    ):
        model.predict(["a red circle"])


def test_a_run_without_samples_says_how_to_make_an_index(model):
    model.home = None
    with pytest.raises(
        RefusedError, match=r"this run left no samples \(samples/texts\.tsv\); make an index with regard index"
    ):
        model.predict(["a red circle"])


def test_what_it_knows(run, model):
    assert model.is_known("a red zebra")
    assert not model.is_known("zebra")
    assert model.fits(sample(run, 1))
    with pytest.raises(DataError, match=r"gone\.png"):
        model.is_known("gone.png")


def test_figures_are_the_same_from_a_table_as_from_what_was_drawn(run, model):
    _, experiment = run
    drawn = model.evaluate_examples(experiment.valid)
    records = [Record(f"{n}.png", text, f"{run[0] / SAMPLES}:{n}") for n, text in enumerate(texts(run), 1)]
    assert model.evaluate(records) == drawn
    assert drawn["text_recall10"].value >= drawn["text_recall5"].value >= drawn["text_recall1"].value


def test_a_search_finds_what_the_figures_say(run, model):
    figures = model.evaluate_examples(run[1].valid)
    found = model.predict(texts(run), best=1)
    right = [answers[0].text == sample(run, number) for number, answers in enumerate(found, 1)]
    assert figures["picture_recall1"].value == pytest.approx(100 * sum(right) / len(right))


def test_a_question_without_finite_numbers_has_an_error_and_all_others_their_answers(run, model, monkeypatch):
    asked = [texts(run)[0], sample(run, 1), texts(run)[1]]
    whole = dict(model.outcomes(asked, best=2))
    embed = model.embed

    def embedding(records, of):
        rows = torch.tensor([record.source == asked[2] for record in records])
        return embed(records, of).masked_fill(rows[:, None] & torch.tensor(len(records) < 3), float("nan"))

    monkeypatch.setattr(model, "embed", embedding)
    outcomes = dict(model.outcomes(asked, best=2))
    assert isinstance(outcomes[2], UndistributedError)
    assert [[each.text for each in outcomes[place]] for place in (0, 1)] == [
        [each.text for each in whole[place]] for place in (0, 1)
    ]
    with pytest.raises(UndistributedError, match="input:1: an answer needs scores that are finite"):
        model.trace([asked[2]])


def test_scores_that_are_not_finite_are_no_answer(run, model, monkeypatch):
    weighed = model.weighed
    monkeypatch.setattr(
        model,
        "weighed",
        lambda *given: [
            (pair, float("nan") if not number else score) for number, (pair, score) in enumerate(weighed(*given))
        ],
    )
    outcomes = dict(model.outcomes(texts(run)[:2], best=2))
    assert [isinstance(outcomes[place], UndistributedError) for place in range(2)] == [True, False]


def test_questions_whose_answers_are_known_are_not_searched_for(run, model):
    asked = [sample(run, 2), texts(run)[1], sample(run, 1)]
    outcomes = dict(model.outcomes(asked, done=frozenset({0, 2})))
    assert (outcomes[0], outcomes[2]) == ([], [])
    assert outcomes[1] == model.predict([asked[1]])


def test_records_that_cannot_be_measured_are_those_without_finite_numbers(run, model, monkeypatch):
    records = [model.task.prepare(each) for each in table.read(run[0] / SAMPLES)][:4]
    assert model.find_unscored(records) == {}
    broken = model.codec.tokens([records[2].target])[0][0]
    with torch.no_grad():
        for name, weights in model.model.texts.named_parameters():
            if "embedding" in name and len(weights) > broken:
                weights[broken] = float("nan")
    assert 2 in model.find_unscored(records)
