// What the matrix of heads shows, in a sentence and as the ends of its palette.

import { headsView, layers } from "../store";
import { say } from "../strings";
import { extremes } from "./order";
import { headName, nameOf, numberOf } from "./statistics";
import type { Span } from "./surface";

/** Which heads are lowest and highest. */
export function finding(): string {
  const statistic = headsView.value === "pictures" ? "entropy" : headsView.value;
  const counts = { heads: layers.value.reduce((sum, each) => sum + each.heads, 0), layers: layers.value.length, statistic: nameOf(statistic) };
  const ends = extremes(layers.value, statistic, numberOf);
  if (!ends) return say("headsNoNumbers", counts);
  const { low, high } = ends;
  const names = { low: headName(low.attention, low.head), high: headName(high.attention, high.head) };
  return say("headsFinding", { ...counts, ...names, least: low.value.toPrecision(3), most: high.value.toPrecision(3) });
}

/** The ends of the palette; null where pictures are shown. */
export function span(): Span | null {
  if (headsView.value === "pictures") return null;
  const ends = extremes(layers.value, headsView.value, numberOf);
  return { statistic: headsView.value, low: ends?.low.value ?? 0, high: ends?.high.value ?? 1 };
}
