import dataclasses

import pytest
import torch

import regard
from regard import tasks
from regard.config import Data, Model, Train
from regard.data.table import Record
from regard.decoding.constraints.spec import ConstraintSpec
from regard.decoding.logprobs import UndistributedError
from regard.inference.prediction import Prediction
from regard.tasks.translate import Config
from regard.training.loop import train


@pytest.fixture(scope="module", params=["additive", "none"])
def trained(request, tmp_path_factory):
    directory = tmp_path_factory.mktemp("run")
    model = dataclasses.replace(Model(hidden_size=24), attention=dataclasses.replace(Model().attention, name=request.param))
    config = Config(data=Data(batch_tokens=512, samples=120), model=model, train=Train(max_steps=8, evaluate_every=4))
    experiment, _ = tasks.experiment("translate", config)
    train(experiment, directory, quiet=True)
    return request.param, experiment, directory


def test_answers_come_in_the_order_of_the_questions_whatever_their_length(trained):
    loaded = regard.load(trained[2])
    texts = ["Tom chases Jerry", "the big dog in the park likes a small cat every day", "Tom", "Mary likes Tom"]
    together = [answer.text for answer in loaded.predict(texts)]
    assert together == [loaded.predict([text])[0].text for text in texts]


def test_several_answers_are_different_and_best_first(trained):
    [answers] = regard.load(trained[2]).predict(["Tom chases Jerry"], beam=4, best=3)
    assert len({answer.text for answer in answers}) == len(answers) == 3
    assert [answer.score for answer in answers] == sorted((answer.score for answer in answers), reverse=True)


def test_an_alignment_has_a_row_for_each_piece_of_the_answer(trained):
    name, _, directory = trained
    [answer] = regard.load(directory).predict(["Tom chases Jerry"], align=True)
    if name == "none":
        assert answer.weights is None
        return
    assert answer.weights.shape == (len(answer.target), len(answer.source))
    assert answer.source == ["Tom", "chases", "Jerry", "<eos>"]
    torch.testing.assert_close(answer.weights.sum(-1), torch.ones(len(answer.target)))
    assert all(place == row for row, (_, place) in enumerate(answer.links))


def test_looking_at_itself_is_not_looking_at_the_source(tmp_path):
    attention = dataclasses.replace(Model().attention, name="none")
    config = Config(
        data=Data(samples=60),
        model=Model(hidden_size=16, decoder="transformer", attention=attention),
        train=Train(max_steps=1),
    )
    train(tasks.experiment("translate", config)[0], tmp_path, quiet=True)
    [answer] = regard.load(tmp_path).predict(["Tom chases Jerry"], align=True)
    assert answer.weights is None


def test_what_a_pointer_copies_is_saved_with_it(tmp_path):
    model = Model(hidden_size=16, attention=dataclasses.replace(Model().attention, name="pointer"))
    config = Config(data=Data(samples=60), model=model, train=Train(max_steps=1))
    experiment, _ = tasks.experiment("translate", config)
    train(experiment, tmp_path, quiet=True)
    loaded = regard.load(tmp_path)
    table = loaded.model.decoder.outcome.copying.counterparts
    assert table.tolist() == experiment.codec.counterparts()
    assert "decoder.outcome.copying.counterparts" in loaded.model.state_dict()
    texts = ["Tom chases Jerry", "Mary likes Tom"]
    together, alone = loaded.predict(texts, beam=3), [loaded.predict([text], beam=3)[0] for text in texts]
    assert [each.text for each in together] == [each.text for each in alone]


def test_nothing_asked_is_nothing_answered(trained):
    assert regard.load(trained[2]).predict([]) == []


def test_figures_are_those_of_the_task(trained):
    records = [Record("Tom chases Jerry", "汤姆追逐杰瑞", "a:1"), Record("Mary likes Tom", "玛丽喜欢汤姆", "a:2")]
    figures = regard.load(trained[2]).evaluate(records)
    assert set(figures) == {"bleu", "chrf", "exact", "bleu_by_length", "perplexity"}
    assert 1 <= figures["perplexity"].low <= figures["perplexity"].value <= figures["perplexity"].high


def test_answers_hold_what_is_asked_alone_and_in_a_batch(trained):
    loaded = regard.load(trained[2])
    texts = ["Tom chases Jerry", "the big dog in the park likes a small cat every day", "Mary likes Tom"]
    asked = {"prefix": ["玛丽", "", "狗"], "include": [["猫"], ["喜欢", "狗"], []], "exclude": [[], ["猫"], ["汤", "姆"]]}
    together = loaded.predict(texts, **asked)
    for number, (text, answer) in enumerate(zip(texts, together, strict=True)):
        assert answer.text.startswith(asked["prefix"][number])
        assert all(phrase in answer.text for phrase in asked["include"][number])
        assert not any(phrase in answer.text for phrase in asked["exclude"][number])
        [alone] = loaded.predict([text], **{name: [each[number]] for name, each in asked.items()})
        assert alone.text == answer.text


