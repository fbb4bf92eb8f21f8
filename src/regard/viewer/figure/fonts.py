"""Fonts of a figure, and a warning for characters that no installed font has.

Latin comes first, so that letters and digits match the paper's; then whatever is installed for Chinese, Japanese and Korean.
Han characters are shared between these and drawn differently: an axis that says its language takes that language's forms.
matplotlib 3.11 joins Arabic letters and sets them from right to left; it draws no colour fonts, so emoji come in outline,
and those that several characters make together come apart.
"""

import unicodedata
import warnings
from collections.abc import Iterable, Mapping
from functools import cache

import matplotlib
from matplotlib.font_manager import FontProperties, findfont, fontManager, get_font

LATIN = "DejaVu Sans"
SIMPLIFIED = (
    "Noto Sans CJK SC", "Noto Sans SC", "Source Han Sans SC", "Microsoft YaHei", "PingFang SC", "Hiragino Sans GB",
    "WenQuanYi Micro Hei", "SimHei",
)  # fmt: skip
TRADITIONAL = ("Noto Sans CJK TC", "Noto Sans TC", "Source Han Sans TC", "Microsoft JhengHei", "PingFang TC", "Heiti TC")
JAPANESE = ("Noto Sans CJK JP", "Noto Sans JP", "Source Han Sans JP", "Yu Gothic", "Hiragino Sans", "IPAexGothic")
KOREAN = ("Noto Sans CJK KR", "Noto Sans KR", "Source Han Sans KR", "Malgun Gothic", "Apple SD Gothic Neo", "NanumGothic")
OTHERS = (
    "Noto Sans", "Noto Sans Arabic", "Noto Sans Hebrew", "Noto Sans Devanagari", "Noto Sans Thai", "Noto Sans Symbols2",
    "Noto Emoji", "Symbola",
)  # fmt: skip
JOINERS = ("Cf", "Cc", "Zs", "Zl")
"""Kinds of character that are not drawn: joiners, controls, blanks."""


def families(lang: str | None = None) -> list[str]:
    """The installed fonts to look through, in order, for text in a language (a BCP 47 tag)."""
    tag = (lang or "").lower()
    first = {"ja": JAPANESE, "ko": KOREAN}.get(tag[:2], ())
    if tag.startswith(("zh-hant", "zh-tw", "zh-hk", "zh-mo", "yue")):
        first = TRADITIONAL
    wanted = dict.fromkeys((LATIN, *first, *SIMPLIFIED, *TRADITIONAL, *JAPANESE, *KOREAN, *OTHERS))
    available = installed()
    return [name for name in wanted if name in available]


def enough(text: str, lang: str | None = None) -> list[str]:
    """Select the installed fonts that the characters of a text need; matplotlib searches every font for every word."""
    chosen, remaining = [LATIN], missing(text, [LATIN])
    for name in families(lang):
        still = missing("".join(remaining), [name])
        if still != remaining:
            chosen.append(name)
            remaining = still
    return chosen


@cache
def installed() -> frozenset[str]:
    """The names of all fonts that matplotlib knows."""
    return frozenset(font.name for font in fontManager.ttflist)


def missing(text: str, fonts: Iterable[str]) -> set[str]:
    """The characters of a text that none of the fonts has."""
    letters = {letter for letter in text if unicodedata.category(letter) not in JOINERS and not _selects(letter)}
    for name in fonts:
        letters = {letter for letter in letters if not _has(name, letter)}
    return letters


def warn(texts: Mapping[str, Iterable[str]]) -> set[str]:
    """Warn once of all characters without a font, given the texts by language; return these characters."""
    gone: set[str] = set()
    for lang, words in texts.items():
        gone |= missing("".join(words), families(lang))
    if gone:
        some = " ".join(sorted(gone)[:20]) + (" ..." if len(gone) > 20 else "")
        packages = " or ".join(sorted({_package(letter) for letter in gone}))
        warnings.warn(
            f"no installed font has {len(gone)} characters of this figure, where placeholders stand for them: {some}; "
            f"install {packages}, then delete fontlist-*.json in {matplotlib.get_cachedir()}, matplotlib's list of fonts",
            UserWarning,
            stacklevel=2,
        )
    return gone


@cache
def _has(name: str, letter: str) -> bool:
    return bool(get_font(findfont(FontProperties(family=[name]))).get_char_index(ord(letter)))


def _package(letter: str) -> str:
    """The Debian package of a font that has the character."""
    if unicodedata.category(letter) == "So" and ord(letter) > 0xFFFF:
        return "fonts-symbola (emoji, in outline: matplotlib draws no colour fonts)"
    return "fonts-noto-cjk" if unicodedata.east_asian_width(letter) in "WF" else "fonts-noto-core"


def _selects(letter: str) -> bool:
    """True for a variation selector."""
    return "\ufe00" <= letter <= "\ufe0f"
