"""The page in a headless browser: how long it takes to open, to move and to point, and how large it is.

A band with noise and one single peak, square, is written as a self-contained page. `open` is the time from asking for the
page to its first painted map; `pan` and `hover` are the times a frame took, p50 and p95; `naive`
paints the whole matrix for every frame, as a plain canvas would. Sizes take turns, and the medians of the rounds are kept.
`heads` writes 144 heads of 2,048 x 2,048 under the usual budget; `tile` asks a server for tiles of the largest map.
Rows are appended to results/viewer.csv.
"""

import argparse
import csv
import platform
import shutil
import statistics
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

import numpy as np

from attention import commit, hardware
from regard.data.axis import Index
from regard.viewer.html.render import BUDGET, html
from regard.viewer.html.server import Server
from regard.viewer.trace import AttentionMap, Example, Trace

RESULTS = Path(__file__).parent / "results" / "viewer.csv"
HEADER = ["name", "shape", "ms", "spread_ms", "bytes", "beside_ms", "ratio", "figure", "hardware", "versions", "commit"]
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"]
FLAGS += ["--disable-component-update", "--disable-sync"]
FIGURES = {("open", 4096): "<= 1000", ("pan p95", 4096): "<= 16", ("hover p50", 4096): "<= 5", ("bytes", 4096): "<= 2000000"}

NAIVE = """async (side) => {
  const colours = new Uint32Array(256).map((_, at) => 0xff000000 | (at * 65793));
  const bytes = new Uint8Array(side * side).map((_, at) => at & 255);
  const source = new OffscreenCanvas(side, side), target = document.createElement('canvas');
  [target.width, target.height] = [650, 450];
  const pen = source.getContext('2d'), out = target.getContext('2d');
  const image = pen.createImageData(side, side), words = new Uint32Array(image.data.buffer);
  const taken = [];
  for (let frame = 0; frame < 15; frame += 1) {
    const start = performance.now();
    for (let at = 0; at < bytes.length; at += 1) words[at] = colours[bytes[at]];
    pen.putImageData(image, 0, 0);
    out.drawImage(source, frame, frame, side - 20, side - 20, 0, 0, 650, 450);
    taken.push(performance.now() - start);
    await new Promise(requestAnimationFrame);
  }
  return taken;
}"""


def trace(side: int, heads: int = 1) -> Trace:
    """A band along the diagonal with noise, and one cell far from it."""
    generator = np.random.default_rng(0)
    scores = -np.abs(np.arange(side)[None] - np.arange(side)[:, None]).astype(np.float32) / 6
    weights = np.empty((heads, side, side), np.float16)
    for head in range(heads):
        grown = np.exp(scores + 0.4 * generator.standard_normal((side, side), dtype=np.float32))
        weights[head] = grown / grown.sum(-1, keepdims=True)
        weights[head, side // 7] = 0
        weights[head, side // 7, side * 5 // 6] = 1
    return Trace(
        f"{side} x {side}", (Example({"q": Index(side), "k": Index(side)}, (AttentionMap("a", "q", "k", weights),)),)
    )


def percentile(taken: list[float], share: float) -> float:
    return float(np.quantile(taken, share))


def round_of(browser, file: Path, side: int) -> dict[str, float]:
    """Open a page, pan and point, and read what each frame took."""
    page = browser.new_context(viewport={"width": 1280, "height": 800}).new_page()
    page.goto(file.as_uri())
    page.wait_for_selector("html[data-ready]")
    opened = page.evaluate("window.timings.find(each => each.name === 'paint').at")
    box = page.locator("canvas.heat-matrix").bounding_box()
    middle = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(*middle)
    for _ in range(4):
        page.mouse.wheel(0, -200)
        page.wait_for_timeout(30)
    page.evaluate("window.timings.length = 0")
    page.mouse.down()
    for step in range(80):
        page.mouse.move(middle[0] + 150 * np.sin(step / 8), middle[1] + 100 * np.cos(step / 8))
    page.mouse.up()
    pan = page.evaluate("window.timings.filter(each => each.name === 'paint').map(each => each.milliseconds)")
    page.evaluate("window.timings.length = 0")
    for step in range(80):
        page.mouse.move(box["x"] + 20 + step * 5, box["y"] + 20 + step * 3)
    hover = page.evaluate("window.timings.filter(each => each.name === 'crosshair').map(each => each.milliseconds)")
    naive = page.evaluate(NAIVE, side)
    page.context.close()
    return {
        "open": opened,
        "pan p50": percentile(pan, 0.5),
        "pan p95": percentile(pan, 0.95),
        "hover p50": percentile(hover, 0.5),
        "hover p95": percentile(hover, 0.95),
        "naive p50": percentile(naive, 0.5),
    }


def pages(sides: list[int], rounds: int, folder: Path) -> list[list[object]]:
    from playwright.sync_api import sync_playwright

    files = {}
    for side in sides:
        files[side] = folder / f"{side}.html"
        files[side].write_text(html([trace(side)]), encoding="utf-8")
    taken: dict[int, list[dict[str, float]]] = {side: [] for side in sides}
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), headless=True, args=FLAGS)
        for number in range(rounds):
            for side in sides if number % 2 else reversed(sides):
                taken[side].append(round_of(browser, files[side], side))
        browser.close()
    rows = []
    for side in sides:
        size = files[side].stat().st_size
        middle = {name: statistics.median(each[name] for each in taken[side]) for name in taken[side][0]}
        for name, ms in middle.items():
            beside = middle["naive p50"] if name == "pan p50" else ""
            ratio = f"{middle['naive p50'] / ms:.1f}" if name == "pan p50" else ""
            spread = max(each[name] for each in taken[side]) - min(each[name] for each in taken[side])
            rows.append(row(name, f"{side}x{side}", ms, spread, size, beside, ratio, FIGURES.get((name, side), "")))
        rows.append(row("page", f"{side}x{side}", "", "", size, "", "", FIGURES.get(("bytes", side), "")))
    return rows


