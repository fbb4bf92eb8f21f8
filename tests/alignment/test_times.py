import pytest
import torch

from regard.alignment.times import (
    detect_activity,
    find_segments,
    follow_path,
    select_heads,
    smooth,
    spread_gaps,
    time_spoken_words,
    time_words,
)
from regard.alignment.words import Units

UNITS = Units(("ab", "c"), torch.tensor([[True, True, False, False], [False, False, True, False]]))  # EOS is in none
SPANS = [(2, 8), (8, 14), (20, 30), (30, 34)]


def plant(spans, frames, width=2.0, noise=0.0):
    """Weights of tokens that are said in these frames, with a bell around the middle of each."""
    torch.manual_seed(0)
    middle = torch.tensor([(first + last - 1) / 2 for first, last in spans])[:, None]
    size = torch.tensor([(last - first) / 2 for first, last in spans])[:, None]
    bells = torch.exp(-(((torch.arange(frames) - middle) / size / (width / 2)) ** 2))
    weights = bells + noise * torch.rand(len(spans), frames)
    return weights / weights.sum(1, keepdim=True)


@pytest.mark.parametrize("noise", [0.0, 0.1])
def test_words_get_the_times_at_which_they_were_planted_without_the_pause_between_them(noise):
    activity = torch.zeros(34, dtype=torch.bool)
    activity[2:14] = activity[20:30] = True
    words = time_words(plant(SPANS, 34, noise=noise), UNITS, 0.01, activity=activity)
    assert [word.text for word in words] == ["ab", "c"]
    starts_and_ends = [time for word in words for time in (word.start, word.end)]
    assert starts_and_ends == pytest.approx([0.02, 0.14, 0.20, 0.30], abs=0.011)
    assert all(0.5 < word.confidence <= 1 for word in words)


def test_probabilities_lower_the_confidence_of_their_word_alone():
    weights = plant(SPANS, 34)
    plain = time_words(weights, UNITS, 0.01)
    doubtful = time_words(weights, UNITS, 0.01, probabilities=torch.tensor([0.5, 1.0, 1.0, 1.0]))
    assert doubtful[0].confidence == pytest.approx(0.75 * plain[0].confidence)
    assert doubtful[1].confidence == pytest.approx(plain[1].confidence)


def test_a_path_that_moves_forward_by_itself_ends_each_token_where_it_stopped():
    weights = torch.zeros(3, 10)
    weights[[0, 1, 2], [3, 2, 9]] = 1.0  # the second would go back, and stays
    assert follow_path(weights).tolist() == [[0, 4], [4, 4], [4, 10]]
    assert time_words(weights, Units(("a", "b", "c"), torch.eye(3, dtype=torch.bool)), 0.1, method="path")[1].text == "c"


def test_segments_divide_the_frames_and_smoothing_removes_a_spike():
    weights = plant([(0, 5), (5, 10), (10, 15)], 15, width=1.0)
    assert find_segments(weights).tolist() == [[0, 5], [5, 10], [10, 15]]
    spike = weights.clone()
    spike[0, 12] = 1.0
    assert find_segments(smooth(spike, 3)).tolist() == [[0, 5], [5, 10], [10, 15]]


def test_the_head_that_reads_straight_on_is_selected():
    straight = plant([(place, place + 1) for place in range(10)], 10)
    assert select_heads(torch.stack([torch.full((10, 10), 0.1), straight, straight.flip(0)])) == [1]


def test_gaps_are_divided_at_their_silence_or_in_the_middle():
    spikes = torch.tensor([[4, 5], [10, 11]]).numpy()
    assert spread_gaps(spikes, None, 16, reach=20).tolist() == [[0, 7], [7, 16]]
    assert spread_gaps(spikes, None, 16, reach=2).tolist() == [[2, 7], [8, 13]]
    activity = torch.ones(16, dtype=torch.bool)
    activity[[0, 1, 6, 7, 14, 15]] = False
    assert spread_gaps(spikes, activity, 16, reach=20).tolist() == [[2, 6], [8, 14]]


def test_activity_is_what_is_louder_than_the_noise_without_gaps_inside_of_a_sound():
    energy = torch.full((40,), -8.0)
    energy[10:30] = 0.0
    energy[15] = -8.0  # a stop
    energy[35] = 0.0  # a click
    assert detect_activity(energy).tolist() == [10 <= place < 30 for place in range(40)]
    assert detect_activity(torch.zeros(5)).all()


def test_spoken_words_have_the_times_of_their_steps_and_one_that_was_skipped_has_none():
    weights = torch.zeros(10, 4)
    weights[range(10), [0, 0, 1, 1, 1, 3, 3, 3, 3, 3]] = 1.0
    units = Units(("a", "b", "c"), torch.tensor([[1, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]]).bool())
    assert time_spoken_words(weights, units, 0.1) == [("a", 0.0, 0.5, 1.0), ("c", 0.5, 1.0, 1.0)]


def test_weights_and_tokens_need_to_fit():
    with pytest.raises(ValueError, match="a row of weights for each token, got 3 rows for 4 tokens"):
        time_words(torch.rand(3, 9), UNITS, 0.01)
    with pytest.raises(ValueError, match="a median needs an odd width, got 4"):
        smooth(torch.rand(3, 9), 4)
