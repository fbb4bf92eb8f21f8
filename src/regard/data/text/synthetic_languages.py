"""Invented languages: a spelling with rules that look ahead, and an inflection with a few of them.

Both are regular, so that a model which learns the rules gets every word right, and both need a look at the letters around
the one at hand: c is s before e and i, else k; a doubled vowel is one long one; the last vowel of a stem decides its ending.
"""

from collections.abc import Callable, Iterator
from itertools import islice
from random import Random

from regard.data.table import Record

CONSONANTS = "bcdfglmnprst"
VOWELS = "aeiou"
PHONES = {"sh": "ʃ", "ch": "tʃ", "th": "θ", "ng": "ŋ", **{vowel * 2: f"{vowel}ː" for vowel in VOWELS}}
ENDINGS = {"SG": "", "PL": "n", "DAT": "t", "GEN": "s"}


def spelling(samples: int, seed: int = 0) -> list[Record]:
    """Written words and their phones: "cheenga" -> "tʃ eː ŋ a"."""
    words = islice(_different(Random(seed), _written), samples)
    return [Record(word, " ".join(phones(word)), f"spelling:{number}") for number, word in enumerate(words, 1)]


def phones(word: str) -> list[str]:
    """Pronunciation of a word of the invented spelling."""
    phonemes, place = [], 0
    while place < len(word):
        pair = word[place : place + 2]
        if pair in PHONES:
            phonemes.append(PHONES[pair])
            place += 2
            continue
        soft = word[place] == "c" and word[place + 1 : place + 2] in ("e", "i")
        phonemes.append("s" if soft else "k" if word[place] == "c" else word[place])
        place += 1
    return phonemes


def inflection(samples: int, seed: int = 0) -> list[Record]:
    """Lemmas with features and their forms: "tomel|N;DAT;PL" -> "tomelent"."""
    chance = Random(seed)
    lemmas = islice(_different(chance, _written), samples)
    entries = ((lemma, chance.choice(("SG", "PL")), chance.choice(("NOM", "DAT", "GEN"))) for lemma in lemmas)
    return [
        Record(f"{lemma}|N;{case};{number}", form(lemma, case, number), f"inflection:{place}")
        for place, (lemma, number, case) in enumerate(entries, 1)
    ]


def form(lemma: str, case: str, number: str) -> str:
    """The form of a lemma: a plural vowel that echoes the stem's last one, then the endings."""
    echo = [letter for letter in lemma if letter in VOWELS][-1]
    if number == "PL" and case == "NOM":
        return lemma + (ENDINGS["PL"] if lemma[-1] in VOWELS else echo + ENDINGS["PL"])
    plural = "" if number == "SG" else echo + ENDINGS["PL"] if lemma[-1] not in VOWELS else ENDINGS["PL"]
    return lemma + plural + ENDINGS.get(case, "")


def _written(chance: Random) -> str:
    starts = (*CONSONANTS, "sh", "ch", "th")
    return "".join(_syllable(chance, starts) for _ in range(chance.randint(2, 4)))


def _syllable(chance: Random, starts: tuple[str, ...]) -> str:
    vowel = chance.choice(VOWELS) * chance.choice((1, 1, 1, 2))
    return chance.choice(starts) + vowel + chance.choice(("", "", "", "n", "l", "ng"))


def _different(chance: Random, draw: Callable[[Random], str]) -> Iterator[str]:
    words: set[str] = set()
    while True:
        word = draw(chance)
        if word not in words:
            words.add(word)
            yield word
