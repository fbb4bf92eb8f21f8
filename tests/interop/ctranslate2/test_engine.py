import dataclasses

import ctranslate2
import pytest
import torch
from torch.testing import assert_close

from regard.alignment.heads import Head
from regard.data.special_tokens import BOS, PAD
from regard.errors import RefusedError
from regard.interop.ctranslate2.engine import Ctranslate2, opened
from regard.interop.ctranslate2.specification import files
from regard.user_cache import cache_folder

from ..transformers_ import KINDS, run, sources, untrained
from ..transformers_ import opened as native

TEXTS = sources(60)
SOAKED = Head("decoder.0.cross"), Head("decoder.1.cross", 0, True)


def engine(trained, folder, precision="float32"):
    for name, data in files(trained, precision).items():
        (folder / name).write_bytes(data)
    return Ctranslate2(trained, folder, precision)


@pytest.mark.parametrize("kind", KINDS)
def test_greedy_search_writes_the_same_tokens_with_the_same_scores(kind):
    ours, theirs = native(kind).predict(TEXTS), opened(run(kind)).predict(TEXTS)
    assert len({each.text for each in ours}) > 15
    for mine, other in zip(ours, theirs, strict=True):
        assert mine.target == other.target
        assert other.score == pytest.approx(mine.score, abs=1e-5)


def test_beam_search_of_a_trained_model_writes_the_same_tokens():
    ours, theirs = native("pre", 60).predict(TEXTS, beam=4), opened(run("pre", 60)).predict(TEXTS, beam=4)
    same = [mine.target == other.target for mine, other in zip(ours, theirs, strict=True)]
    assert sum(same) >= 57  # the library's rule for the end of a search is another


def test_several_answers_are_different_and_best_first():
    [answers] = opened(run("pre")).predict(TEXTS[:1], beam=4, best=3)
    assert len({answer.text for answer in answers}) == 3
    assert [each.score for each in answers] == sorted((each.score for each in answers), reverse=True)


@pytest.mark.parametrize(
    "head", [Head(), Head("decoder.0.cross", 1), *(pytest.param(head, marks=pytest.mark.soak) for head in SOAKED)]
)
def test_alignments_are_read_from_the_chosen_head(head, tmp_path):
    trained = native("pre")
    trained.head = head
    for mine, other in zip(
        trained.predict(TEXTS[:8], align=True), engine(trained, tmp_path).predict(TEXTS[:8], align=True), strict=True
    ):
        assert_close(other.weights, mine.weights, atol=1e-5, rtol=0)
        assert mine.links == other.links


def test_int8_of_a_trained_model_is_smaller_and_nearly_the_same():
    ours, rounded = native("pre", 60).predict(TEXTS), opened(run("pre", 60), precision="int8").predict(TEXTS)
    pairs = [(mine.target, other.target) for mine, other in zip(ours, rounded, strict=True)]
    alike = sum(a == b for mine, other in pairs for a, b in zip(mine, other, strict=False))
    assert alike >= 0.9 * sum(len(mine) for mine, _ in pairs)
    sizes = {each: len(files(native("pre"), each)["model.bin"]) for each in ("float32", "int8")}
    assert sizes["int8"] < 0.6 * sizes["float32"]  # most of the rest is the table of positions


def test_one_input_in_int8_has_one_thread_and_many_have_all(tmp_path, monkeypatch):
    threads = []
    found = engine(native("pre"), tmp_path, "int8")
    monkeypatch.setattr(torch, "get_num_threads", lambda: 2)
    monkeypatch.setattr(found, "translator", lambda count: threads.append(count) or found._translator(1))
    found.predict(TEXTS[:1])
    found.predict([TEXTS[0]] * 2)
    assert threads == [1, 2]


def test_padding_and_beginning_are_never_written(tmp_path):
    trained = untrained()
    with torch.no_grad():
        trained.model.decoder.output.bias[[PAD, BOS]] += 20
    ours, theirs = trained.predict(TEXTS[:6]), engine(trained, tmp_path).predict(TEXTS[:6])
    assert [each.target for each in ours] == [each.target for each in theirs]


def test_what_was_cut_off_ranks_behind_what_has_ended(tmp_path):
    trained = untrained()
    found = engine(trained, tmp_path).predict(TEXTS[:20], beam=4, best=4)
    ended = [[each.target[-1] == "<eos>" for each in answers] for answers in found]
    assert all(each == sorted(each, reverse=True) for each in ended)


def test_the_exported_model_is_kept_in_the_users_cache_and_not_beside_the_run():
    folder = opened(run("post")).directory
    assert folder.parent == cache_folder("engines")
    assert run("post") not in folder.parents
    assert not (run("post") / "engines").exists()
    assert (folder / "model.bin").is_file()
    assert ctranslate2.Translator(str(folder)).compute_type == "float32"


@pytest.mark.parametrize(
    ("setting", "value"),
    [("beam_groups", 2), ("mbr", "chrf"), ("coverage_penalty", 0.5), ("block_ngrams", 3), ("forced_bos", 7)],
)
def test_settings_that_the_library_would_not_heed_are_refused(setting, value):
    found = opened(run("pre"))
    found.config = dataclasses.replace(found.config, search=dataclasses.replace(found.config.search, **{setting: value}))
    with pytest.raises(RefusedError, match=f"the engine ctranslate2 has no search.{setting}, got {value}: leave it or"):
        found.predict(TEXTS[:1])


def test_answers_longer_than_its_table_of_positions_are_refused():
    found = opened(run("pre"))
    found.config = dataclasses.replace(found.config, search=dataclasses.replace(found.config.search, max_length=5000))
    with pytest.raises(RefusedError, match=r"has room for 1023 tokens of this model's answers, got search.max_length=5000"):
        found.predict(TEXTS[:1])


def test_what_an_answer_must_hold_is_refused():
    with pytest.raises(RefusedError, match="cannot be told what an answer begins with, holds or does not hold"):
        opened(run("pre")).predict(TEXTS[:1], prefix="汤姆")


@pytest.mark.parametrize("way", ["stream", "listen"])
def test_an_answer_that_is_not_whole_is_refused(way):
    with pytest.raises(RefusedError, match="the engine ctranslate2 gives an answer when it is whole: leave --engine or"):
        getattr(opened(run("pre")), way)(TEXTS[0])


def test_a_trace_is_refused():
    with pytest.raises(RefusedError, match="a trace needs the weights of every attention, and the engine ctranslate2 gives"):
        opened(run("pre")).trace(TEXTS[:1])


def test_another_device_is_refused():
    with pytest.raises(RefusedError, match="the engine ctranslate2 runs on the CPU here, got --device cuda"):
        opened(run("pre"), device="cuda")
