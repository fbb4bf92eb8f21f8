// One number of each kind for every head, and what a head is called.

import type { Attention, Summary } from "../payload";
import { frame, layers, run, type Head } from "../store";
import { say, type Sentence } from "../strings";

export type Statistic = keyof Summary;

const ALWAYS: readonly Statistic[] = ["entropy", "sink", "distance", "diagonality"];

/** What heads are measured by: the alignment error only where somebody said what should have been linked. */
export function statistics(of: readonly Attention[] = layers.value): readonly Statistic[] {
  return of.some((each) => average(each.summary.alignment) !== null) ? [...ALWAYS, "alignment"] : ALWAYS;
}

const NAMES: Record<Statistic, Sentence> = {
  entropy: "headsEntropy",
  sink: "headsSink",
  distance: "headsDistance",
  diagonality: "headsDiagonality",
  alignment: "headsAlignment",
};
const MEANINGS: Record<Statistic, Sentence> = {
  entropy: "headsEntropyMeans",
  sink: "headsSinkMeans",
  distance: "headsDistanceMeans",
  diagonality: "headsDiagonalityMeans",
  alignment: "headsAlignmentMeans",
};

export function nameOf(statistic: Statistic): string {
  return say(NAMES[statistic]);
}

export function meaningOf(statistic: Statistic): string {
  return say(MEANINGS[statistic]);
}

/** A statistic of a head, at the moment of training that is shown; of the mean of heads, theirs on average. Null: unknown. */
export function numberOf(attention: Attention, head: Head, statistic: Statistic): number | null {
  const filmed = frame.value === null ? undefined : run.value.training[frame.value]?.summary[attention.id];
  const values: (number | null)[] = (filmed ?? attention.summary)[statistic];
  return head === "mean" ? average(values) : known(values[head]);
}

function average(values: (number | null)[]): number | null {
  const numbers = values.filter((value) => known(value) !== null) as number[];
  return numbers.length === 0 ? null : numbers.reduce((sum, value) => sum + value, 0) / numbers.length;
}

function known(value: number | null | undefined): number | null {
  return value === null || value === undefined || !Number.isFinite(value) ? null : value;
}

/** A number as it is shown: three digits that say something. */
export function shown(value: number | null): string {
  if (value === null) return say("headsUnknown");
  return Math.abs(value) >= 100 ? value.toFixed(0) : String(Number(value.toPrecision(3)));
}

/** "layer 3, head 7". */
export function headName(attention: Attention, head: Head): string {
  const own = head === "mean" ? say("headsMeanOf") : say("headsHead", { head });
  return `${say("headsLayer", { layer: attention.layer })}${say("headsComma")}${own}`;
}

/** "layer 3, head 7, entropy 1.2, sink 0.1": the name and all that is known of a head. */
export function headSentence(attention: Attention, head: Head, told: readonly Statistic[] = statistics()): string {
  const known = told.map((each) => ({ each, value: numberOf(attention, head, each) })).filter(({ value }) => value !== null);
  const numbers = known.map(({ each, value }) => say("headsNumber", { statistic: nameOf(each), value: shown(value) }));
  return [headName(attention, head), ...numbers].join(say("headsComma"));
}
