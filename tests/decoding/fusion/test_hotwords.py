import pytest
import torch

from regard.data.special_tokens import BOS
from regard.data.text.tokenizers import train
from regard.decoding.constraints.spelling import Spelling
from regard.decoding.fusion.hotwords import Hotwords


def gains(scorer, tokens):
    """Bonus of each token of a text."""
    state, scores = scorer.after(scorer.start([0]), torch.tensor([BOS])), []
    for token in tokens:
        scores.append(float(scorer.score(state)[0, token]))
        state = scorer.after(state, torch.tensor([token]))
    return scores


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("kala", [1, 1, 1, 1]),
        ("kalkala", [1, 1, 1, -2, 1, 1, 1]),
        ("kalo", [1, 1, 1, -3]),
        ("kalakala", [1] * 8),
        ("o kalo", [0, 0, 1, 1, 1, -3]),
        ("mino", [1, 1, 1, 1]),
    ],
)
def test_letters_of_a_phrase_are_rewarded_until_it_breaks_off(text, expected):
    tokenizer = train("characters", ["kala mino o"], 30)
    spelling = Spelling.of(tokenizer)
    scorer = Hotwords([spelling.spell("kala"), spelling.spell("mino")], spelling)
    assert gains(scorer, tokenizer.encode(text)) == expected
    assert scorer.rewards


def test_hotwords_need_phrases():
    with pytest.raises(ValueError, match="one phrase or more"):
        Hotwords([], Spelling.numbers(5))
