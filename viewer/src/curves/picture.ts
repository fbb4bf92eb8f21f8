// A scene as pictures to be drawn: one for a curve, or one for each head.

import type { Head } from "../store";
import { bandOf } from "./column";
import type { Colours } from "./colours";
import { type Area, cells, type Line, MARGIN, type Picture } from "./draw";
import { type Measures, ofHead } from "./measures";
import { axisOf, type Plot } from "./plots";
import type { Layer, Scene } from "./scene";
import { type Measure, ticksOf } from "./ticks";

export const HEIGHT = 92;
const DASH = [5, 3];

/** The curve of a scene; `lit` is a layer that is pointed at. */
export function pictureOf(scene: Scene, plot: Plot, width: number, colours: Colours, measure: Measure, lit: Layer | null): Picture {
  const axis = axisOf(scene, plot);
  const lines = linesOf(scene, plot, colours, lit);
  const areas = areasOf(scene, plot, colours);
  const drawn = [...lines.map((line) => line.values), ...areas.map((area) => area.high)].flatMap((values) => Array.from(values));
  return {
    width,
    height: HEIGHT,
    margin: MARGIN,
    count: axis.length,
    across: cells(axis.length),
    scale: plot.scale(scene, drawn),
    shade: plot.shade,
    rules: plot.rules,
    areas,
    lines,
    ticks: ticksOf(axis, width - MARGIN.left - MARGIN.right, measure),
    title: "",
  };
}

/** A is a full line and B a dashed one, whichever is in front. */
function linesOf(scene: Scene, plot: Plot, colours: Colours, lit: Layer | null): Line[] {
  const runs = scene.letters?.[0] === "B" ? [1, 0] : [0, 1];
  const line = (measures: Measures, run: number, width: number): Line => ({
    values: measures[plot.name],
    colour: colours.runs[run]!,
    width,
    dash: run === 1 ? DASH : [],
  });
  const lines = [line(scene.main, runs[0]!, 1.8)];
  if (scene.other) lines.unshift(line(scene.other, runs[1]!, 1.4));
  if (lit && lit.attention !== scene.attention) lines.unshift({ ...line(lit.measures, 0, 1), colour: colours.ink, dash: [1, 2] });
  return lines;
}

function areasOf(scene: Scene, plot: Plot, colours: Colours): Area[] {
  const areas: Area[] = [];
  const band = scene.layers.length > 1 ? bandOf(scene.layers.map((layer) => layer.measures[plot.name])) : null;
  if (band) areas.push({ ...band, colour: colours.quiet, opacity: 0.2 });
  if (plot.name === "focus") {
    const { focus, spread } = scene.main;
    const low = focus.map((value, at) => value - spread[at]!);
    const high = focus.map((value, at) => value + spread[at]!);
    areas.push({ low, high, colour: colours.runs[scene.letters?.[0] === "B" ? 1 : 0]!, opacity: 0.22 });
  }
  return areas;
}

/** The layer whose curve is nearest to a value at a place, by its height in the picture; null where there are not two. */
export function nearestLayer(scene: Scene, plot: Plot, place: number, away: (value: number) => number): Layer | null {
  if (scene.layers.length < 2) return null;
  const distance = (layer: Layer) => {
    const value = layer.measures[plot.name][place];
    return value === undefined || Number.isNaN(value) ? Infinity : away(value);
  };
  const found = scene.layers.reduce((best, each) => (distance(each) < distance(best) ? each : best));
  return distance(found) < Infinity ? found : null;
}

export interface Cell {
  head: number;
  x: number;
  y: number;
  picture: Picture;
}

const CELL = { width: 120, height: 54, margin: { left: 4, right: 4, top: 14, bottom: 4 } };

/** Small multiples: all heads on one scale, so that they can be compared. */
export function multiplesOf(scene: Scene, plot: Plot, width: number, colours: Colours): { cells: Cell[]; height: number; columns: number } {
  const { heads } = scene.tables;
  const columns = Math.max(1, Math.min(heads, Math.floor(width / CELL.width)));
  const wide = width / columns;
  const scale = plot.scale(scene, scene.tables[plot.name]);
  const count = axisOf(scene, plot).length;
  const made = Array.from({ length: heads }, (_, head): Cell => {
    const values = ofHead(scene.tables, head)[plot.name];
    const chosen: Head = scene.head;
    const line: Line = { values, colour: head === chosen ? colours.accent : colours.runs[0], width: head === chosen ? 2 : 1.2, dash: [] };
    const shared = { count, across: cells(count), scale: { ...scale, ticks: [] }, shade: plot.shade, rules: plot.rules };
    const room = { width: wide, height: CELL.height, margin: CELL.margin };
    const picture = { ...shared, ...room, areas: [], lines: [line], ticks: [], title: String(head) };
    return { head, x: (head % columns) * wide, y: Math.floor(head / columns) * CELL.height, picture };
  });
  return { cells: made, height: Math.ceil(heads / columns) * CELL.height, columns };
}
