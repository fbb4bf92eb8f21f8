"""Questions about scenes with their answers, in English and Chinese, and the things to look at for each.

    what colour is the star? red                    五角星是什么颜色？红色
    what shape is the red thing? star               红色的是什么形状？五角星
    how many red things are there? 2                有几个红色的图形？2
    is there a red star? no                         有红色的五角星吗？没有
    where is the red star? top left                 红色的五角星在哪里？左上
    is the red star above the blue circle? yes      红色的五角星在蓝色的圆上面吗？是

Yes and no are equally likely, whatever is asked for.
"""

from collections.abc import Callable, Sequence
from random import Random
from typing import NamedTuple

from jaxtyping import Float
from torch import Tensor

from regard.data.image.synthetic.scene import COLOURS, SIDE, SIZES, Scene, Thing, placed, relations
from regard.data.image.synthetic.shapes import SHAPES
from regard.data.image.synthetic.split import split
from regard.data.image.synthetic.words import COLOUR_WORDS, OPPOSITE, RELATION_WORDS, SHAPE_WORDS, Language, article, plural
from regard.data.records import Record

MOST = 5
"""The most things of a scene."""

RADII = SIZES["medium"], SIZES["big"]
"""The smallest and the largest thing."""

LARGEST = 48
"""The largest thing of which five may find a place."""

CORNERS = {"top left": "左上", "top right": "右上", "bottom left": "左下", "bottom right": "右下"}


class Question(NamedTuple):
    """Question and its right answer."""

    text: str
    answer: str


class SceneQuestion(NamedTuple):
    """A scene, a question about it, of which kind it is, and the numbers of the things that decide."""

    scene: Scene
    kind: str
    english: Question
    chinese: Question
    things: tuple[int, ...]
    where: str = ""

    def picture(self, size: int = 64) -> Float[Tensor, "3 height width"]:
        """The picture of the scene."""
        return self.scene.picture(size)

    def record(self, language: Language = "english") -> Record:
        """The question as a source and its answer as a target."""
        question = self.english if language == "english" else self.chinese
        return Record(question.text, question.answer, self.where)


def draw(
    samples: int,
    seed: int = 0,
    *,
    per_scene: int = 2,
    kinds: Sequence[str] = (),
    shapes: Sequence[str] = SHAPES,
    most: int = MOST,
    radii: tuple[int, int] = RADII,
) -> tuple[list[SceneQuestion], list[SceneQuestion]]:
    """Questions, up to `per_scene` different ones about a scene, to train on and to validate with; no scene is in both.

    `kinds` are some of KINDS, or none for all of them. `shapes` are what things may be, `most` is how many there are, and
    `radii` are the smallest and the largest of them, since on a small picture small ones are hard to tell apart.
    """
    if per_scene < 1 or samples <= per_scene:
        raise ValueError(
            f"at least {max(per_scene, 1) + 1} questions are needed, got {samples}: up to {per_scene} are about one scene, "
            "and a scene is held out whole"
        )
    if len(shapes) < 3 or not set(shapes) <= set(SHAPES) or not 2 <= most <= MOST:
        raise ValueError(
            f"a scene has 2 to {MOST} things of 3 or more of the shapes {', '.join(SHAPES)}, got {most} of "
            f"{', '.join(shapes) or 'none'}"
        )
    if not 1 <= radii[0] <= radii[1] <= LARGEST:
        raise ValueError(
            f"the radii of things are from 1 to {LARGEST}, the smaller one first, got {radii[0]} and {radii[1]}"
        )
    chance = Random(seed)
    questions: list[SceneQuestion] = []
    scenes: set[Scene] = set()
    while len(questions) < samples:
        scene = _scene(chance, shapes, most, radii)
        if scene in scenes:
            continue
        scenes.add(scene)
        new = _different(scene, kinds or tuple(KINDS), per_scene, chance)
        questions += [question._replace(where=f"drawn:{len(scenes)}") for question in new]
    return split(questions[:samples], lambda question: question.scene)


