import pytest
import torch

from regard.data.image.synthetic.captions import captions, draw
from regard.data.image.synthetic.scene import COLOURS, Scene, Thing, relations

TRAIN, VALID = draw(600)
EVERY = TRAIN + VALID


def test_a_caption_in_both_languages():
    scene = Scene(
        (Thing("square", "blue", 60, 200, 24), Thing("circle", "red", 90, 40, 24), Thing("square", "blue", 120, 200, 24))
    )
    english, chinese = captions(scene)
    assert english.text == "a red circle above two blue squares"
    assert chinese.text == "一个红色的圆在两个蓝色的正方形上面"
    assert [(word.text, word.things) for word in english.words] == [
        ("a", (1,)), ("red", (1,)), ("circle", (1,)), ("above", ()), ("two", (0, 2)), ("blue", (0, 2)), ("squares", (0, 2)),
    ]  # fmt: skip
    assert [(word.text, word.things) for word in chinese.words] == [
        ("一个", (1,)), ("红色的", (1,)), ("圆", (1,)), ("在", ()), ("两个", (0, 2)), ("蓝色的", (0, 2)), ("正方形", (0, 2)), ("上面", ()),
    ]  # fmt: skip


def test_sizes_and_articles():
    english, chinese = captions(Scene((Thing("star", "orange", 60, 60, 16), Thing("cross", "orange", 200, 60, 24))))
    assert english.text == "a small orange star left of an orange cross"
    assert chinese.text == "一个橙色的小五角星在一个橙色的十字左边"
    english, chinese = captions(Scene(tuple(Thing("cross", "pink", x, 60, 36) for x in (40, 128, 210))))
    assert (english.text, chinese.text) == ("three big pink crosses", "三个粉色的大十字")


def test_the_things_may_come_in_any_order():
    scene = EVERY[0].scene
    turned = Scene(scene.things[::-1])
    assert [each.text for each in captions(turned)] == [each.text for each in captions(scene)]


def test_words_know_their_place():
    for example in EVERY[:100]:
        for caption in (example.english, example.chinese):
            assert all(caption.text[word.start : word.end] == word.text for word in caption.words)
            assert sorted({number for word in caption.words for number in word.things}) == list(
                range(len(example.scene.things))
            )


def test_what_a_caption_says_is_true():
    for example in EVERY:
        things = example.scene.things
        for word in example.english.words:
            if word.text in COLOURS:
                assert all(things[number].colour == word.text for number in word.things)
            if word.text in ("left", "right", "above", "below"):
                place = example.english.words.index(word)
                first, second = (example.english.words[each].things for each in (place - 1, -1))
                assert relations([things[number] for number in first], [things[number] for number in second]) == {word.text}
            if word.text in ("two", "three"):
                assert len(word.things) == {"two": 2, "three": 3}[word.text]


def test_no_scene_is_in_both_parts_and_none_twice():
    assert (len(TRAIN), len(VALID)) == (540, 60)
    assert len({example.english.text for example in EVERY}) == len({example.chinese.text for example in EVERY}) == 600
    assert len({example.scene for example in EVERY}) == 600
    assert not {example.scene for example in TRAIN} & {example.scene for example in VALID}


def test_a_seed_gives_the_same_scenes_and_another_gives_others():
    assert draw(30, seed=1) == draw(30, seed=1)
    assert draw(30, seed=1) != draw(30, seed=2)


def test_an_example_gives_its_picture_and_its_record():
    example = TRAIN[0]
    assert torch.equal(example.picture(48), example.scene.picture(48))
    assert example.record() == (example.where, example.english.text, example.where, ())
    assert example.record("chinese").target == example.chinese.text
    assert example.where.startswith("drawn:")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: draw(100_001), "at most 100,000 captions are drawn, got 100,001"),
        (
            lambda: captions(Scene(tuple(Thing(shape, "red", 9, 9, 9) for shape in ("circle", "star", "ring")))),
            r"got groups of \[1, 1, 1\]",
        ),
        (
            lambda: captions(Scene((Thing("star", "red", 9, 9, 9),) * 4)),
            r"one to three like things, or of two, got groups of \[4\]",
        ),
        (
            lambda: captions(Scene((Thing("star", "red", 50, 50, 24), Thing("ring", "red", 150, 150, 24)))),
            "lie to each other in one way, got above, left",
        ),
        (
            lambda: captions(Scene((Thing("star", "red", 50, 50, 24), Thing("ring", "red", 50, 50, 24)))),
            "in one way, got none",
        ),
    ],
)
def test_what_has_no_caption_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_scenes_may_be_simpler():
    training, validation = draw(60, shapes=("circle", "star"), sizes=("big",), count=1)
    for example in (*training, *validation):
        assert {thing.shape for thing in example.scene.things} <= {"circle", "star"}
        assert {thing.radius for thing in example.scene.things} == {36}
        assert len(example.scene.things) <= 2
    with pytest.raises(ValueError, match="at most 120 captions are drawn, got 121"):
        draw(121, shapes=("circle", "star"), sizes=("big",), count=1)
