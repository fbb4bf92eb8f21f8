import pytest
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

from regard.data.special_tokens import EOS
from regard.metrics.reward import Reward, cut_at_eos, edit_similarity

WORDS = {4: "the", 5: "cat", 6: "sat", 7: "down", 8: "猫", 9: "追", 10: "鼠"}


def text(numbers) -> str:
    return " ".join(WORDS[number] for number in numbers)


def chinese(numbers) -> str:
    return "".join(WORDS[number] for number in numbers)


@pytest.mark.parametrize("metric", ["chrf", "bleu", "edit", "exact"])
def test_the_reference_earns_everything_and_what_follows_the_end_does_not_count(metric):
    reward = Reward(metric, text)
    assert reward([4, 5, 6, EOS], [4, 5, 6, EOS, 7]) == 1.0
    assert reward([], [EOS]) == 1.0


def test_exact_is_all_or_nothing():
    assert Reward("exact", text)([4, 5, 6, EOS], [4, 5, 7, EOS]) == 0.0


def test_edit_is_what_the_longer_side_need_not_change():
    reward = Reward("edit", text)
    assert reward([4, 6, 7, EOS], [4, 5, 6, EOS]) == pytest.approx(1 / 3)  # an insertion and a deletion
    assert reward([4, EOS], [4, 5, 6, 7, EOS]) == pytest.approx(0.25)
    assert reward([EOS], [4, 5, EOS]) == 0.0
    assert edit_similarity([4, 5], [5, 4]) == 0.0


def test_chrf_and_bleu_are_those_of_a_sentence():
    output, reference = [4, 5, 7, EOS], [4, 5, 6, EOS]
    expected = CHRF().sentence_score("the cat down", ["the cat sat"]).score / 100
    assert Reward("chrf", text)(output, reference) == pytest.approx(expected)
    expected = BLEU(effective_order=True).sentence_score("the cat down", ["the cat sat"]).score / 100
    assert Reward("bleu", text)(output, reference) == pytest.approx(expected)
    assert 0 < expected < 1


def test_bleu_cuts_chinese_into_characters_unless_told_otherwise():
    output, reference = [8, 9, 10, 8, EOS], [8, 9, 10, 9, EOS]
    assert Reward("bleu", chinese)(output, reference) > 0.5
    assert Reward("bleu", chinese, "13a")(output, reference) == 0.0


def test_numbers_end_before_eos():
    assert cut_at_eos([4, EOS, 5]) == [4]
    assert cut_at_eos((4, 5)) == [4, 5]