def test_a_trace_shows_the_answer_that_was_asked_for(trained):
    loaded = regard.load(trained[2])
    [answer] = loaded.predict(["Tom chases Jerry"], beam=3, prefix="玛丽")
    trace = loaded.trace(["Tom chases Jerry"], beam=3, constraints=[ConstraintSpec("玛丽")])
    assert trace.example().axes["target"].text == answer.text


def test_an_answer_is_as_long_as_the_config_allows_for_what_it_must_hold(trained):
    loaded = regard.load(trained[2])
    loaded.config = dataclasses.replace(loaded.config, search=dataclasses.replace(loaded.config.search, max_length=3))
    with pytest.raises(ValueError, match="length needs to be 4 or more for all that sentence 0 must hold, got 3"):
        loaded.predict(["Tom chases Jerry"], prefix="玛丽玛丽")


@pytest.mark.parametrize(("draw", "risk"), [("beam", "chrf"), ("sample", "bleu")])
def test_the_least_risk_scores_by_what_an_answer_is_worth(trained, draw, risk):
    loaded = regard.load(trained[2])
    search = dataclasses.replace(loaded.config.search, mbr=risk, mbr_from=draw, mbr_candidates=4)
    loaded.config = dataclasses.replace(loaded.config, search=search)
    [answers] = loaded.predict(["Tom chases Jerry"], best=2)
    assert len({answer.text for answer in answers}) == 2
    assert all(0 <= answer.score <= 1 for answer in answers)


def test_a_source_that_is_too_long_is_measured_by_an_empty_answer(trained, monkeypatch):
    model, seen = regard.load(trained[2]), []
    most = model.codec.max_source_length - 1
    monkeypatch.setattr(model, "_make_prediction", lambda example, *_, **__: Prediction(example.record.where, 0.0, [], []))
    monkeypatch.setattr(model.task.module, "measure", lambda outputs, *_: seen.extend(outputs) or {})
    model.evaluate([Record("Tom " * (most + 1), "x", "1"), Record("Tom", "x", "2"), Record("Tom " * most, "x", "3")])
    assert seen == ["", "2", "3"]


def test_what_is_too_long_is_not_read(trained):
    model = regard.load(trained[2])
    most = model.codec.max_source_length - 1
    assert model.fits("Tom " * most)
    assert not model.fits("Tom " * (most + 1))
    assert not model.fits("☃")


def test_a_source_without_finite_scores_has_an_error_and_all_others_their_answers(trained):
    loaded, texts = regard.load(trained[2]), ["Tom chases Jerry", "Mary likes Tom", "Tom", "the big dog", "Jerry likes Tom"]
    whole = dict(loaded.predict_unordered(texts, beam=2))
    broken = loaded.codec.source.encode("Jerry")[0]
    with torch.no_grad():
        loaded.model.encoder.embedding.table.weight[broken] = float("nan")
    outcomes = dict(loaded.outcomes(texts, beam=2))
    assert [isinstance(outcomes[place], UndistributedError) for place in range(5)] == [True, False, False, False, True]
    for place in (1, 2, 3):
        assert [each.text for each in outcomes[place]] == [each.text for each in whole[place]]
        assert outcomes[place][0].score == pytest.approx(whole[place][0].score, abs=1e-5)
    with pytest.raises(
        UndistributedError, match=r"input:[15]: decoding needs an output that gives some token a probability"
    ):
        loaded.predict(texts)


def test_batches_whose_answers_are_known_are_not_computed(trained, monkeypatch):
    loaded, texts = regard.load(trained[2]), ["Tom likes Mary", "Mary likes Tom", "Tom chases Tom", "Mary chases Mary"]
    loaded.config = dataclasses.replace(loaded.config, search=dataclasses.replace(loaded.config.search, batch_size=2))
    whole = list(loaded.outcomes(texts))
    first, sizes, answer = [index for index, _ in whole[:2]], list[int](), loaded._answer
    monkeypatch.setattr(loaded, "_answer", lambda source, *rest: sizes.append(len(source.data)) or answer(source, *rest))
    rest = list(loaded.outcomes(texts, done=frozenset(first)))
    assert sizes == [2]
    assert rest == [(index, []) for index in first] + whole[2:]
    sizes.clear()
    list(loaded.outcomes(texts, done=frozenset(first[:1])))  # the whole batch is computed again
    assert sizes == [2, 2]


def test_what_a_target_makes_of_scores_is_found_too(trained):
    loaded = regard.load(trained[2])
    records = [loaded.task.prepare(Record("Tom", target, "t:1")) for target in ("汤姆", "杰瑞", "汤姆")]
    broken = loaded.codec.encode_all(records).examples[1].target[0]
    with torch.no_grad():
        loaded.model.decoder.embedding.table.weight[broken] = float("nan")
    assert 1 in loaded.find_unscored(records)
