"""The language that a text seems to be in, as far as its letters tell: for the forms of characters and their direction."""

SCRIPTS = {
    "ja": (("\u3041", "\u30ff"), ("\u31f0", "\u31ff"), ("\uff66", "\uff9f")),
    "ko": (("\uac00", "\ud7a3"), ("\u1100", "\u11ff"), ("\u3131", "\u318e")),
    "zh": (("\u4e00", "\u9fff"), ("\u3400", "\u4dbf"), ("\uf900", "\ufaff"), ("\U00020000", "\U000323af")),
    "ar": (("\u0620", "\u06ff"), ("\u0750", "\u077f"), ("\ufb50", "\ufdff"), ("\ufe70", "\ufefc")),
    "he": (("\u05d0", "\u05f4"), ("\ufb1d", "\ufb4f")),
    "th": (("\u0e01", "\u0e5b"),),
}
"""Ranges of characters by language. Kana and Hangul come before Han, which Japanese and Korean share with Chinese."""


def guess(text: str) -> str | None:
    """A BCP 47 tag, or None where the script is that of many languages. Which Chinese it is, the characters do not say."""
    for language, ranges in SCRIPTS.items():
        if any(first <= letter <= last for letter in text for first, last in ranges):
            return language
    return None
