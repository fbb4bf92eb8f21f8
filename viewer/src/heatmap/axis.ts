// The names along an edge of the heat map: all of them where a row is tall enough, else ticks; always the crosshair's.

import { labels, shorten } from "../labels";
import type { Axis } from "../payload";

/** Pixels that a row or column needs before its name is written. */
export const LEGIBLE = 10;
const GAP = 4;
const TURN = Math.PI / 4;
/** The longest that names may make a margin. */
export const LONGEST = 132;
const TICKS = 44;

export interface Edge {
  axis: Axis;
  /** The first place in sight and one past the last, and how many pixels they have. */
  first: number;
  end: number;
  pixels: number;
  /** Names stand beside rows or above columns. */
  side: "left" | "top";
}

/** Pixels of one place. */
export function pitch(edge: Edge): number {
  return edge.pixels / (edge.end - edge.first);
}

export function named(edge: Edge): boolean {
  return pitch(edge) >= LEGIBLE;
}

/** Places of which any part is in sight. */
function inSight(edge: Edge): number[] {
  const [first, end] = [Math.floor(edge.first), Math.min(edge.axis.length, Math.ceil(edge.end))];
  return Array.from({ length: Math.max(0, end - first) }, (_, at) => first + at);
}

type Measure = (text: string) => number;

/** Whether names above columns must be turned to find room. */
export function turned(edge: Edge, measure: Measure): boolean {
  return edge.side === "top" && inSight(edge).some((place) => width(edge, place, measure) > pitch(edge) - GAP);
}

function width(edge: Edge, place: number, measure: Measure): number {
  return Math.min(LONGEST, measure(labels(edge.axis)[place]!.slice(0, 64)));
}

/** How much room the names need, across the edge. */
export function thickness(edge: Edge, measure: Measure): number {
  if (!named(edge)) return edge.side === "left" ? TICKS + 12 : 26;
  const longest = Math.max(12, ...inSight(edge).map((place) => width(edge, place, measure)));
  if (edge.side === "left") return Math.ceil(longest) + 2 * GAP + 2;
  return turned(edge, measure) ? Math.ceil(longest * Math.sin(TURN)) + 18 : 22;
}

/** Names of a long axis are first seen when one zooms in; so much of them is shown then, and the crosshair's whole. */
const ZOOMED = { left: 96, top: 52 };
/** Names that are measured for it: the longest by their number of letters. */
const MEASURED = 24;
const longest = new WeakMap<Axis, string[]>();

/** The room that an edge keeps at every zoom: what its names need where all stand there, else enough to read them zoomed in. */
export function roomFor(whole: Edge, measure: Measure): number {
  if (named(whole)) return thickness(whole, measure);
  let names = longest.get(whole.axis);
  if (!names) {
    names = labels(whole.axis).map((name) => name.slice(0, 64)).sort((one, other) => other.length - one.length).slice(0, MEASURED);
    longest.set(whole.axis, names);
  }
  const widest = Math.max(12, ...names.map(measure));
  if (whole.side === "left") return Math.max(thickness(whole, measure), Math.ceil(Math.min(ZOOMED.left, widest)) + 2 * GAP + 2);
  return Math.min(ZOOMED.top, Math.max(26, Math.ceil(widest * Math.sin(TURN)) + 18));
}

export interface Ink {
  ink: string;
  quiet: string;
  paper: string;
  focus: string;
  font: string;
}

/** Draw the edge; `thick` is its room across, `chosen` the crosshair's place, `faint` the places that count for less. */
export function drawEdge(
  pen: CanvasRenderingContext2D,
  edge: Edge,
  thick: number,
  ink: Ink,
  chosen: number | null,
  faint: ReadonlySet<number>,
): void {
  pen.font = ink.font;
  pen.textBaseline = "middle";
  const measure = (text: string) => pen.measureText(text).width;
  if (named(edge)) drawNames(pen, edge, thick, ink, faint, turned(edge, measure), chosen);
  else drawTicks(pen, edge, thick, ink);
  if (chosen !== null && chosen >= edge.first - 1 && chosen < edge.end) drawChosen(pen, edge, thick, ink, chosen, measure);
}

/** The middle of a place, in pixels along the edge. */
export function middle(edge: Edge, place: number): number {
  return (place + 0.5 - edge.first) * pitch(edge);
}

