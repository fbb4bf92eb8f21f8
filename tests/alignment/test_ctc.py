import itertools
import math

import pytest
import torch

from regard.alignment.ctc import align_ctc, time_words_by_ctc
from regard.alignment.words import Units


def collapse(path):
    """The text of a CTC path: no repeats, then no blanks."""
    return [label for label, _ in itertools.groupby(path) if label]


@pytest.mark.parametrize("tokens", [[], [1], [1, 2], [2, 2], [1, 2, 1]])
def test_the_best_path_is_the_best_of_all_paths_that_spell_the_text(tokens):
    torch.manual_seed(len(tokens))
    log_probs = torch.randn(5, 3, dtype=torch.float64).log_softmax(-1)
    spelling = [path for path in itertools.product(range(3), repeat=5) if collapse(path) == tokens]
    best = max(spelling, key=lambda path: log_probs[range(5), list(path)].sum())
    found = align_ctc(log_probs, tokens)
    assert found.log_probability == pytest.approx(log_probs[range(5), list(best)].sum().item())
    frames = [
        (label, [frame for frame, _ in run]) for label, run in itertools.groupby(enumerate(best), lambda pair: pair[1])
    ]
    runs = [[own[0], own[-1] + 1] for label, own in frames if label]
    assert found.segments.tolist() == runs


def test_a_text_may_have_more_tokens_than_a_step_has_numbers():
    tokens = [1 + place % 2 for place in range(100)]
    log_probs = torch.full((200, 3), math.log(0.01))
    log_probs[range(0, 200, 2), tokens] = log_probs[1::2, 0] = math.log(0.98)
    path = align_ctc(log_probs, tokens)
    assert path.segments.tolist() == [[2 * place, 2 * place + 1] for place in range(100)]
    assert path.log_probability == pytest.approx(200 * math.log(0.98))


def test_words_extend_from_their_spikes_to_the_pause_and_no_further_than_their_reach():
    log_probs = torch.full((30, 3), math.log(0.01))
    log_probs[:, 0] = math.log(0.98)
    for frame, token in ((6, 1), (8, 2), (20, 1)):
        log_probs[frame] = torch.tensor([0.1, 0.1, 0.1]).log()
        log_probs[frame, token] = math.log(0.8)
    units = Units(("ab", "a"), torch.tensor([[True, True, False], [False, False, True]]))
    activity = torch.zeros(30, dtype=torch.bool)
    activity[4:12] = activity[18:29] = True
    words = time_words_by_ctc(log_probs, [1, 2, 1], units, 0.02, activity=activity)
    assert [word.text for word in words] == ["ab", "a"]
    assert [time for word in words for time in (word.start, word.end)] == pytest.approx([0.08, 0.24, 0.36, 0.58])
    assert [word.confidence for word in words] == pytest.approx([0.8, 0.8])
    near = time_words_by_ctc(log_probs, [1, 2, 1], units, 0.02, activity=activity, reach=0.04)
    assert near[1].end == pytest.approx(0.46)


def test_a_text_that_does_not_fit_is_refused():
    with pytest.raises(ValueError, match=r"2 tokens needs 3 frames .* got 2; the text is too long for the sound"):
        align_ctc(torch.zeros(2, 3), [1, 1])
    with pytest.raises(ValueError, match="tokens from 0 to 2 without the blank, 0"):
        align_ctc(torch.zeros(9, 3), [1, 0])
