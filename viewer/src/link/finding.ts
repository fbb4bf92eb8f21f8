// What a line of the matrix says, in one sentence: the text alternative of every picture of it.

import type { Axis } from "../payload";
import { graphemes, label, shorten } from "../labels";
import { quantity } from "../store";
import { say } from "../strings";
import { quantityLabel } from "./choices";
import { written } from "./number";
import { differs, type Line, type Peak, peaks, scores } from "./reading";

/** Characters of a label that a sentence has room for. */
const BRIEF = 40;

/** What a place is called where nothing else shows that it is there: blanks are made visible, nothing is its number. */
export function called(axis: Axis, place: number): string {
  const name = label(axis, place);
  if (name.trim() !== "") return name;
  return name === "" ? `#${place + 1}` : name.replace(/[\n\r\u2028\u2029]/g, "⏎").replace(/\s/g, "␣");
}

export function brief(axis: Axis, place: number): string {
  const name = called(axis, place);
  // Characters are counted only where there may be too many: it is slow, and a page has a thousand names.
  return name.length <= BRIEF ? name : shorten(name, BRIEF, (text) => graphemes(text).length);
}

/** Hebrew, Arabic and their like. */
const LEFTWARD = /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]/;

/** In quotes; a name that runs from right to left is set apart, or it would turn the numbers around it. */
export function quoted(axis: Axis, place: number): string {
  const name = brief(axis, place);
  return say("linkQuoted", { label: LEFTWARD.test(name) ? `\u2068${name}\u2069` : name });
}

/** "Jerry" 0.50. */
export function pair(axis: Axis, peak: Peak): string {
  return say("linkPair", { label: quoted(axis, peak.place), value: written(peak.value, peak.exact, differs()) });
}

/** What a query reads. */
export function reads(queries: Axis, query: number, keys: Axis, row: Line): string {
  if (!row.known) return unknown(queries, query);
  const [first, second] = strongest(row).map((peak) => pair(keys, peak));
  const told = blanks(quoted(queries, query), first, second);
  if (!first) return say("linkReadsNothing", told);
  if (differs() || quantity.value !== "weights") return compared(told, second);
  return say(second ? "linkReadsThen" : "linkReads", told);
}

/** Who reads a key. */
export function readBy(keys: Axis, key: number, queries: Axis, column: Line): string {
  if (!column.known) return unknown(keys, key);
  const [first, second] = strongest(column).map((peak) => pair(queries, peak));
  const told = blanks(quoted(keys, key), first, second);
  if (!first) return say("linkReadByNobody", told);
  if (differs() || quantity.value !== "weights") return compared(told, second);
  return say(second ? "linkReadByThen" : "linkReadBy", told);
}

/** The two strongest; a weight of nothing is none, a score of zero is one like any other. */
function strongest(line: Line): Peak[] {
  return peaks(line, 2).filter((peak) => peak.value !== 0 || scores());
}

function blanks(place: string, first = "", second = ""): Record<string, string> {
  return { place, first, second, quantity: say(quantityLabel(quantity.value)) };
}

/** Differences and other quantities are told the same way along a row and along a column. */
function compared(told: Record<string, string>, second: string | undefined): string {
  if (differs()) return say(second ? "linkDiffersThen" : "linkDiffers", told);
  return say(second ? "linkHighestThen" : "linkHighest", told);
}

function unknown(axis: Axis, place: number): string {
  return say(differs() ? "linkNoCounterpart" : "linkNoRow", { place: quoted(axis, place) });
}
