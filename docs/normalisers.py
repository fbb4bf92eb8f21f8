"""Draw the README's picture from the real stages: the same four scores through three normalisers.

python docs/normalisers.py > docs/normalisers.svg
"""

import torch

from regard.attention import Entmax, Softmax, Sparsemax

SCORES = [2.0, 1.5, 0.8, -1.0]
WORDS = ["Tom", "chases", "Jerry", "."]
PANELS = [
    ("score", "how well each key fits", None, "#8c8c8c"),
    ("softmax", "everyone gets a share", Softmax(), "#0072b2"),
    ("entmax 1.5", "the last gets exactly none", Entmax(1.5), "#009e73"),
    ("sparsemax", "only the best are read", Sparsemax(), "#d55e00"),
]
WIDTH, HEIGHT, PANEL, BAR = 920, 230, 220, 34
DARK = 'font-family="system-ui, sans-serif" fill="#222"'
SMALL = f'{DARK} font-size="12" text-anchor="middle"'
SIZES = f'viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}"'


def bars(index: int, title: str, note: str, heights: list[float], labels: list[str], colour: str) -> list[str]:
    """One panel: a title, a bar for each word, its number above and its word below."""
    left, base, tall = 30 + index * PANEL, 160, 100
    drawn = [
        f'<text x="{left}" y="24" {DARK} font-size="16" font-weight="600">{title}</text>',
        f'<text x="{left}" y="42" {DARK} font-size="12" opacity="0.75">{note}</text>',
        f'<line x1="{left}" y1="{base}" x2="{left + 4 * 44}" y2="{base}" stroke="#999"/>',
    ]
    for place, (height, label, word) in enumerate(zip(heights, labels, WORDS, strict=True)):
        x, size = left + 5 + place * 44, abs(height) * tall
        y = base - size if height >= 0 else base
        number = y - 6 if height >= 0 else base - 6
        drawn += [
            f'<rect x="{x}" y="{y:.1f}" width="{BAR}" height="{size:.1f}" fill="{colour}"/>',
            f'<text x="{x + BAR / 2:g}" y="{number:.1f}" {SMALL}>{label}</text>',
            f'<text x="{x + BAR / 2:g}" y="{base + 54}" {SMALL}>{word}</text>',
        ]
    return drawn


def picture() -> str:
    """The whole drawing as SVG."""
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {SIZES} role="img">',
        "<title>The same scores through softmax, entmax and sparsemax</title>",
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
    ]
    for index, (title, note, normalise, colour) in enumerate(PANELS):
        if normalise is None:
            values, heights = SCORES, [score / 3 for score in SCORES]
        else:
            values = heights = normalise(torch.tensor(SCORES).view(1, 1, 1, 4)).flatten().tolist()
        labels = [f"{value:.1f}" if normalise is None else f"{value:.2f}" if value else "0" for value in values]
        lines += bars(index, title, note, heights, labels, colour)
    return "\n".join([*lines, "</svg>", ""])


if __name__ == "__main__":
    print(picture(), end="")
