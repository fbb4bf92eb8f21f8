// A text cut where its tokens are: what lies between tokens stays text, and tokens that share a character go together.

import type { TextAxis } from "../payload";

/** A stretch of the passage: plain text, or tokens, by their places, with the text that they cover. */
export interface Stretch {
  text: string;
  /** Empty for text that belongs to no token. */
  places: number[];
  /** The token covers no text, such as <eos>, so its own name is shown. */
  name: boolean;
}

/** Tokens of places [first, end) and the text around them, in the order in which they are read. */
export function flow(axis: TextAxis, names: string[], first = 0, end = axis.spans.length): Stretch[] {
  if (!inOrder(axis)) return apart(names, first, end);
  const letters = Array.from(axis.text);
  const found: Stretch[] = [];
  // How far the text has been told: a page goes on where the one before it ended.
  let until = axis.spans.slice(0, first).reduce((most, span) => Math.max(most, span?.[1] ?? 0), 0);
  for (let place = first; place < end; place += 1) {
    const span = axis.spans[place];
    if (!span || span[0] === span[1]) {
      found.push({ text: names[place] ?? "", places: [place], name: true });
      continue;
    }
    const last = found.findLast((each) => !each.name && each.places.length > 0);
    if (last && span[0] < until) {
      last.text += letters.slice(until, span[1]).join("");
      last.places.push(place);
    } else {
      const start = Math.max(span[0], until);
      if (start > until) found.push({ text: letters.slice(until, start).join(""), places: [], name: false });
      found.push({ text: letters.slice(start, span[1]).join(""), places: [place], name: false });
    }
    until = Math.max(until, span[1]);
  }
  if (end === axis.spans.length && until < letters.length) {
    found.push({ text: letters.slice(until).join(""), places: [], name: false });
  }
  return found.filter((each) => each.places.length > 0 || each.text !== "");
}

/** Whether the tokens stand in the text in the order of their places; if not, it cannot be read as a text. */
function inOrder(axis: TextAxis): boolean {
  let at = 0;
  for (const span of axis.spans) {
    if (!span) continue;
    if (span[0] < at) return false;
    at = span[0];
  }
  return true;
}

function apart(names: string[], first: number, end: number): Stretch[] {
  return names.slice(first, end).map((text, at) => ({ text, places: [first + at], name: true }));
}
