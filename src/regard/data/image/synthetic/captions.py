"""Captions of scenes, in English and Chinese, each word of which knows the things that it names.

    two small red stars above a blue circle        两个红色的小五角星在一个蓝色的圆上面

A scene has one group of like things, or two that lie to each other in one of four ways and in no other. Of two groups the
caption begins with that whose shape comes first in SHAPES or, at one shape, whose colour does in COLOURS: so there is one
caption to a scene, and a model that sees everything can get every word right.
"""

from collections.abc import Sequence
from itertools import groupby
from random import Random
from typing import NamedTuple

from jaxtyping import Float
from torch import Tensor

from regard.data.image.synthetic.scene import COLOURS, SIDE, SIZES, WHOLE, Scene, Thing, placed, relations
from regard.data.image.synthetic.shapes import SHAPES
from regard.data.image.synthetic.split import split
from regard.data.image.synthetic.words import (
    COLOUR_WORDS,
    COUNT_WORDS,
    RELATION_WORDS,
    SHAPE_WORDS,
    SIZE_WORDS,
    Language,
    article,
    plural,
)
from regard.data.records import Record

MOST = 100_000
"""The most samples."""


class Word(NamedTuple):
    """A word of a caption, the characters that it takes there, and the numbers of the things that it names."""

    text: str
    start: int
    end: int
    things: tuple[int, ...]


class Caption(NamedTuple):
    """A text and its words."""

    text: str
    words: tuple[Word, ...]


class Captioned(NamedTuple):
    """A scene with its captions."""

    scene: Scene
    english: Caption
    chinese: Caption
    where: str

    def picture(self, size: int = 64) -> Float[Tensor, "3 height width"]:
        """The picture of the scene."""
        return self.scene.picture(size)

    def record(self, language: Language = "english") -> Record:
        """The caption as a target, and a name for the picture as its source."""
        return Record(self.where, (self.english if language == "english" else self.chinese).text, self.where)


class _Group(NamedTuple):
    """Like things, by their numbers in a scene."""

    like: Thing
    things: tuple[int, ...]


def draw(
    samples: int, seed: int = 0, *, shapes: Sequence[str] = SHAPES, sizes: Sequence[str] = tuple(SIZES), count: int = 3
) -> tuple[list[Captioned], list[Captioned]]:
    """Scenes with captions, to train on and to validate with; no caption is there twice.

    `shapes` and `sizes` are what things may be, since on a small picture small ones are hard to tell apart, and `count` is
    the most of like ones.
    """
    if samples > (limit := most(len(shapes), len(sizes), count)):
        raise ValueError(f"at most {limit:,} captions are drawn, got {samples:,}")
    chance = Random(seed)
    distinct: dict[str, Captioned] = {}
    while len(distinct) < samples:
        scene = _scene(chance, shapes, sizes, count)
        if scene is not None:
            english, chinese = captions(scene)
            distinct.setdefault(english.text, Captioned(scene, english, chinese, f"drawn:{len(distinct) + 1}"))
    return split(list(distinct.values()), lambda sample: sample.english.text)