/** All names but the crosshair's, which has a plate: one that is turned would show behind it. */
function drawNames(
  pen: CanvasRenderingContext2D,
  edge: Edge,
  thick: number,
  ink: Ink,
  faint: ReadonlySet<number>,
  turn: boolean,
  chosen: number | null,
): void {
  const measure = (text: string) => pen.measureText(text).width;
  const names = labels(edge.axis);
  for (const place of inSight(edge)) {
    const at = middle(edge, place);
    if (at < 0 || at > edge.pixels || place === chosen) continue;
    pen.fillStyle = faint.has(place) ? ink.quiet : ink.ink;
    const room = edge.side === "left" ? thick - 2 * GAP : turn ? (thick - 16) / Math.sin(TURN) : pitch(edge) - GAP;
    const name = shorten(names[place]!, Math.max(8, room), measure);
    if (edge.side === "left") write(pen, name, thick - GAP, at, "right", 0);
    else if (turn) write(pen, name, at, thick - GAP - 3, "left", -TURN);
    else write(pen, name, at, thick - GAP - 7, "center", 0);
  }
}

function write(pen: CanvasRenderingContext2D, text: string, x: number, y: number, align: CanvasTextAlign, angle: number): void {
  pen.save();
  pen.translate(x, y);
  pen.rotate(angle);
  pen.textAlign = align;
  pen.fillText(text, 0, 0);
  pen.restore();
}

/** The distance of ticks: 1, 2 or 5 times a power of ten, no closer than `room` pixels. */
export function tickStep(pixelsPerPlace: number, room: number): number {
  const least = Math.max(1, room / pixelsPerPlace);
  const power = 10 ** Math.floor(Math.log10(least));
  return [1, 2, 5, 10].map((factor) => factor * power).find((step) => step >= least - 1e-9)!;
}

function drawTicks(pen: CanvasRenderingContext2D, edge: Edge, thick: number, ink: Ink): void {
  const names = edge.axis.kind === "text" ? null : labels(edge.axis);
  const wide = names ? Math.max(...[0, edge.axis.length - 1].map((place) => pen.measureText(names[place] ?? "").width)) + 12 : 44;
  const step = tickStep(pitch(edge), edge.side === "left" ? 28 : wide);
  pen.fillStyle = pen.strokeStyle = ink.quiet;
  pen.lineWidth = 1;
  // Places of a text are counted from 1; other axes have names of their own.
  const base = names ? 0 : 1;
  for (let place = Math.ceil((edge.first + base) / step) * step - base; place < edge.end; place += step) {
    const at = Math.round((place - edge.first) * pitch(edge)) + 0.5;
    const name = shorten(names?.[place] ?? String(place + base), edge.side === "left" ? thick - 10 : wide, (text) => pen.measureText(text).width);
    pen.beginPath();
    if (edge.side === "left") {
      pen.moveTo(thick - 5, at);
      pen.lineTo(thick, at);
      write(pen, name, thick - 7, Math.max(6, at), "right", 0);
    } else {
      pen.moveTo(at, thick - 5);
      pen.lineTo(at, thick);
      write(pen, name, at, thick - 13, at < 16 ? "left" : "center", 0);
    }
    pen.stroke();
  }
}

/** The crosshair's name on a plate of its own, over whatever is there. */
function drawChosen(pen: CanvasRenderingContext2D, edge: Edge, thick: number, ink: Ink, chosen: number, measure: Measure): void {
  const at = Math.min(edge.pixels, Math.max(0, middle(edge, chosen)));
  const name = shorten(labels(edge.axis)[chosen]!, edge.side === "left" ? thick - 2 * GAP : 160, measure);
  const wide = Math.ceil(measure(name)) + 2 * GAP;
  const high = 18;
  const x = edge.side === "left" ? thick - wide : Math.max(0, Math.min(edge.pixels + 40 - wide, at - wide / 2));
  const y = edge.side === "left" ? Math.max(0, Math.min(edge.pixels - high, at - high / 2)) : thick - high - 2;
  pen.fillStyle = ink.ink;
  pen.fillRect(x, y, wide, high);
  pen.fillStyle = ink.paper;
  write(pen, name, x + GAP, y + high / 2 + 0.5, "left", 0);
}
