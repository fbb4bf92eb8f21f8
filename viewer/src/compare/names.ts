// What the two runs that are compared are called: A and B, each with its own name.

import { payload } from "../store";
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