def most(shapes: int, sizes: int, count: int) -> int:
    """The most samples of so many shapes, sizes and like things: there are four times as many captions of two groups."""
    kinds, descriptions = shapes * len(COLOURS), sizes * count
    return min(MOST, kinds * (kinds - 1) // 2 * descriptions**2 * len(RELATION_WORDS) // 4)


def captions(scene: Scene) -> tuple[Caption, Caption]:
    """The English and the Chinese caption of a scene of one group or of two."""
    groups = _groups(scene)
    counts = [len(group.things) for group in groups]
    if len(counts) not in (1, 2) or max(counts) > max(COUNT_WORDS):
        raise ValueError(f"a caption tells of one group of one to three like things, or of two, got groups of {counts}")
    if len(groups) == 1:
        english, chinese = _english(groups[0]), _chinese(groups[0])
    else:
        first, second = ([scene.things[number] for number in group.things] for group in groups)
        ways = relations(first, second)
        if len(ways) != 1:
            raise ValueError(f"two groups need to lie to each other in one way, got {', '.join(sorted(ways)) or 'none'}")
        before, after = RELATION_WORDS[ways.pop()]
        related = [(word, ()) for word in before.split()]
        english = [*_english(groups[0]), *related, *_english(groups[1])]
        chinese = [*_chinese(groups[0]), ("在", ()), *_chinese(groups[1]), (after, ())]
    return _joined(english, " "), _joined(chinese, "")


def _scene(chance: Random, shapes: Sequence[str], sizes: Sequence[str], count: int) -> Scene | None:
    """One group anywhere, or two on the two sides of a line; None where they found no room."""
    if chance.random() < 0.2:
        things = _group(chance, _kind(chance, shapes, sizes), WHOLE, count)
        return None if things is None else Scene(tuple(things))
    kinds = sorted((_kind(chance, shapes, sizes) for _ in range(2)), key=_rank)
    if _rank(kinds[0]) == _rank(kinds[1]):
        return None
    line = chance.randint(SIDE * 2 // 5, SIDE * 3 // 5)
    halves = (
        ((0, 0, SIDE, line), (0, line, SIDE, SIDE)) if chance.random() < 0.5 else ((0, 0, line, SIDE), (line, 0, SIDE, SIDE))
    )
    sides = halves if chance.random() < 0.5 else halves[::-1]
    first, second = (_group(chance, kind, side, count) for kind, side in zip(kinds, sides, strict=True))
    if first is None or second is None or len(relations(first, second)) != 1:
        return None
    return Scene((*first, *second))


def _kind(chance: Random, shapes: Sequence[str], sizes: Sequence[str]) -> Thing:
    radius = SIZES[chance.choice(sizes)]
    return Thing(chance.choice(shapes), chance.choice(tuple(COLOURS)), 0, 0, radius)


def _rank(thing: Thing) -> tuple[int, int]:
    return SHAPES.index(thing.shape), tuple(COLOURS).index(thing.colour)


def _group(chance: Random, kind: Thing, part: tuple[int, int, int, int], count: int) -> list[Thing] | None:
    """One to `count` like things within a part of the picture."""
    things: list[Thing] = []
    for _ in range(chance.randint(1, count)):
        place = placed(chance, kind.radius, things, part)
        if place is None:
            return None
        things.append(kind._replace(x=place[0], y=place[1]))
    return things


def _groups(scene: Scene) -> list[_Group]:
    def like(number: int) -> tuple[int, int, int]:
        return *_rank(scene.things[number]), scene.things[number].radius

    numbers = sorted(range(len(scene.things)), key=like)
    groups = [tuple(members) for _, members in groupby(numbers, key=like)]
    return [_Group(scene.things[numbers[0]], numbers) for numbers in groups]


def _english(group: _Group) -> list[tuple[str, tuple[int, ...]]]:
    thing, count = group.like, len(group.things)
    noun = thing.shape if count == 1 else plural(thing.shape)
    words = [*([_size(thing)] if SIZE_WORDS[_size(thing)] else []), thing.colour, noun]
    number = article(words[0]) if count == 1 else COUNT_WORDS[count][0]
    return [(word, group.things) for word in (number, *words)]


def _chinese(group: _Group) -> list[tuple[str, tuple[int, ...]]]:
    thing = group.like
    words = (
        COUNT_WORDS[len(group.things)][1],
        COLOUR_WORDS[thing.colour] + "的",
        SIZE_WORDS[_size(thing)],
        SHAPE_WORDS[thing.shape],
    )
    return [(word, group.things) for word in words if word]


def _size(thing: Thing) -> str:
    return min(SIZES, key=lambda name: abs(SIZES[name] - thing.radius))


def _joined(words: list[tuple[str, tuple[int, ...]]], between: str) -> Caption:
    joined: list[Word] = []
    start = 0
    for text, things in words:
        joined.append(Word(text, start, start + len(text), things))
        start += len(text) + len(between)
    return Caption(between.join(text for text, _ in words), tuple(joined))
