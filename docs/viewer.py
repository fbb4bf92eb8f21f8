"""Take the pictures of the page that the documentation shows.

python docs/viewer.py [--out docs/viewer] [--recurrent RUN --transformer RUN]

Two models are trained on the translation that comes with the package, which takes some minutes, unless directories that
`regard train` made are given; the recurrent one needs a film (--train.record_example). The picture, the sound and the
series are made in docs/figures.py: their weights are drawn, not learned. Needs Chromium, playwright and Pillow.
"""

import argparse
import io
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from figures import caption, load, speech

import regard
from regard.viewer.html.render import html
from regard.viewer.trace import Trace

if TYPE_CHECKING:
    from PIL import Image
    from playwright.sync_api import Browser

SENTENCE = "the big tiger that Tom fears does not like Mary"
WRITTEN = "汤姆害怕的大老虎不喜欢玛丽"
GOLD = {"sure": [*enumerate((4, 4, 5, 5, 3, 1, 2, 2, 7, 8, 8, 9, 9))], "possible": [(8, 6)]}
"""The word of the sentence that each character of its translation stands for."""
TRAIN = {
    "recurrent": ["--train.max_steps=400", "--train.record_example=Tom chases Jerry", "--train.record_every=25"],
    "transformer": [
        *("--model.encoder=transformer", "--model.decoder=transformer", "--model.layers=3"),
        *("--model.attention.name=transformer", "--train.max_steps=300"),
    ],
}
LINK, PAGE = "#panel-link", ""
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update", "--disable-sync"]
SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
MOST = 80_000
"""Bytes that a picture may take."""


class Shot(NamedTuple):
    """One picture, in light and dark: of which traces, opened with which state, of the whole page or one part of it."""

    name: str
    traces: list[Trace]
    state: str
    part: str = PAGE
    height: int = 1000


def main(out: Path, recurrent: Path | None, transformer: Path | None) -> None:
    """Train what is missing, and take every picture."""
    with tempfile.TemporaryDirectory() as folder:
        runs = [given or train(kind, Path(folder)) for kind, given in zip(TRAIN, (recurrent, transformer), strict=True)]
        film = Trace.load(runs[0] / "film.attn.safetensors")
        asked = [regard.load(run, "cpu").trace([SENTENCE], beam=4) for run in runs]
    traces = [replace(trace, name=name) for trace, name in zip(asked, ("additive", "transformer"), strict=True)]
    out.mkdir(parents=True, exist_ok=True)
    photograph(shots(traces[0], traces[1], film), out)


def train(kind: str, folder: Path) -> Path:
    """A model of a kind, trained here."""
    run = folder / kind
    command = [sys.executable, "-m", "regard", "train", "translate", *TRAIN[kind], "--out", str(run)]
    subprocess.run(command, check=True)
    return run


def shots(recurrent: Trace, transformer: Trace, film: Trace) -> list[Shot]:
    """Every picture of the documentation."""
    one, two = [recurrent], [recurrent, transformer]
    last = transformer.attention().name
    pins = f"{last}:0,{last}:2"
    aligned = transformer.with_gold(GOLD) if transformer.example().axes["target"].text == WRITTEN else None
    if aligned is None:
        sys.exit(f"the Transformer must write {WRITTEN}, of which the gold links are known; train it longer")
    return [
        Shot("page", one, "#q=7"),
        Shot("page-zh", one, "#q=7&lang=zh"),
        Shot("network", [transformer], f"#a={last}", ".network"),
        Shot("playback", one, "#q=7", ".playback", height=1800),
        Shot("heatmap", [transformer], f"#a={last}&h=0&q=7", LINK),
        Shot("lines", one, "#v=lines&q=7", LINK),
        Shot("lines-heads", [transformer], f"#a={last}&v=lines&lh=0,1,2,3&top=2", LINK),
        Shot("tokens", one, "#v=tokens&q=7", LINK),
        Shot("table", one, "#v=table&q=7&top=4", LINK),
        Shot("heads", [transformer], f"#a={last}&h=0&m=entropy&pin={pins}&each=1"),
        Shot("alignment", [aligned], f"#a={last}&h=0&m=alignment&o=alignment.up", ".heads"),
        Shot("compare", two, "#c=difference&q=7", height=760),
        Shot("swipe", two, "#c=swipe&sw=0.5&q=7", LINK),
        Shot("time", [transformer], f"#a={last}&q=7", "#panel-time"),
        Shot("film", [film], "#f=8&q=4", height=1080),
        Shot("overlay-picture", [caption()], "#q=3", LINK, height=1200),
        Shot("overlay-sound", [speech()], "#v=overlay&q=2", LINK),
        Shot("overlay-series", [load()], "#v=overlay&q=5", LINK),
    ]


def photograph(wanted: list[Shot], out: Path) -> None:
    """Open each page and write its picture."""
    from playwright.sync_api import sync_playwright

    program = shutil.which("chromium") or shutil.which("google-chrome")
    if program is None:
        sys.exit("the pictures are taken in Chromium; install it (Debian: chromium)")
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as folder:
        browser = playwright.chromium.launch(executable_path=program, args=FLAGS)
        for shot, scheme in product(wanted, SCHEMES):
            name = f"{shot.name}-{scheme}.png"
            small = shrink(taken(browser, shot, scheme, Path(folder)))
            (out / name).write_bytes(small)
            print(f"{name}  {len(small):,} bytes")
            if len(small) > MOST:
                sys.exit(f"{name} takes {len(small):,} bytes, more than {MOST:,}")
        browser.close()


def taken(browser: "Browser", shot: Shot, scheme: Literal["light", "dark"], folder: Path) -> bytes:
    """The picture as the browser gives it, once the page has drawn itself."""
    file = folder / "page.html"
    file.write_text(html(shot.traces, state=shot.state), encoding="utf-8")
    page = browser.new_page(viewport={"width": 1440, "height": shot.height}, locale="en-GB", color_scheme=scheme)
    page.goto(file.as_uri())
    page.wait_for_selector("html[data-ready]")
    before = b""
    while (now := page.screenshot()) != before:  # matrices are unpacked and drawn one after the other
        before = now
        time.sleep(0.5)
    picture = page.locator(shot.part).screenshot() if shot.part else now
    page.close()
    return picture


def shrink(picture: bytes) -> bytes:
    """The same picture as small as it goes; in 256 colours, chosen to cover all that there are, where it is too large."""
    from PIL import Image

    whole = Image.open(io.BytesIO(picture)).convert("RGB")
    written = packed(whole)
    few = whole.quantize(256, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
    return written if len(written) <= MOST else packed(few)


def packed(picture: "Image.Image") -> bytes:
    """A picture as PNG."""
    stream = io.BytesIO()
    picture.save(stream, format="png", optimize=True)
    return stream.getvalue()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "viewer", help="where the pictures go")
    parser.add_argument("--recurrent", type=Path, metavar="RUN", help="a directory that `regard train` made, with a film")
    parser.add_argument("--transformer", type=Path, metavar="RUN", help="another, of a Transformer")
    given = parser.parse_args()
    main(given.out, given.recurrent, given.transformer)
