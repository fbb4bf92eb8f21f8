"""Words with marks of their spacing, as a normalizer and a decoder of the tokenizers library.

`pretokenize.mark` and `pretokenize.join` as replacements by regular expressions, over the shapes of all code points. In the
normal form a line break separates tokens that the text joins, and a blank those that it separates:

    Tom's cat.   ->   Tom ⏎ ￭' ⏎ ￭s cat ⏎ .
"""

from collections.abc import Iterable
from functools import cache
from itertools import groupby
from typing import Any

from regard.data.text.tokenizers.pretokenize import CLOSING, JOIN, OPENING, SPACE, find_shape

COMBINING = 4
"""Combining marks of one character behind which a boundary is found; a look behind has a bounded length."""


def build_normalizer() -> Any:
    """Normalizer that writes each token of a text with its mark, and whitespace between tokens alone."""
    from tokenizers import Regex, normalizers

    space, symbol, mark, ideograph, own = (_shaped(kind) for kind in "spmcx")
    inner = rf"[^ \n{mark}]"
    behind = "|".join(f"[{symbol}{ideograph}][{mark}]{{{count}}}" for count in range(COMBINING + 1))
    boundary = rf"(?<=[{own}])(?=[^ \n])|(?<=[^ \n])(?=[{own}{symbol}{ideograph}])|(?<={behind})(?={inner})"
    opening, closing = _clinging()
    steps = (
        (rf"\A[{space}]+|[{space}]+\z", ""),
        (f"[{space}]+", " "),
        (f"(?:{boundary})(?:(?<={opening})|(?={closing}))", "\n"),
        (boundary, f"\n{JOIN}"),
        (f" (?={closing})|(?<={opening}) ", f" {SPACE}"),
    )
    return normalizers.Sequence([normalizers.Replace(Regex(pattern), content) for pattern, content in steps])


def build_decoder() -> Any:
    """Decoder that joins tokens by their marks, and by the usual spacing where they have none."""
    from tokenizers import Regex, decoders

    opening, closing = _clinging()
    alone = ((r"\A", "\n"), (rf"\A\n{JOIN}(?=.)", ""), (rf"\A\n{SPACE}(?=.)", " "))
    joined = ((r"\A[\n ]", ""), (rf"\n(?={closing})|(?<={opening})\n", ""), (r"\n", " "))
    replace = [[decoders.Replace(Regex(pattern), content) for pattern, content in steps] for steps in (alone, joined)]
    return decoders.Sequence([*replace[0], decoders.Fuse(), *replace[1]])


@cache
def _clinging() -> tuple[str, str]:
    """Classes of the characters behind which, and before which, no space is usual."""
    return f"[{_listed(map(ord, OPENING))}{_shaped('c')}]", f"[{_listed(map(ord, CLOSING))}{_shaped('c')}]"


@cache
def _shaped(kind: str) -> str:
    """The code points of a shape, as part of a character class."""
    return _listed(code for code, shape in enumerate(_find_shapes()) if shape == kind)


@cache
def _find_shapes() -> str:
    surrogates = range(0xD800, 0xE000)
    return "".join("w" if code in surrogates else find_shape(chr(code)) for code in range(0x110000))


def _listed(codes: Iterable[int]) -> str:
    """Ranges of code points in the syntax of a character class."""
    parts = []
    for _, run in groupby(enumerate(sorted(codes)), key=lambda pair: pair[1] - pair[0]):
        first, *rest = (code for _, code in run)
        parts.append(rf"\x{{{first:X}}}" + (rf"-\x{{{rest[-1]:X}}}" if rest else ""))
    return "".join(parts)
