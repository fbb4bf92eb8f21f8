"""A language model that joins the search of a translator; neither has learnt."""

from dataclasses import replace

import pytest

import regard
from regard.decoding.fusion.language_model import LanguageModel
from regard.errors import ConfigError, RefusedError
from regard.inference.language_model import check_vocabulary, load_language_model

TINY = {"model": {"hidden_size": 8}, "train": {"max_steps": 1, "device": "cpu"}, "quiet": True}


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    regard.train("reverse", data={"samples": 40}, out=folder / "model", **TINY)
    (folder / "texts.txt").write_text("a b c d\nb c d e\n")
    table = {"train": str(folder / "texts.txt"), "valid": str(folder / "texts.txt")}
    regard.train("language_model", data=table | {"vocab_from": str(folder / "model")}, out=folder / "lm", **TINY)
    regard.train("language_model", data=table, out=folder / "other", **TINY)
    return folder


@pytest.fixture
def load(runs):
    def predictor(**search):
        trained = regard.load(runs / "model", "cpu")
        trained.config = replace(trained.config, search=replace(trained.config.search, max_length=6, **search))
        return trained

    return predictor


def test_a_language_model_joins_the_search_with_its_weight(runs, load):
    plain, none, joined = load(), load(lm=str(runs / "lm"), lm_weight=0.0), load(lm=str(runs / "lm"), lm_weight=0.5)
    assert none.fuse(())[1] is None
    [scorer] = joined.fuse(())[1].scorers
    assert isinstance(scorer, LanguageModel)
    assert scorer.weight == 0.5
    answers = [each.predict("a b c", beam=3) for each in (plain, none, joined)]
    assert answers[0] == answers[1]
    assert answers[2].score < answers[0].score


def test_another_vocabulary_is_refused_with_advice(runs, load):
    advice = "regard train language_model --data.train=FILE --data.vocab_from="
    with pytest.raises(RefusedError, match=f"other has .* tokens .*{advice}"):
        load(lm=str(runs / "other")).predict("a b")
    with pytest.raises(RefusedError, match="is a run of reverse, which reads a source"):
        load_language_model(str(runs / "model"), load())
    trained = load()
    check_vocabulary("itself", trained, trained, "")


def test_answers_that_are_not_searched_for_as_a_whole_decline(runs, load):
    with pytest.raises(ConfigError, match=r"search\.lm=.* is for answers that are searched for as a whole"):
        list(load(lm=str(runs / "lm")).stream("a b"))
    with pytest.raises(ConfigError, match=r"search\.precision=int8 is for plain search"):
        load(lm=str(runs / "lm"), precision="int8").predict("a b")