def many(heads: int, side: int) -> list[object]:
    """A page of many heads under the usual budget."""
    start = time.perf_counter()
    page = html([trace(side, heads)], budget=BUDGET)
    taken = (time.perf_counter() - start) * 1e3
    return row(f"{heads} heads", f"{side}x{side}", taken, "", len(page.encode()), "", "", "<= 16 MB and the page itself")


def tiles(side: int) -> list[object]:
    """How long a server takes for a tile, once its matrix has been read."""
    taken = []
    with Server([trace(side)]) as server:
        for number in range(200):
            place = f"i={number % (side // 256)}&j={number * 7 % (side // 256)}&l=0"
            start = time.perf_counter()
            with urllib.request.urlopen(f"{server.url}tile?{place}") as answer:
                answer.read()
            taken.append((time.perf_counter() - start) * 1e3)
    return row("tile p95", f"{side}x{side}", percentile(taken[5:], 0.95), "", 65536, taken[0], "", "first tile beside")


def row(name, shape, ms, spread, size, beside, ratio, figure) -> list[object]:
    told = [f"{each:.2f}" if isinstance(each, float) else each for each in (ms, spread)]
    beside = f"{beside:.2f}" if isinstance(beside, float) else beside
    print(f"{name:>12} {shape:>10} {told[0]:>10} ms  {size:>10,} bytes  {ratio:>6} {figure}", flush=True)
    versions = f"python {platform.python_version()} numpy {np.__version__}"
    return [name, shape, *told, size, beside, ratio, figure, hardware(), versions, commit()]


def append(rows: list[list[object]]) -> None:
    fresh = not RESULTS.exists()
    with RESULTS.open("a", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([HEADER, *rows] if fresh else rows)
    print(f"{len(rows)} rows appended to {RESULTS.parent.name}/{RESULTS.name}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sides", type=int, nargs="+", default=[1024, 2048, 4096])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--heads", type=int, default=144, help="heads of 2,048 x 2,048 in one page; 0 leaves that out")
    options = parser.parse_args()
    if shutil.which("chromium") is None:
        sys.exit("this needs chromium on the path; it is Debian's package chromium")
    with tempfile.TemporaryDirectory() as folder:
        rows = pages(options.sides, options.rounds, Path(folder))
    rows.append(tiles(max(options.sides)))
    if options.heads:
        rows.append(many(options.heads, 2048))
    append(rows)


if __name__ == "__main__":
    main()
