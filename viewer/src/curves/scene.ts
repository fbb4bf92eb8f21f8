// Everything that the curves show at one moment of the page: the attention in sight, its layers, and the other run.

import { align } from "../align";
import type { Attention, Axis, Example } from "../payload";
import { attention, chosen, current, currentExample, example, frame, head, layers, other, payload, runIndex } from "../store";
import type { Head } from "../store";
import { ofHead, tablesOf, type Measure, type Measures, type Tables } from "./measures";
import { tablesAt } from "./moment";

export interface Layer {
  attention: Attention;
  measures: Measures;
}

export interface Scene {
  attention: Attention;
  head: Head;
  axes: { query: Axis; key: Axis };
  tables: Tables;
  main: Measures;
  /** All attentions between the same axes, this one included. */
  layers: Layer[];
  /** The other run, put beside this one's places; NaN where it has no partner. */
  other: Measures | null;
  /** "A" and "B" where there are two runs: this one first. */
  letters: [string, string] | null;
  /** Whether the numbers are out of 256 steps: those of the film. */
  about: boolean;
  /** Whether a moment of the film is chosen that did not keep this attention. */
  unfilmed: boolean;
}

/** Load what the store selects now; null where the example has no attention. */
export function scene(): Promise<Scene> | null {
  const shown = current.value;
  if (!shown) return null;
  const place = currentExample.value;
  const here: Beside = { example: place, attention: shown, tables: tables(runIndex.value, place, shown) };
  const all = layers.value.map((each): Beside => ({ ...here, attention: each, tables: tables(runIndex.value, place, each) }));
  // a band of some layers as they were then and others as they are now would be of no model
  const group = all.filter((each) => each.tables.filmed === here.tables.filmed);
  return assemble(here, group, counterpart(), head.value, runIndex.value === 0 ? ["A", "B"] : ["B", "A"]);
}

interface Read {
  found: Promise<Tables>;
  /** Whether a moment of training is chosen, and whether its film has this attention. */
  filmed: boolean;
  missed: boolean;
}

interface Beside {
  example: Example;
  attention: Attention;
  tables: Read;
}

/** The numbers of an attention at the moment that is chosen, else as the model was recorded. */
function tables(number: number, place: Example, of: Attention): Read {
  const moment = frame.value === null ? null : payload.value.runs[number]!.training[frame.value];
  const filmed = moment && moment.example === example.value ? tablesAt(moment, of, place.axes[of.key]!) : null;
  return { found: filmed ?? tablesOf(of), filmed: filmed !== null, missed: frame.value !== null && filmed === null };
}

async function assemble(
  here: Beside,
  group: Beside[],
  beside: Beside | null,
  head: Head,
  letters: [string, string],
): Promise<Scene> {
  const { attention: shown, example: place } = here;
  const axes = { query: place.axes[shown.query]!, key: place.axes[shown.key]! };
  const found = await here.tables.found;
  const all = await Promise.all(group.map(async (each) => ({ attention: each.attention, tables: await each.tables.found })));
  return {
    attention: shown,
    head,
    axes,
    tables: found,
    main: ofHead(found, within(found, head)),
    layers: all.map((each) => ({ attention: each.attention, measures: ofHead(each.tables, within(each.tables, head)) })),
    other: beside && aligned(beside, await beside.tables.found, axes, head),
    letters: beside && letters,
    about: here.tables.filmed,
    unfilmed: here.tables.missed,
  };
}

/** A head that this attention has; the mean where it has fewer. */
function within(tables: Tables, head: Head): Head {
  return head === "mean" || head < tables.heads ? head : "mean";
}

/** The other run's attention, whichever of the two is in sight. */
function counterpart(): Beside | null {
  if (runIndex.value === 0) return other.value && { ...other.value, tables: tables(1, other.value.example, other.value.attention) };
  const first = payload.value.runs[0]!.examples[example.value];
  const found = first && chosen(first, attention.value);
  return first && found ? { example: first, attention: found, tables: tables(0, first, found) } : null;
}

function aligned(beside: Beside, tables: Tables, axes: Scene["axes"], head: Head): Measures {
  const found = ofHead(tables, within(tables, head));
  const keys = align(axes.key, beside.example.axes[beside.attention.key]!);
  const queries = align(axes.query, beside.example.axes[beside.attention.query]!);
  const put = (name: Measure) => (name === "received" ? moved(found[name], keys, axes.key) : moved(found[name], queries, axes.query));
  const focus = placed(put("focus"), keys, axes.key.length);
  return {
    received: put("received"),
    largest: put("largest"),
    effective: put("effective"),
    focus,
    spread: put("spread"),
    sink: put("sink"),
  };
}

/** Values of the other run at the places of this one that they belong to. */
function moved(values: Float32Array, pairs: { left: number[]; right: number[] }, axis: Axis): Float32Array {
  const found = new Float32Array(axis.length).fill(NaN);
  pairs.left.forEach((place, at) => (found[place] = values[pairs.right[at]!]!));
  return found;
}

/** A focus counts keys of the other run: say it in keys of this one, between the two partners that it lies between. */
function placed(focus: Float32Array, pairs: { left: number[]; right: number[] }, keys: number): Float32Array {
  const { left, right } = pairs;
  if (left.length === 0) return focus.map(() => NaN);
  if (left.length === keys && left.every((place, at) => place === right[at])) return focus;
  return focus.map((value) => interpolated(value, right, left));
}

/** `from` and `to` only ever grow; beyond their ends the step is one for one. */
export function interpolated(value: number, from: number[], to: number[]): number {
  if (Number.isNaN(value)) return NaN;
  const next = from.findIndex((each) => each > value);
  if (next === 0) return to[0]! - (from[0]! - value);
  const before = next < 0 ? from.length - 1 : next - 1;
  if (next < 0) return to[before]! + (value - from[before]!);
  const share = (value - from[before]!) / (from[next]! - from[before]!);
  return to[before]! + share * (to[next]! - to[before]!);
}
