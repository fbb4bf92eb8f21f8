import torch

from regard.data.image.synthetic.captioned import Drawing
from regard.data.image.synthetic.captions import Captioned, captions
from regard.data.image.synthetic.scene import Scene, Thing
from regard.tasks.caption.metrics import count_word_hits

SCENE = Scene((Thing("circle", "red", 40, 40, 24), Thing("square", "blue", 200, 60, 24)))  # left, right
DRAWING = Drawing(Captioned(SCENE, *captions(SCENE), "drawn:1"), 64)
WORDS = DRAWING.caption.words


def looking(*places):
    weights = torch.zeros(len(places), 64)
    for row, (down, across) in enumerate(places):
        weights[row, 8 * down + across] = 1.0
    return weights


def test_the_words_of_the_scene_are_those_that_the_cases_are_made_for():
    assert DRAWING.caption.text.startswith("a red circle ")
    assert DRAWING.caption.text.endswith(" a blue square")


def test_words_count_that_name_a_thing_and_hit_where_they_look_at_it():
    spans = [(word.start, word.end) for word in WORDS]
    right = [(1, 1) if word.things == (0,) else (1, 6) for word in WORDS]
    named = sum(bool(word.things) for word in WORDS)
    assert count_word_hits(DRAWING, looking(*right), spans, 8) == (named, named) == (6, 6)
    wrong = [(1, 6) for _ in WORDS]
    assert count_word_hits(DRAWING, looking(*wrong), spans, 8) == (3, 6)


def test_the_weights_of_a_word_in_several_tokens_are_added_up():
    start = WORDS[1].start
    weights = looking((1, 6), (1, 1), (1, 1)) * torch.tensor([[1.5], [1.0], [1.0]])
    assert count_word_hits(DRAWING, weights, [(start, start + 1), (start + 1, start + 2), (start + 2, start + 3)], 8) == (
        1,
        1,
    )


def test_a_token_that_covers_nothing_is_no_word():
    assert count_word_hits(DRAWING, looking((1, 1)), [None], 8) == (0, 0)
