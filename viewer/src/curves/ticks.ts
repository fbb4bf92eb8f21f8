// What stands under a curve: tokens where they fit, else positions, seconds or dates, never one over another.

import { labels, shorten } from "../labels";
import type { Axis, SeriesAxis } from "../payload";
import { nice } from "./scale";

export interface Tick {
  place: number;
  text: string;
}

export type Measure = (text: string) => number;

const GAP = 8;

/** Ticks along `axis` drawn `width` pixels wide. */
export function ticksOf(axis: Axis, width: number, measure: Measure): Tick[] {
  if (axis.length === 0 || width <= 0) return [];
  return tokens(axis, width, measure) ?? spaced(axis, width, measure);
}

/** Every label under its own place, a few of them shortened; null where there is no room for that. */
function tokens(axis: Axis, width: number, measure: Measure): Tick[] | null {
  const room = width / axis.length - GAP;
  if ((axis.kind !== "text" && axis.kind !== "image") || room < 18) return null;
  const texts = labels(axis);
  const fitting = texts.filter((text) => measure(text) <= room).length;
  if (fitting < 0.6 * texts.length) return null;
  return texts.map((text, place) => ({ place, text: shorten(text, room, measure) }));
}

/** Round positions, seconds or dates, as many as there is room for. */
function spaced(axis: Axis, width: number, measure: Measure): Tick[] {
  const widest = Math.max(...[0, axis.length >> 1, axis.length - 1].map((place) => measure(written(axis, place))));
  const step = stepOf(axis, Math.max(1, ((widest + GAP) * axis.length) / width));
  const ticks: Tick[] = [];
  for (let at = counted(axis) ? step - 1 : 0; Math.round(at) < axis.length; at += step) ticks.push({ place: Math.round(at), text: written(axis, Math.round(at)) });
  return ticks;
}

/** At least `least` places, and a round number of what is counted. */
function stepOf(axis: Axis, least: number): number {
  if (axis.kind !== "audio") return Math.max(1, nice(Math.ceil(least)));
  return Math.max(1, nice(least * axis.seconds_per_step) / axis.seconds_per_step);
}

/** A place in numbers. */
function written(axis: Axis, place: number): string {
  if (axis.kind === "audio") return `${Number((place * axis.seconds_per_step).toFixed(2))} s`;
  if (axis.kind === "series") return moment(axis, place);
  return String(counted(axis) ? place + 1 : place);
}

/** Places of a text are counted from 1, as everywhere on the page. */
function counted(axis: Axis): boolean {
  return axis.kind === "text";
}

/** A date without what all moments share: the time of day where one day holds all, the day where times of day are all midnight. */
function moment(axis: SeriesAxis, place: number): string {
  if (!axis.dates) return String(Number(axis.times[place]!.toPrecision(6)));
  const text = new Date(axis.times[place]! * 1000).toISOString();
  const span = axis.times[axis.length - 1]! - axis.times[0]!;
  return span <= 86400 ? text.slice(11, 16) : span <= 60 * 86400 ? text.slice(5, 16).replace("T", " ") : text.slice(0, 10);
}