def ask(scene: Scene, kind: str, chance: Random) -> SceneQuestion | None:
    """A question of some kind; None where the scene allows for none, such as the place of a thing that is there twice."""
    if kind not in KINDS:
        raise ValueError(f"questions are of the kinds {', '.join(KINDS)}, got {kind!r}")
    return KINDS[kind](scene, chance) if scene.things else None


def answers(language: Language = "english") -> list[str]:
    """Everything that can be right, in alphabetical order."""
    counts = [str(number) for number in range(MOST + 1)]
    if language == "english":
        return sorted([*SHAPES, *COLOURS, *counts, *CORNERS, "yes", "no"])
    return sorted([*SHAPE_WORDS.values(), *COLOUR_WORDS.values(), *counts, *CORNERS.values(), "有", "没有", "是", "不是"])


def _different(scene: Scene, kinds: Sequence[str], most: int, chance: Random) -> list[SceneQuestion]:
    """Up to so many questions, kind after kind and none twice; fewer where a few rounds find no others."""
    questions: dict[str, SceneQuestion] = {}
    for kind in chance.sample(kinds, len(kinds)) * (1 + 2 * most // len(kinds)):
        question = ask(scene, kind, chance)
        if question is not None and len(questions) < most:
            questions.setdefault(question.english.text, question)
    return list(questions.values())


def _scene(chance: Random, shapes: Sequence[str], most: int, radii: tuple[int, int]) -> Scene:
    """Two or more things of two or three shapes and colours, so that several are alike."""
    shapes, colours = chance.sample(shapes, chance.randint(2, 3)), chance.sample(tuple(COLOURS), chance.randint(2, 3))
    things: list[Thing] = []
    for _ in range(chance.randint(2, most)):
        radius = chance.randint(*radii)
        place = placed(chance, radius, things)
        if place is not None:
            things.append(Thing(chance.choice(shapes), chance.choice(colours), *place, radius))
    return Scene(tuple(things))


def _colour(scene: Scene, chance: Random) -> SceneQuestion | None:
    number = _alone(scene, chance, lambda thing: thing.shape)
    if number is None:
        return None
    thing = scene.things[number]
    return SceneQuestion(
        scene,
        "colour",
        Question(f"what colour is the {thing.shape}?", thing.colour),
        Question(f"{SHAPE_WORDS[thing.shape]}是什么颜色？", COLOUR_WORDS[thing.colour]),
        (number,),
    )


def _shape(scene: Scene, chance: Random) -> SceneQuestion | None:
    number = _alone(scene, chance, lambda thing: thing.colour)
    if number is None:
        return None
    thing = scene.things[number]
    return SceneQuestion(
        scene,
        "shape",
        Question(f"what shape is the {thing.colour} thing?", thing.shape),
        Question(f"{COLOUR_WORDS[thing.colour]}的是什么形状？", SHAPE_WORDS[thing.shape]),
        (number,),
    )


def _count(scene: Scene, chance: Random) -> SceneQuestion:
    """Question for a count of a colour or a shape, which in one of five cases is any, and mostly none of the scene's."""
    by_shape, any_ = chance.random() < 0.5, chance.random() < 0.2
    like = chance.choice(scene.things)
    if by_shape:
        shape = chance.choice(SHAPES) if any_ else like.shape
        matching = tuple(number for number, thing in enumerate(scene.things) if thing.shape == shape)
        english, chinese = plural(shape), SHAPE_WORDS[shape]
    else:
        colour = chance.choice(tuple(COLOURS)) if any_ else like.colour
        matching = tuple(number for number, thing in enumerate(scene.things) if thing.colour == colour)
        english, chinese = f"{colour} things", f"{COLOUR_WORDS[colour]}的图形"
    answer = str(len(matching))
    return SceneQuestion(
        scene, "count", Question(f"how many {english} are there?", answer), Question(f"有几个{chinese}？", answer), matching
    )


def _exists(scene: Scene, chance: Random) -> SceneQuestion | None:
    """A thing that is there, or one whose shape or colour is there at most; None of a shape in all colours, always a yes."""
    present = {(thing.shape, thing.colour) for thing in scene.things}
    positive = chance.random() < 0.5
    like, other = chance.choice(scene.things), chance.choice(scene.things)
    if all((like.shape, colour) in present for colour in COLOURS):
        return None
    kind = (like.shape, like.colour) if positive else (like.shape, other.colour)
    while not positive and kind in present:
        kind = (like.shape, chance.choice(tuple(COLOURS)))
    shape, colour = kind
    matching = tuple(number for number, thing in enumerate(scene.things) if (thing.shape, thing.colour) == kind)
    return SceneQuestion(
        scene,
        "exists",
        Question(f"is there {article(colour)} {colour} {shape}?", "yes" if positive else "no"),
        Question(f"有{COLOUR_WORDS[colour]}的{SHAPE_WORDS[shape]}吗？", "有" if positive else "没有"),
        matching,
    )


def _where(scene: Scene, chance: Random) -> SceneQuestion | None:
    """The corner of a thing that lies wholly in one."""
    clear = [number for number in _unique(scene) if _corner(scene.things[number])]
    if not clear:
        return None
    number = chance.choice(clear)
    thing = scene.things[number]
    corner = _corner(thing)
    english, chinese = _named(thing)
    return SceneQuestion(
        scene,
        "where",
        Question(f"where is the {english}?", corner),
        Question(f"{chinese}在哪里？", CORNERS[corner]),
        (number,),
    )


def _relation(scene: Scene, chance: Random) -> SceneQuestion | None:
    """Question whether a thing lies in a relation to another, the true one or its opposite."""
    numbers = _unique(scene)
    if len(numbers) < 2:
        return None
    first, second = chance.sample(numbers, 2)
    one, other = scene.things[first], scene.things[second]
    ways = sorted(relations([one], [other]))
    if not ways:
        return None
    true, way = chance.random() < 0.5, chance.choice(ways)
    before, after = RELATION_WORDS[way if true else OPPOSITE[way]]
    (one_english, one_chinese), (other_english, other_chinese) = _named(one), _named(other)
    return SceneQuestion(
        scene,
        "relation",
        Question(f"is the {one_english} {before} the {other_english}?", "yes" if true else "no"),
        Question(f"{one_chinese}在{other_chinese}{after}吗？", "是" if true else "不是"),
        (first, second),
    )


def _corner(thing: Thing) -> str:
    """The corner that a thing lies wholly in; empty where there is none."""
    left, top, right, bottom = (edge - SIDE / 2 for edge in thing.edges)
    down, across = ("top" if bottom <= 0 else "bottom"), ("left" if right <= 0 else "right")
    return "" if left < 0 < right or top < 0 < bottom else f"{down} {across}"


def _named(thing: Thing) -> tuple[str, str]:
    return f"{thing.colour} {thing.shape}", f"{COLOUR_WORDS[thing.colour]}的{SHAPE_WORDS[thing.shape]}"


def _unique(scene: Scene) -> list[int]:
    """The things whose shape and colour no other has."""
    kinds = [(thing.shape, thing.colour) for thing in scene.things]
    return [number for number, kind in enumerate(kinds) if kinds.count(kind) == 1]


def _alone(scene: Scene, chance: Random, of: Callable[[Thing], str]) -> int | None:
    """One of the things whose shape, or colour, no other has."""
    properties = [of(thing) for thing in scene.things]
    unique = [number for number, answer in enumerate(properties) if properties.count(answer) == 1]
    return chance.choice(unique) if unique else None


KINDS: dict[str, Callable[[Scene, Random], SceneQuestion | None]] = {
    "colour": _colour, "shape": _shape, "count": _count, "exists": _exists, "where": _where, "relation": _relation,
}  # fmt: skip
