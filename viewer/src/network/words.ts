// What a box of the network says.

import type { Attention } from "../payload";
import { say } from "../strings";
import type { Box, Line } from "./fold";
import { shape } from "./layout";

/** What an attention says of itself, in the order in which it works. */
const FACTS = ["mechanism", "score", "normalise", "scope", "kernel"];
/** The mechanism that is nothing beyond its score, normaliser and scope. */
const PLAIN = "Attention";

/** The facts of an attention: its score, normaliser, scope, kernel, and number of heads. */
export function facts(box: Box): string[] {
  const about = box.node?.about ?? {};
  const named = FACTS.filter((name) => name in about && about[name] !== PLAIN).map((name) => String(about[name]));
  const keys = effective(box.attention!);
  return [...named, headsOf(box.attention!), ...(keys === null ? [] : [say("networkSpread", { value: keys.toFixed(1), keys: box.attention!.keys })])];
}

/** Over how many keys a query spreads, in the mean of heads and queries: exp(entropy); null where that was not recorded. */
export function effective(attention: Attention): number | null {
  const known = attention.summary.entropy.filter((each) => each !== null);
  return known.length === 0 ? null : Math.exp(known.reduce((sum, each) => sum + each, 0) / known.length);
}

function headsOf(attention: Attention): string {
  return attention.heads === 1 ? say("networkOneHead") : say("networkHeads", { count: attention.heads });
}

/** The small lines under the name of a module: what it is, and what it gives. */
export function kind(box: Box): string[] {
  if (!box.node) return [];
  if (box.node.kind === "axis") return [say("networkAxis", { length: box.node.output?.[0] ?? 0 })];
  const output = box.node.output ? shape(box.node.output) : "";
  return [box.node.kind, output].filter((part) => part && part !== box.name);
}

/** What a screen reader adds to what is drawn: sizes, and where the inputs come from. */
export function more(box: Box, lines: Line[], names: Map<string, string>): string {
  const inputs = lines.filter((line) => line.end === box.slot).map((line) => reading(line, names));
  const parts = [
    box.node?.parameters ? say("networkParameters", { count: number(box.node.parameters) }) : "",
    box.node?.output ? say("networkGives", { shape: shape(box.node.output) }) : "",
    inputs.length > 0 ? say("networkReads", { list: inputs.join("; ") }) : "",
    box.times > 1 ? say("networkTimes", { count: box.times }) : "",
  ];
  return parts.filter(Boolean).join(", ");
}

function reading(line: Line, names: Map<string, string>): string {
  return [names.get(line.start) ?? "", ...line.roles, ...line.shapes.map(shape)].filter(Boolean).join(" ");
}

/** A number with its thousands apart. */
function number(value: number): string {
  return value.toLocaleString("en-US");
}
