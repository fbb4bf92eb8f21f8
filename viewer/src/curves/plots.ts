// The curves that there are: along which axis each goes, between which values, and what a value says.

import { label } from "../labels";
import type { Axis } from "../payload";
import { say, type Sentence } from "../strings";
import type { Measures } from "./measures";
import { named } from "./name";
import { brief, keysScale, type Scale, sharesScale, unitScale } from "./scale";
import type { Scene } from "./scene";

export type Name = "received" | "largest" | "effective" | "focus" | "sink";

export interface Plot {
  name: Name;
  along: "query" | "key";
  title: Sentence;
  definition: Sentence;
  shade: [number, number] | null;
  rules: number[];
  /** `values` are all that will be drawn. */
  scale(scene: Scene, values: ArrayLike<number>): Scale;
}

export const PLOTS: readonly Plot[] = [
  {
    name: "received",
    along: "key",
    title: "time.received",
    definition: "time.received.is",
    shade: [0.5, 2],
    rules: [1],
    scale: (_, values) => sharesScale(values),
  },
  byQuery("largest", (_, values) => unitScale(values)),
  byQuery("effective", (scene) => keysScale(scene.attention.keys)),
  byQuery("focus", (scene) => positions(scene.axes.key)),
  byQuery("sink", (_, values) => unitScale(values, true)),
];

function byQuery(name: Name, scale: Plot["scale"]): Plot {
  const [title, definition] = [`time.${name}`, `time.${name}.is`] as [Sentence, Sentence];
  return { name, along: "query", title, definition, shade: null, rules: [], scale };
}

/** Key positions, the first and the last named where their names are short. */
function positions(axis: Axis): Scale {
  const last = Math.max(1, axis.length - 1);
  const written = (place: number) => {
    const text = label(axis, place);
    return text.length <= 7 ? text : String(place);
  };
  return { low: 0, high: last, logarithmic: false, ticks: [0, last].map((value) => ({ value, text: written(value) })) };
}

export function axisOf(scene: Scene, plot: Plot): Axis {
  return scene.axes[plot.along];
}

/** What a curve says at a place. */
export function told(scene: Scene, plot: Plot, measures: Measures, place: number): string {
  const value = measures[plot.name][place];
  if (value === undefined || Number.isNaN(value)) return say("time.unknown");
  if (plot.name === "sink") return say("time.value.sink", { value: Math.round(value * 100) });
  if (plot.name !== "focus") return say(`time.value.${plot.name}`, { value: brief(value) });
  const key = named(scene.axes.key, Math.min(scene.axes.key.length - 1, Math.max(0, Math.round(value))));
  return say("time.value.focus", { value: brief(value), spread: brief(measures.spread[place]!), key });
}
