// What two runs share and what they do not, in numbers and in words.

import { align, alone, type Alignment } from "../align";
import type { Statistic } from "../heads/statistics";
import { label } from "../labels";
import type { Attention, Axis, Example } from "../payload";
import { say, type Sentence } from "../strings";

export interface Side {
  example: Example;
  attention: Attention;
}

/** More names than this are counted, not listed. */
const LISTED = 12;

const KINDS: Record<Axis["kind"], Sentence> = {
  text: "compareText",
  audio: "compareAudio",
  image: "compareImage",
  series: "compareSeries",
  index: "compareIndex",
};

/** How the queries and the keys of two runs stand side by side, each in a few sentences. */
export function report(a: Side, b: Side): string[] {
  const told: string[] = [];
  if (a.attention.id !== b.attention.id) told.push(say("compareAttentions", { a: a.attention.id, b: b.attention.id }));
  told.push(...axisReport("compareRows", axis(a, "query"), axis(b, "query")), ...axisReport("compareColumns", axis(a, "key"), axis(b, "key")));
  if (a.attention.heads !== b.attention.heads) told.push(say("compareHeads", { a: a.attention.heads, b: b.attention.heads }));
  return told;
}

function axis(side: Side, role: "query" | "key"): Axis {
  return side.example.axes[side.attention[role]]!;
}

function axisReport(what: Sentence, a: Axis, b: Axis): string[] {
  const name = say(what);
  if (a.kind !== b.kind) return [say("compareKinds", { what: name, a: say(KINDS[a.kind]), b: say(KINDS[b.kind]) })];
  const pairs = align(a, b);
  if (pairs.left.length === 0) return [say("compareNothing", { what: name })];
  const told = [say("compareAligned", { what: name, count: pairs.left.length, a: a.length, b: b.length })];
  if (a.kind === "audio" || a.kind === "series") told.push(say("compareByTime"));
  return [...told, ...leftOver(a, b, pairs)];
}

function leftOver(a: Axis, b: Axis, pairs: Alignment): string[] {
  const [onlyA, onlyB] = [alone(a.length, pairs.left), alone(b.length, pairs.right)];
  const told: string[] = [];
  if (onlyA.length > 0) told.push(say("compareOnlyA", { list: listed(a, onlyA) }));
  if (onlyB.length > 0) told.push(say("compareOnlyB", { list: listed(b, onlyB) }));
  return told;
}

function listed(of: Axis, places: number[]): string {
  const list = places
    .slice(0, LISTED)
    .map((place) => label(of, place).slice(0, 40))
    .join(say("compareComma"));
  return places.length <= LISTED ? list : say("compareMore", { list, count: places.length - LISTED });
}

/** A statistic of one head in both runs; null where a run has no such head or number. */
export interface Pair {
  head: number;
  statistic: Statistic;
  a: number | null;
  b: number | null;
}

/** Every statistic of every head that either run has. */
export function pairs(a: Attention, b: Attention, statistics: readonly Statistic[]): Pair[] {
  const heads = Array.from({ length: Math.max(a.heads, b.heads) }, (_, head) => head);
  return heads.flatMap((head) => statistics.map((statistic) => ({ head, statistic, a: own(a, head, statistic), b: own(b, head, statistic) })));
}

function own(attention: Attention, head: number, statistic: Statistic): number | null {
  return attention.summary[statistic][head] ?? null;
}

export function difference(pair: Pair): number | null {
  return pair.a === null || pair.b === null ? null : pair.a - pair.b;
}

/** The pair that differs most for its statistic: differences are measured by the spread of that statistic over all heads. */
export function largest(all: Pair[]): Pair | null {
  const score = (pair: Pair) => Math.abs(difference(pair) ?? 0) / (spread(all, pair.statistic) || 1);
  const differing = all.filter((pair) => difference(pair));
  return differing.reduce<Pair | null>((best, pair) => (best === null || score(pair) > score(best) ? pair : best), null);
}

function spread(all: Pair[], statistic: Statistic): number {
  const values = all.filter((pair) => pair.statistic === statistic).flatMap((pair) => [pair.a, pair.b].filter((value) => value !== null));
  return Math.max(...values) - Math.min(...values);
}
