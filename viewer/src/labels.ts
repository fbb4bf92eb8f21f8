// What a place of an axis is called: the text that a token covers, a second, a date, a patch. Made once per axis.

import type { Axis, SeriesAxis } from "./payload";
import { say } from "./strings";

const made = new WeakMap<Axis, string[]>();

/** The name of every place. */
export function labels(axis: Axis): string[] {
  let found = made.get(axis);
  if (!found) {
    found = axis.labels ?? make(axis);
    made.set(axis, found);
  }
  return found;
}

/** The number of a place: from 1, but where a number is the place's own name that. */
export function numberOf(axis: Axis, place: number): number {
  return axis.kind === "index" ? place : place + 1;
}

export function label(axis: Axis, place: number): string {
  return labels(axis)[place] ?? "";
}

/** More about a place, for a tooltip: its number, and the model's own piece where that is not what is shown. */
export function detail(axis: Axis, place: number): string {
  const shown = label(axis, place);
  const piece = axis.kind === "text" ? axis.pieces[place] : undefined;
  // Steps, queries and places are counted from 1 everywhere; a number that is a place's own name stays as it is.
  const parts = [axis.kind === "index" ? say("placeIndex", { length: axis.length }) : say("place", { place: place + 1, length: axis.length })];
  if (piece !== undefined && piece !== shown) parts.push(say("piece", { piece }));
  if (axis.kind === "text" && axis.special.includes(place)) parts.push(say("special"));
  if (axis.kind === "audio") parts.push(`${(place * axis.seconds_per_step).toFixed(3)} s`);
  if (axis.kind === "series" && axis.split !== null && place >= axis.split) parts.push(say("forecast"));
  return parts.join(" · ");
}

/** The language of an axis, for `lang`: shared Han characters take the form of their language. */
export function languageTag(axis: Axis | null): string | undefined {
  return axis?.kind === "text" ? (axis.lang ?? undefined) : undefined;
}

/** The places of special tokens. */
export function special(axis: Axis | null): ReadonlySet<number> {
  return new Set(axis?.kind === "text" ? axis.special : []);
}

function make(axis: Axis): string[] {
  const places = Array.from({ length: axis.length }, (_, place) => place);
  switch (axis.kind) {
    case "text":
      return axis.pieces;
    case "audio":
      return places.map((place) => `${(place * axis.seconds_per_step).toFixed(2)} s`);
    case "image":
      return places.map((place) => axis.prefix[place] ?? patch(place - axis.prefix.length, axis.grid[1]));
    case "series":
      return places.map((place) => moment(axis, place));
    case "index":
      return places.map(String);
  }
}

function patch(place: number, columns: number): string {
  return `${Math.floor(place / columns) + 1},${(place % columns) + 1}`;
}

/** Dates as Python writes them: in universal time, to the second. */
function moment(axis: SeriesAxis, place: number): string {
  const time = axis.times[place]!;
  if (!axis.dates) return String(Number(time.toPrecision(6)));
  const date = new Date(time * 1000);
  return Number.isNaN(date.getTime()) ? String(time) : date.toISOString().slice(0, 19).replace("T", " ");
}

const segmenter = typeof Intl !== "undefined" && "Segmenter" in Intl ? new Intl.Segmenter(undefined, { granularity: "grapheme" }) : null;

/** What a reader sees as one character each: a family of emoji is one. */
export function graphemes(text: string): string[] {
  return segmenter ? Array.from(segmenter.segment(text), (each) => each.segment) : [...text];
}

/** Far more than any label has room for: a token of ten thousand characters is not segmented whole at every paint. */
const LONGEST = 200;

/** As much of a text as is `width` wide, never part of a character, with an ellipsis where some is left out. */
export function shorten(text: string, width: number, measure: (text: string) => number): string {
  if (text.length <= LONGEST && measure(text) <= width) return text;
  const parts = graphemes(text.slice(0, LONGEST));
  let [low, high] = [0, parts.length];
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (measure(parts.slice(0, middle).join("") + "…") <= width) low = middle;
    else high = middle - 1;
  }
  return low === 0 && measure("…") > width ? "" : parts.slice(0, low).join("") + "…";
}
