// What the film of training says in numbers: statistics over the recorded steps, and when a head became diagonal.

import type { Example, Frame, Summary } from "../payload";
import type { Head } from "../store";

/** From here on a head counts as diagonal: on average its weight lies within a fifth of the way to the farthest key. */
export const DIAGONAL = 0.8;

/** A statistic of one head, or the mean of all, at every moment; NaN where it is not known. */
export function over(training: Frame[], attention: string, name: keyof Summary, head: Head): Float32Array {
  return Float32Array.from(training, (frame) => {
    const heads = (frame.summary[attention]?.[name] ?? []).map((value) => (value as number | null) ?? NaN);
    if (head !== "mean" && head < heads.length) return heads[head]!;
    const known = heads.filter((value) => !Number.isNaN(value));
    return known.reduce((sum, value) => sum + value, 0) / known.length;
  });
}

export function losses(training: Frame[]): Float32Array {
  return Float32Array.from(training, (frame) => frame.loss ?? NaN);
}

/** The first moment from which a statistic stays at `least` or above up to the last; null where it does not. */
export function settled(values: ArrayLike<number>, least: number): number | null {
  let first: number | null = null;
  for (let place = values.length - 1; place >= 0; place -= 1) {
    if (!(values[place]! >= least)) break;
    first = place;
  }
  return first;
}

/** For each head the training step at which it became diagonal, or null. */
export function diagonalSteps(training: Frame[], attention: string): (number | null)[] {
  const heads = training.at(-1)?.summary[attention]?.diagonality.length ?? 0;
  return Array.from({ length: heads }, (_, head) => {
    const place = settled(over(training, attention, "diagonality", head), DIAGONAL);
    return place === null ? null : training[place]!.step;
  });
}

/** At most `most` of `count` places, evenly, the first and the last always among them. */
export function chosenPlaces(count: number, most: number): number[] {
  if (count <= most) return Array.from({ length: count }, (_, place) => place);
  return Array.from({ length: most }, (_, at) => Math.round((at * (count - 1)) / (most - 1)));
}

/** Where each moment lies between 0 and 1, by its training step; a little room at both ends. */
export function along(training: Frame[]): (place: number) => number {
  const first = training[0]?.step ?? 0;
  const span = (training.at(-1)?.step ?? 0) - first;
  return (place) => 0.02 + 0.96 * (span > 0 ? (training[place]!.step - first) / span : 0.5);
}

/** What the film was taken of: the example's title, or the text that it reads. */
export function probe(example: Example): string {
  if (example.title) return example.title;
  const texts = Object.values(example.axes).flatMap((axis) => (axis.kind === "text" ? [axis.text] : []));
  return texts.join(" → ");
}
