// What a curve shows, in one sentence: the text that stands for the picture.

import { say } from "../strings";
import type { Tables } from "./measures";
import { named } from "./name";
import { axisOf, type Plot, told } from "./plots";
import { brief } from "./scale";
import type { Scene } from "./scene";

export interface Ends {
  most: number;
  least: number;
  mean: number;
}

/** Where the highest and the lowest value stand, the first of several; null where there is none. */
export function endsOf(values: ArrayLike<number>): Ends | null {
  let [most, least, sum, known] = [-1, -1, 0, 0];
  for (let place = 0; place < values.length; place += 1) {
    const value = values[place]!;
    if (Number.isNaN(value)) continue;
    if (most < 0 || value > values[most]!) most = place;
    if (least < 0 || value < values[least]!) least = place;
    sum += value;
    known += 1;
  }
  return known === 0 ? null : { most, least, mean: sum / known };
}

/** Steps of a path that go forward or stay (half a key back is still staying), and the one that goes back most. */
export function pathOf(focus: ArrayLike<number>): { steps: number; forward: number; at: number; back: number } {
  const path = { steps: 0, forward: 0, at: -1, back: 0 };
  let before = NaN;
  for (let place = 0; place < focus.length; place += 1) {
    const here = focus[place]!;
    if (Number.isNaN(here)) continue;
    if (!Number.isNaN(before)) {
      path.steps += 1;
      if (before - here <= 0.5) path.forward += 1;
      else if (before - here > path.back) [path.at, path.back] = [place, before - here];
    }
    before = here;
  }
  return path;
}

export function finding(scene: Scene, plot: Plot): string {
  const values = scene.main[plot.name];
  const ends = endsOf(values);
  if (!ends) return say("time.unknown");
  const axis = axisOf(scene, plot);
  const names = { most: named(axis, ends.most), least: named(axis, ends.least) };
  const [high, low] = [values[ends.most]!, values[ends.least]!];
  if (high - low <= 1e-6 * Math.abs(high)) return say("time.found.flat", { value: told(scene, plot, scene.main, ends.most) });
  const percent = (share: number) => Math.round(share * 100);
  switch (plot.name) {
    case "received":
      return say("time.found.received", { ...names, high: brief(high), low: brief(low) });
    case "largest":
      return say("time.found.largest", { ...names, high: brief(high), low: brief(low), mean: brief(ends.mean) });
    case "effective":
      return say("time.found.effective", {
        ...names,
        high: brief(high),
        low: brief(low),
        mean: brief(ends.mean),
        keys: scene.attention.keys,
      });
    case "focus":
      return wander(scene, values);
    case "sink":
      return say("time.found.sink", { most: names.most, mean: percent(ends.mean), high: percent(high) });
  }
}

function wander(scene: Scene, focus: Float32Array): string {
  const { key, query } = scene.axes;
  const path = pathOf(focus);
  const near = (value: number) => named(key, Math.round(value));
  if (path.at >= 0) {
    const { forward, steps } = path;
    return say("time.found.focus", { forward, steps, most: named(query, path.at), back: brief(path.back) });
  }
  const known = focus.filter((value) => !Number.isNaN(value));
  return say("time.found.monotone", { first: near(known[0]!), last: near(known[known.length - 1]!) });
}

/** The heads with the highest and the lowest mean of a curve; what is received has a mean of about 1 everywhere, so its peak. */
export function headsFinding(tables: Tables, plot: Plot): string {
  const all = tables[plot.name];
  const length = all.length / tables.heads;
  const peaks = plot.name === "received";
  const numbers = Float32Array.from({ length: tables.heads }, (_, head) => {
    const row = all.subarray(head * length, (head + 1) * length);
    const ends = endsOf(row);
    return ends ? (peaks ? row[ends.most]! : ends.mean) : NaN;
  });
  const ends = endsOf(numbers);
  if (!ends) return say("time.unknown");
  const { most, least } = ends;
  const blanks = { name: say(plot.title), heads: tables.heads, most, least, high: brief(numbers[most]!), low: brief(numbers[least]!) };
  return say(peaks ? "time.found.peaks" : "time.found.heads", blanks);
}
