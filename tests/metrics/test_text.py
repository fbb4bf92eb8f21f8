import math

import numpy as np
import pytest
import sacrebleu

from regard.metrics.text import Bleu, Chrf, ErrorRate, ExactMatch, bootstrap, measure, perplexity, score_by_length

OUTPUTS = ["the cat sat on the mat", "a dog barks loudly at me today", "hello there"]
RIGHT = ["the cat sat on a mat", "the dog barks loudly at him today", "hello there"]


@pytest.mark.parametrize("tokenize", ["none", "13a", "zh"])
def test_bleu_is_sacrebleu_s_with_its_signature(tokenize):
    found = measure(Bleu(tokenize), OUTPUTS, RIGHT)
    assert found.value == pytest.approx(sacrebleu.corpus_bleu(OUTPUTS, [RIGHT], tokenize=tokenize).score)
    assert f"tok:{tokenize}" in found.signature
    assert found.signature.startswith("nrefs:1|case:mixed|")
    assert found.low <= found.value <= found.high


def test_chinese_is_cut_into_characters():
    assert measure(Bleu("zh"), ["汤姆追逐杰瑞"], ["汤姆追逐杰瑞"]).value == pytest.approx(100)


def test_several_references_count_as_sacrebleu_counts_them():
    streams = [RIGHT, ["a cat sat on the mat", "a dog barks at me", "hello"]]
    both = list(zip(*streams, strict=True))
    found = measure(Bleu(), OUTPUTS, both)
    assert found.value == pytest.approx(sacrebleu.corpus_bleu(OUTPUTS, streams).score)
    assert found.signature.startswith("nrefs:2|")
    assert measure(Bleu(), OUTPUTS, [both[0], both[1], [RIGHT[2]]]).signature.startswith("nrefs:var|")


@pytest.mark.parametrize("words", [0, 2])
def test_chrf_is_sacrebleu_s(words):
    found = measure(Chrf(words), OUTPUTS, RIGHT)
    assert found.value == pytest.approx(sacrebleu.corpus_chrf(OUTPUTS, [RIGHT], word_order=words).score)
    assert f"nw:{words}" in found.signature


def test_exact_match_counts_whole_outputs():
    assert measure(ExactMatch(), OUTPUTS, RIGHT).value == pytest.approx(100 / 3)
    assert measure(ExactMatch(), ["a ", "b"], [["x", "a"], ["c"]]).value == 50.0


def test_error_rates_by_hand():
    # "a c c d" for "a b c": one substituted, one inserted, of three words; "" for "x y": two deleted
    assert measure(ErrorRate(), ["a c c d", ""], ["a b c", "x y"]).value == pytest.approx(100 * 4 / 5)
    assert measure(ErrorRate("characters"), ["kitten"], ["sitting"]).value == pytest.approx(100 * 3 / 7)
    assert measure(ErrorRate("phonemes"), ["K AE1 T"], ["K AE1 T S"]).value == pytest.approx(25)


def test_of_several_references_the_nearest_counts():
    assert measure(ErrorRate(), ["a b"], [["x y z", "a b c"]]).value == pytest.approx(100 / 3)


def test_an_empty_reference_is_no_trouble():
    assert measure(ErrorRate(), [""], [""]).value == 0.0
    assert measure(ErrorRate(), ["a"], [""]).value == 100.0


def test_perplexity_is_over_all_tokens():
    found = perplexity([2 * math.log(4), 2 * math.log(16)], [2, 2])
    assert found.value == pytest.approx(8)
    assert (found.low, found.high) == pytest.approx((4, 16))


def test_the_bootstrap_is_seeded_and_covers_what_it_should():
    draw = np.random.default_rng(0)
    hits = 0
    for trial in range(100):
        rows = np.stack([draw.random(100) < 0.3, np.ones(100)], axis=1)
        low, high = bootstrap(rows, lambda total: total[0] / total[1], resamples=200, seed=trial)
        hits += low <= 0.3 <= high
    assert 88 <= hits <= 100
    again = bootstrap(rows, lambda total: total[0] / total[1], resamples=200, seed=99)
    assert again == (low, high)


def test_the_bootstrap_holds_few_draws_at_a_time(monkeypatch):
    rows = np.stack([np.arange(50) % 2, np.ones(50)], axis=1).astype(float)
    whole = bootstrap(rows, lambda total: total[0] / total[1])
    monkeypatch.setattr("regard.metrics.text.BLOCK", 1000)
    assert bootstrap(rows, lambda total: total[0] / total[1]) == whole


def test_scores_by_length_are_those_of_the_sentences_in_each_bucket():
    found = score_by_length(ExactMatch(), ["a", "b", "c", "d"], ["a", "x", "c", "d"], [5, 10, 11, 99], edges=(10, 20))
    assert found == [(0, 10, 2, 50.0), (11, 20, 1, 100.0), (21, None, 1, 100.0)]
    assert [bucket.first for bucket in score_by_length(ExactMatch(), ["a"], ["a"], [50])] == [41]


def test_what_does_not_belong_together_is_refused():
    with pytest.raises(
        ValueError, match="Bleu needs one reference for each of one or more outputs, got 1 references and 2 outputs"
    ):
        measure(Bleu(), ["a", "b"], ["a"])
    with pytest.raises(ValueError, match="got 0 references and 0 outputs"):
        measure(ExactMatch(), [], [])
    with pytest.raises(ValueError, match="a length for each output, got 1 lengths and 2 outputs"):
        score_by_length(ExactMatch(), ["a", "b"], ["a", "b"], [1])
