import dataclasses
from random import Random

import pytest
import torch

import regard
from regard.config import Data, Model, Search, Train
from regard.data.lines import Line
from regard.data.table import read
from regard.errors import DataError
from regard.inference import backtranslate as backtranslation
from regard.inference.backtranslate import Pair, Way, backtranslate, sample_sources
from regard.tasks import experiment
from regard.tasks.reverse import Config
from regard.training.loop import train

DATA = Data(samples=60, batch_tokens=64, max_source_length=5, max_target_length=5)
TEXTS = ["a b c", "", "d e", "δ", "f g h"]


def config(data=DATA, **settings) -> Config:
    usual = {"max_steps": 3, "evaluate_every": 3, "checkpoint_every": 3, "device": "cpu"}
    return Config(data=data, model=Model(hidden_size=8), train=Train(**{**usual, **settings}), search=Search(max_length=6))


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    path = tmp_path_factory.mktemp("reverse")
    train(experiment("reverse", config())[0], path, quiet=True)
    return path


@pytest.fixture(scope="module")
def model(directory):
    return regard.load(directory, "cpu")


def lines(texts=TEXTS) -> list[Line]:
    return [Line(text, f"mono.txt:{number}") for number, text in enumerate(texts, 1)]


def pairs(model, way=Way(), texts=TEXTS) -> list[Pair]:
    return [pair for window in backtranslate(model, lines(texts), way) for pair in window]


@pytest.mark.parametrize(("way", "beam"), [(Way("greedy"), 1), (Way("beam", beam=2), 2)])
def test_sources_are_what_the_model_answers(model, way, beam):
    answers = [answer.text for answer in model.predict([TEXTS[0], TEXTS[2], TEXTS[4]], beam=beam)]
    expected = [answers[0], "", answers[1], "", answers[2]]  # an empty line, and one of which the model knows nothing
    assert [pair.source for pair in pairs(model, way)] == [each.strip() for each in expected]
    assert [pair.target for pair in pairs(model, way)] == TEXTS


def test_what_is_longer_than_the_model_reads_has_no_source(model):
    assert [bool(pair.source) for pair in pairs(model, texts=["a b c d", "a b c d e"])] == [True, False]


def test_drawn_sources_follow_from_the_seed(model):
    texts = ["a b c d"] * 12
    first = pairs(model, Way("sample", seed=1), texts)
    assert first == pairs(model, Way("sample", seed=1), texts)
    assert first != pairs(model, Way("sample", seed=2), texts)
    assert len({pair.source for pair in first}) > 6
    assert "<unk>" not in " ".join(pair.source for pair in first)


def test_a_cold_temperature_draws_what_greedy_search_finds(model):
    found = sample_sources(model, ["a b c", "d e"], 1e-6, torch.Generator())
    assert found == [answer.text for answer in model.predict(["a b c", "d e"], beam=1)]
    assert sample_sources(model, [], 1.0, torch.Generator()) == []


def test_windows_change_nothing_but_draws(model, monkeypatch):
    whole = pairs(model, Way("greedy", noise=True))
    monkeypatch.setattr(backtranslation, "WINDOW", 2)
    assert [len(window) for window in backtranslate(model, lines(), Way("greedy"))] == [2, 2, 1]
    assert pairs(model, Way("greedy", noise=True)) == whole


def test_noise_and_tag_go_onto_sources_and_never_onto_what_is_empty():
    pair = backtranslation._dressed(Pair(" a\tb\nc ", "x"), Way(tag="<BT>", noise=False), Random(0))
    assert pair == Pair("<BT> a b c", "x")
    assert backtranslation._dressed(Pair("", "x"), Way(tag="<BT>", noise=True), Random(0)) == Pair("", "x")


def test_a_tab_in_a_target_is_refused_with_its_place(model):
    with pytest.raises(DataError, match=r"mono\.txt:2 has a tab in it, which would part the target in a table; take it out"):
        pairs(model, texts=["a", "b\tc"])


def test_a_way_that_is_none_is_refused():
    with pytest.raises(ValueError, match="a source is found by beam, sample or greedy, got 'best'"):
        Way("best")
    with pytest.raises(ValueError, match="a temperature of 0 draws nothing; that is greedy search"):
        Way("sample", temperature=0.0)


def test_a_model_learns_on_from_real_and_synthetic_pairs(model, directory, tmp_path):
    """Reverse model, synthetic pairs, and the training of a forward model that goes on with both."""
    synthetic, real = tmp_path / "synthetic.tsv", tmp_path / "real.tsv"
    made = [pair for pair in pairs(model, Way("sample"), [" ".join("abcd"[:size]) for size in (2, 3, 4)] * 5) if pair.source]
    synthetic.write_text("".join(f"{pair.source}\t{pair.target}\n" for pair in made), encoding="utf-8")
    real.write_text("a b\tb a\nc d\td c\n", encoding="utf-8")
    data = dataclasses.replace(DATA, train=f"{real}+{synthetic}+{real}", valid=str(real), over_long="truncate")
    assert len(list(read(data.train))) == 4 + len(made)
    chosen, report = experiment("reverse", config(data, init_from=str(directory)))
    assert report.encoded == 4 + len(made)
    before = {name: weight.clone() for name, weight in chosen.model.state_dict().items()}
    assert all(torch.equal(weight, model.model.state_dict()[name]) for name, weight in before.items())
    train(chosen, tmp_path / "run", quiet=True)
    after = regard.load(tmp_path / "run", "cpu").model.state_dict()
    assert any(not torch.equal(weight, after[name]) for name, weight in before.items())
