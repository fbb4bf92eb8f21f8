// A layout for narrow panels: boxes one under another, frames around what they hold, lines that skip boxes in a gutter at the side.

import { every, type Box, type Line } from "./fold";
import { type Drawn, HEADER, heightOf, type Point, type Rectangle } from "./layout";

const MARGIN = 10;
const PAD = 8;
/** Between two boxes: an arrow and the shape on it. */
const GAP = 30;
/** Room at the right for lines that skip boxes, and the distance of two of them. */
const GUTTER = 34;
const LANE = 6;
const LANES = 4;
/** A box is no wider than its words need, and never narrower than can be read. */
const [NARROWEST, WIDEST] = [110, 230];

/** Everything in a width; the order down the page is that of `tops`, where boxes stood in the free layout. */
export function stacked(boxes: Box[], lines: Line[], labels: string[], width: number, tops: Map<string, number>): Drawn {
  const places = new Map<string, Rectangle>();
  const sorted = (among: Box[]) => [...among].sort((one, other) => (tops.get(one.slot) ?? 0) - (tops.get(other.slot) ?? 0));
  const put = (among: Box[], left: number, top: number, room: number): number => {
    let down = top;
    for (const box of sorted(among)) {
      if (down > top) down += GAP;
      if (box.inside.length > 0) {
        const end = put(box.inside, left + PAD, down + HEADER, room - 2 * PAD) + PAD;
        places.set(box.slot, { left, top: down, width: room, height: end - down });
        down = end;
      } else {
        const wide = Math.max(NARROWEST, Math.min(WIDEST, room));
        places.set(box.slot, { left: left + Math.max(0, (room - wide) / 2), top: down, width: wide, height: heightOf(box) });
        down += heightOf(box);
      }
    }
    return down;
  };
  const room = Math.max(NARROWEST, width - 2 * MARGIN - GUTTER);
  const height = put(boxes, MARGIN, MARGIN, room) + MARGIN;
  const leaves = every(boxes).filter((box) => box.inside.length === 0);
  const order = leaves.map((box) => box.slot).sort((one, other) => places.get(one)!.top - places.get(other)!.top);
  let lane = 0;
  const drawn = lines.map((line, at) => {
    const [start, end] = [places.get(line.start)!, places.get(line.end)!];
    const next = order.indexOf(line.end) === order.indexOf(line.start) + 1;
    const points = next ? straight(start, end) : around(start, end, MARGIN + room + 8 + LANE * (lane++ % LANES));
    const middle = next && labels[at] ? { x: (points[0]!.x + points[1]!.x) / 2, y: start.top + start.height + GAP / 2 } : null;
    return { line, points, label: labels[at]!, at: middle };
  });
  return { width: MARGIN + room + GUTTER + MARGIN, height, places, lines: drawn };
}

function straight(start: Rectangle, end: Rectangle): Point[] {
  return [
    { x: start.left + start.width / 2, y: start.top + start.height },
    { x: end.left + end.width / 2, y: end.top },
  ];
}

/** Out of a box to the right, along the gutter, and into the other from the right. */
function around(start: Rectangle, end: Rectangle, x: number): Point[] {
  const [from, to] = [start.top + start.height * 0.6, end.top + end.height * 0.4];
  return [
    { x: start.left + start.width, y: from },
    { x, y: from },
    { x, y: to },
    { x: end.left + end.width, y: to },
  ];
}
