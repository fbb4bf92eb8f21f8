// What the two runs that are compared are called: A and B, each with its own name.

import { attention, chosen, compare, example, other, payload } from "../store";
import { say } from "../strings";

/** The names of the two runs as they are; both empty where there is one run alone. */
export function names(): { a: string; b: string } {
  const [a, b] = payload.value.runs;
  return a && b ? { a: a.name, b: b.name } : { a: "", b: "" };
}

/** "A (additive)" and "B (luong)", or the letter alone; names are set apart, whichever way they are written. */
export function lettered(): { a: string; b: string } {
  const { a, b } = names();
  const told = (letter: string, name: string) => (name ? say("compareNamed", { letter, name: `\u2068${name.slice(0, 60)}\u2069` }) : letter);
  return { a: told(say("compareA"), a), b: told(say("compareB"), b) };
}

/** Whose attention is in sight, by name: "A (additive): decoder.0.cross − B (luong): decoder.1.cross"; "" with one run. */
export function sides(): string {
  const [run] = payload.value.runs;
  const mine = run && chosen(run.examples[example.value] ?? run.examples[0]!, attention.value);
  const { a, b } = lettered();
  if (payload.value.runs.length < 2 || !mine) return "";
  const first = say("compareSide", { run: a, attention: mine.id });
  const second = other.value ? say("compareSide", { run: b, attention: other.value.attention.id }) : b;
  if (compare.value === "difference") return say("compareMinus", { first, second });
  return compare.value === "swipe" ? say("compareBeside", { first, second }) : compare.value === "b" ? second : first;
}
