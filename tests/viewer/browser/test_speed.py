"""Speed as ratios within one run: cost is bounded by what is in sight, never by the matrix."""

import statistics

from regard.viewer.html import render

from ..invented import large

NAIVE = """(side) => {
  const bytes = new Uint8Array(side * side).map((_, at) => at & 255);
  const colours = new Uint32Array(256).map((_, at) => 0xff000000 | (at * 65793));
  const source = document.createElement('canvas'), target = document.createElement('canvas');
  [source.width, source.height, target.width, target.height] = [side, side, 600, 400];
  const pen = source.getContext('2d'), out = target.getContext('2d');
  const image = pen.createImageData(side, side), words = new Uint32Array(image.data.buffer);
  const taken = [];
  for (let frame = 0; frame < 5; frame += 1) {
    const start = performance.now();
    for (let at = 0; at < bytes.length; at += 1) words[at] = colours[bytes[at]];
    pen.putImageData(image, 0, 0);
    out.drawImage(source, frame, frame, side - 20, side - 20, 0, 0, 600, 400);
    out.getImageData(0, 0, 1, 1);
    taken.push(performance.now() - start);
  }
  return taken;
}"""
PAINTS = "window.timings.filter(each => each.name === 'paint').map(each => each.milliseconds)"
OPENED = "window.timings.find(each => each.name === 'paint').at"


def dragged(page) -> list[float]:
    """Milliseconds of each frame while the map is dragged about."""
    box = page.locator("canvas.heat-matrix").bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x, y)
    for _ in range(3):
        page.mouse.wheel(0, -300)
        page.wait_for_timeout(60)
    page.evaluate("window.timings.length = 0")
    page.mouse.down()
    for step in range(25):
        page.mouse.move(x + 4 * step, y + 2 * step)
        page.wait_for_timeout(10)
    page.mouse.up()
    return page.evaluate(PAINTS)


def test_a_large_map_moves_far_faster_than_a_canvas_that_paints_it_all_and_opens_little_later_than_a_small_one(watched):
    pages = {side: render.html([large(side, side)]) for side in (1024, 4096)}
    assert len(pages[4096].encode()) < 2_000_000
    opened: dict[int, list[float]] = {1024: [], 4096: []}
    for _ in range(3):
        for side, html in pages.items():
            page = watched.show(html)
            opened[side].append(page.evaluate(OPENED))
    frames, naive = dragged(page), page.evaluate(NAIVE, 4096)
    assert len(frames) >= 5
    assert statistics.median(naive) > 5 * statistics.median(frames), (naive, frames)
    assert statistics.median(opened[4096]) < 4 * statistics.median(opened[1024]), opened
