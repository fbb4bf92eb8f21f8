// The way through an example: its steps of decoding, or simply its queries.

import { reveal } from "../heatmap/window";
import { chosen, current, currentExample, query } from "../store";
import type { Attention, Example, Step } from "../payload";

/** The axis that decoding wrote: where the last attention that looks at another axis has its queries. */
export function decodedAxis(example: Example): string | null {
  return chosen(example, "")?.query ?? null;
}

/** Whether an attention's queries are what the steps wrote. */
export function decoded(example: Example, attention: Attention | null): boolean {
  return example.steps.length > 0 && (!attention || attention.query === decodedAxis(example));
}

/** The queries that playback goes through. */
export function stops(example: Example, attention: Attention | null): number[] {
  if (decoded(example, attention)) return example.steps.map((step) => step.query);
  if (attention?.rows) return attention.rows;
  return Array.from({ length: attention?.queries ?? 0 }, (_, place) => place);
}

/** Which stop the crosshair is at: the last one that is not beyond it; -1 before the first or without a crosshair. */
export function at(way: number[], place: number | null): number {
  return place === null ? -1 : way.findLastIndex((each) => each <= place);
}

/** The step that the crosshair is at, where there are steps. */
export function stepAt(example: Example, attention: Attention | null, place: number | null): Step | null {
  if (!decoded(example, attention)) return null;
  return example.steps[at(stops(example, attention), place)] ?? null;
}

export function way(): number[] {
  return stops(currentExample.value, current.value);
}

/** Go some stops on; false where there is no further one. */
export function go(by: number): boolean {
  const all = way();
  const next = at(all, query.value) + by;
  if (next < 0 || next >= all.length) return false;
  query.value = all[next]!;
  reveal(query.value, null);
  return true;
}
