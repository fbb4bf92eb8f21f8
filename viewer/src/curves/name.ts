// What a place is called in a sentence: its label, but never a whole page of it.

import { graphemes, label, shorten } from "../labels";
import type { Axis } from "../payload";

const LONGEST = 24;

export function named(axis: Axis, place: number): string {
  return short(label(axis, place));
}

/** A text of at most so many characters as a reader counts them. */
export function short(text: string): string {
  return isolated(shorten(text, LONGEST, (part) => graphemes(part).length));
}

/** Words that run from the right keep to themselves, so that the numbers and quotation marks around them stay in place. */
function isolated(text: string): string {
  return /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]/.test(text) ? `\u2068${text}\u2069` : text;
}
