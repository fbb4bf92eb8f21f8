"""Synthetic data: what a task trains on when no file is given, drawn from a seed.

The English-Chinese grammar is small, but its two languages order a sentence differently, so that translating it without
looking back at the source is hard:

    does the student that Anna fears trust the dog in the park every day?   安娜害怕的学生每天在公园里相信狗吗？

Relative clauses and adjectives come before the noun, joined by 的; time and place come before the verb; a number needs the
measure word of its noun; a question ends in 吗. Each word knows its counterpart, so every sentence has its true alignment.
"""

from collections.abc import Sequence
from random import Random
from typing import NamedTuple

from regard.data.table import Record

NAMES = {"Tom": "汤姆", "Jerry": "杰瑞", "Mary": "玛丽", "Anna": "安娜"}
BEINGS = {
    "cat": ("猫", "只"), "dog": ("狗", "条"), "bird": ("鸟", "只"), "horse": ("马", "匹"), "tiger": ("老虎", "只"),
    "teacher": ("老师", "位"), "student": ("学生", "个"), "girl": ("女孩", "个"), "doctor": ("医生", "位"),
}  # fmt: skip
THINGS = {
    "book": ("书", "本"), "letter": ("信", "封"), "car": ("汽车", "辆"), "flower": ("花", "朵"), "table": ("桌子", "张"),
    "picture": ("画", "幅"), "boat": ("船", "条"),
}  # fmt: skip
BEING_VERBS = {
    "chase": "追逐", "like": "喜欢", "love": "爱", "know": "认识", "fear": "害怕", "help": "帮助", "visit": "拜访",
    "trust": "相信",
}  # fmt: skip
THING_VERBS = {"like": "喜欢", "need": "需要", "draw": "画", "buy": "买", "sell": "卖", "want": "想要", "show": "展示"}
BEING_ADJECTIVES = {"big": "大", "small": "小", "clever": "聪明的", "happy": "快乐的", "strange": "奇怪的"}
THING_ADJECTIVES = {"big": "大", "small": "小", "new": "新", "red": "红色的", "black": "黑色的", "strange": "奇怪的"}
TIMES = {"today": "今天", "every day": "每天", "in the morning": "早上", "in the evening": "晚上", "on Sunday": "星期天"}
PLACES = {
    "in the garden": "在花园里", "in the kitchen": "在厨房里", "at school": "在学校", "in the park": "在公园里",
    "on the street": "在街上", "at home": "在家里",
}  # fmt: skip
DETERMINERS = {"a": "一", "this": "这", "that": "那", "two": "两", "three": "三"}
PLURAL = ("two", "three")


class Aligned(NamedTuple):
    """A record with its true alignment: pairs of a source word's place and the span of target characters it became."""

    record: Record
    links: tuple[tuple[int, tuple[int, int]], ...]


class _Word(NamedTuple):
    """Words that belong together in both languages; either side may be empty."""

    english: str
    chinese: str = ""


class _Phrase(NamedTuple):
    """Phrase with its words in the order of each language."""

    english: tuple[_Word, ...] = ()
    chinese: tuple[_Word, ...] = ()
    plural: bool = False


def grammar(samples: int, seed: int = 0) -> list[Record]:
    """Different sentences of the grammar, English -> Chinese."""
    return [sample.record for sample in aligned(samples, seed)]


def aligned(samples: int, seed: int = 0) -> list[Aligned]:
    """Synthetic sentence pairs with their word alignments; positions are those of the words tokenizer."""
    chance = Random(seed)
    distinct: dict[str, Aligned] = {}
    while len(distinct) < samples:
        sentence = _write(_sentence(chance), f"grammar:{len(distinct) + 1}")
        distinct.setdefault(sentence.record.source, sentence)
    return list(distinct.values())


def reversal(
    samples: int, seed: int = 0, shortest: int = 2, longest: int = 12, letters: str = "abcdefghijklmnop"
) -> list[Record]:
    """Letters with a space between them -> the same from the last to the first."""
    chance = Random(seed)
    sequences = [chance.choices(letters, k=chance.randint(shortest, longest)) for _ in range(samples)]
    return [
        Record(" ".join(words), " ".join(reversed(words)), f"reversal:{number}")
        for number, words in enumerate(sequences, start=1)
    ]


def split(records: Sequence[Record], valid: int, seed: int = 0) -> tuple[list[Record], list[Record]]:
    """Records to train on, and `valid` others, such that no source and no target is in both."""
    distinct = {record.source: record for record in records}
    if valid >= len(distinct):
        raise ValueError(f"holding out {valid} needs more than {valid} different sources, got {len(distinct)}")
    held_out = Random(seed).sample(list(distinct.values()), valid)
    sources, targets = {record.source for record in held_out}, {record.target for record in held_out}
    return [record for record in records if record.source not in sources and record.target not in targets], held_out


