"""How weights came about: codes that a trace keeps, and what they say in English. The page says it in two languages.

    fused:sdpa                      fused kernel sdpa, which forms its weights
    measured:sdpa; rows:float32     two codes, one after the other

What is no code is a text of somebody's own and stands as it is.
"""

from collections.abc import Iterable

GIVEN, ITSELF, AGAIN, TRANSFORMERS, EIGHT_BITS = "given", "itself", "again", "transformers", "eight_bits"
REFERENCE, FUSED, INSTEAD, MEASURED, ROWS = "reference", "fused", "instead", "measured", "rows"
BETWEEN = "; "

SENTENCES = {
    GIVEN: "given",
    ITSELF: "the attention itself, which forms its weights",
    AGAIN: "reference, asked once more, since the way it ran keeps no weights",
    TRANSFORMERS: "weights as transformers returned them",
    EIGHT_BITS: "about: stored in 8 bits",
    REFERENCE: "reference, which forms its weights",
    MEASURED: "reference, statistics from its own pass",
    f"{FUSED}:": "fused kernel {}, which forms its weights",
    f"{INSTEAD}:": "reference, since the fused kernel {} keeps no weights",
    f"{MEASURED}:": "fused kernel {}, statistics from its own pass",
    f"{ROWS}:": "rows recomputed in {} from recorded queries and keys",
}
"""What each code says; those with a colon name a kernel or a precision after it."""


def code(name: str, detail: str) -> str:
    """A code with what it is about: `code(FUSED, "sdpa")`."""
    return f"{name}:{detail}"


def joined(sources: Iterable[str]) -> str:
    """Several as one, each code once, in the order in which they came."""
    return BETWEEN.join(dict.fromkeys(part for source in sources for part in source.split(BETWEEN)))


def in_eight_bits(source: str) -> bool:
    """Whether weights of this source were restored from 8 bits."""
    return EIGHT_BITS in source.split(BETWEEN)


def told(source: str) -> str:
    """A source in English."""
    return BETWEEN.join(map(_told, source.split(BETWEEN)))


def _told(part: str) -> str:
    name, colon, detail = part.partition(":")
    sentence = SENTENCES.get(name + colon)
    return part if sentence is None or bool(colon) != bool(detail) else sentence.format(detail)
