"""Provenance of weights: codes in a trace, and their descriptions in English. The page has them in two languages.

    fused:sdpa                      fused kernel sdpa, which forms its weights
    measured:sdpa; rows:float32     two codes, one after the other

Text that is no code is shown unchanged.
"""

from collections.abc import Iterable

SUPPLIED, ITSELF, AGAIN, TRANSFORMERS, EIGHT_BITS = "given", "itself", "again", "transformers", "eight_bits"
REFERENCE, FUSED, INSTEAD, MEASURED, ROWS = "reference", "fused", "instead", "measured", "rows"
BETWEEN = "; "

SENTENCES = {
    SUPPLIED: "given",
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
"""Descriptions of the codes; those with a colon are followed by a kernel or a precision."""


def code(name: str, detail: str) -> str:
    """A code with what it is about: `code(FUSED, "sdpa")`."""
    return f"{name}:{detail}"


def join_codes(sources: Iterable[str]) -> str:
    """Join sources, with each code once, in order."""
    return BETWEEN.join(dict.fromkeys(part for source in sources for part in source.split(BETWEEN)))


def in_eight_bits(source: str) -> bool:
    """True for weights restored from 8 bits."""
    return EIGHT_BITS in source.split(BETWEEN)


def describe(source: str) -> str:
    """Description of a source in English."""
    return BETWEEN.join(map(_describe_code, source.split(BETWEEN)))


def _describe_code(part: str) -> str:
    name, colon, detail = part.partition(":")
    sentence = SENTENCES.get(name + colon)
    return part if sentence is None or bool(colon) != bool(detail) else sentence.format(detail)
