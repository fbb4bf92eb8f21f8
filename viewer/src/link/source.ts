// How weights came about. A trace keeps codes, "measured:sdpa; rows:float32", as src/regard/viewer/source.py has them.

import { say, type Sentence } from "../strings";

const BETWEEN = "; ";

/** Codes that say all by themselves. */
const PLAIN: Record<string, Sentence> = {
  given: "sourceGiven",
  itself: "sourceItself",
  again: "sourceAgain",
  transformers: "sourceTransformers",
  eight_bits: "sourceEightBits",
  reference: "sourceReference",
  measured: "sourceMeasured",
};

/** Codes with the name of a kernel or of a precision behind a colon. */
const NAMED: Record<string, Sentence> = {
  fused: "sourceFused",
  instead: "sourceInstead",
  measured: "sourceMeasuredBy",
  rows: "sourceRows",
};

/** A source in the reader's language; what is no code is somebody's own text and stands as it is. */
export function sourceTold(source: string): string {
  return source.split(BETWEEN).map(told).join(say("sourceBetween"));
}

function told(part: string): string {
  const at = part.indexOf(":");
  const [name, detail] = at < 0 ? [part, ""] : [part.slice(0, at), part.slice(at + 1)];
  const among = at < 0 ? PLAIN : NAMED;
  const known = Object.hasOwn(among, name) && (at < 0 || detail !== "");
  return known ? say(among[name]!, { name: detail }) : part;
}