def _sentence(chance: Random) -> _Phrase:
    """[time] subject [not] verb object [place] [time] [?]  ->  subject [time] [place] [不] verb object [吗？]."""
    subject = _being(chance, clause=chance.random() < 0.3)
    verb, thing = _verb(chance)
    object_ = _thing(chance) if thing else _being(chance, clause=chance.random() < 0.15)
    place = _one(chance, PLACES) if chance.random() < 0.35 else _Phrase()
    time = _one(chance, TIMES) if chance.random() < 0.35 else _Phrase()
    question, negated = chance.random() < 0.2, chance.random() < 0.2
    early = not question and chance.random() < 0.3
    do = (_Word("do" if subject.plural else "does", "吗" if question else ""),) if question or negated else ()
    no = (_Word("not", "不"),) if negated else ()
    end = (_Word("?", "？"),) if question else ()
    verb = verb if do else _agree(verb, subject.plural)
    front = (*do, *subject.english) if question else (*subject.english, *do)
    inner = (*front, *no, verb, *object_.english, *place.english)
    english = (*time.english, *inner) if early else (*inner, *time.english, *end)
    return _Phrase(english, (*subject.chinese, *time.chinese, *place.chinese, *no, verb, *object_.chinese, *do, *end))


def _being(chance: Random, clause: bool = False) -> _Phrase:
    """A name, or a noun that may have a number, an adjective and a relative clause."""
    if not clause and chance.random() < 0.5:
        return _one(chance, NAMES)
    return _noun(chance, BEINGS, clause)


def _thing(chance: Random) -> _Phrase:
    return _noun(chance, THINGS, clause=chance.random() < 0.1)


def _noun(chance: Random, nouns: dict[str, tuple[str, str]], clause: bool) -> _Phrase:
    """[number] [adjective] noun [that ...]  ->  [number measure] [... 的] [adjective] noun."""
    name, (chinese, measure) = chance.choice(list(nouns.items()))
    count = chance.choice(list(DETERMINERS)) if chance.random() < 0.6 else "the"
    plural = count in PLURAL
    noun = _Word(name + "s" if plural else name, chinese)
    number = _Word(count, DETERMINERS[count] + measure) if count in DETERMINERS else _Word(count)
    adjective = (
        _one(chance, THING_ADJECTIVES if nouns is THINGS else BEING_ADJECTIVES) if chance.random() < 0.3 else _Phrase()
    )
    relative = _relative(chance, plural, nouns is THINGS) if clause else _Phrase()
    return _Phrase(
        (number, *adjective.english, noun, *relative.english), (number, *relative.chinese, *adjective.chinese, noun), plural
    )


def _relative(chance: Random, plural: bool, thing: bool) -> _Phrase:
    """that chases Jerry -> 追逐杰瑞的; that Tom likes -> 汤姆喜欢的."""
    that = _Word("that", "的")
    other = _one(chance, NAMES)
    if thing or chance.random() < 0.5:
        verb = _agree(_one(chance, THING_VERBS if thing else BEING_VERBS).english[0], plural=False)
        return _Phrase((that, *other.english, verb), (*other.chinese, verb, that))
    verb = _agree(_one(chance, BEING_VERBS).english[0], plural)
    return _Phrase((that, verb, *other.english), (verb, *other.chinese, that))


def _verb(chance: Random) -> tuple[_Word, bool]:
    """A verb, and whether its object is a thing."""
    thing = chance.random() < 0.4
    return _one(chance, THING_VERBS if thing else BEING_VERBS).english[0], thing


def _agree(verb: _Word, plural: bool) -> _Word:
    return verb if plural else _Word(verb.english + "s", verb.chinese)


def _one(chance: Random, words: dict[str, str]) -> _Phrase:
    """One of several words, the same in both languages."""
    word = _Word(*chance.choice(list(words.items())))
    return _Phrase((word,), (word,))


def _write(phrase: _Phrase, where: str) -> Aligned:
    """The sentence in both languages, and where each word went. The mark at the end joins the word before it."""
    spans: dict[int, tuple[int, int]] = {}
    target = ""
    for word in phrase.chinese:
        if word.chinese:
            spans[id(word)] = (len(target), len(target) + len(word.chinese))
            target += word.chinese
    source = " ".join(word.english for word in phrase.english).replace(" ?", "?")
    links: list[tuple[int, tuple[int, int]]] = []
    place = 0
    for word in phrase.english:
        for _ in word.english.split():
            links += [(place, spans[id(word)])] if id(word) in spans else []
            place += 1
    return Aligned(Record(source, target, where), tuple(links))
