// One function paints every curve of the page; the marks that follow the reader lie over it (marks.tsx).

import { columnsOf } from "./column";
import type { Colours } from "./colours";
import { height, type Scale } from "./scale";
import type { Tick } from "./ticks";

export interface Line {
  values: ArrayLike<number>;
  colour: string;
  width: number;
  dash: number[];
}

export interface Area {
  low: ArrayLike<number>;
  high: ArrayLike<number>;
  colour: string;
  opacity: number;
}

export interface Margin {
  left: number;
  right: number;
  top: number;
  bottom: number;
}

export interface Picture {
  width: number;
  height: number;
  margin: Margin;
  /** How many places there are, and where each lies between 0 and 1. */
  count: number;
  across(place: number): number;
  scale: Scale;
  /** Values between which the ground is shaded. */
  shade: [number, number] | null;
  /** Values at which a line goes across. */
  rules: number[];
  areas: Area[];
  lines: Line[];
  ticks: Tick[];
  title: string;
}

export type Pen = CanvasRenderingContext2D;

/** Pixels that a line of text needs. */
const TALL = 11;

export const MARGIN: Margin = { left: 46, right: 12, top: 8, bottom: 18 };

/** The middle of each of `count` equal cells. */
export function cells(count: number): (place: number) => number {
  return (place) => (place + 0.5) / count;
}

export function xOf(picture: Picture, share: number): number {
  return picture.margin.left + share * inner(picture);
}

export function yOf(picture: Picture, value: number): number {
  const { margin, height: tall, scale } = picture;
  return tall - margin.bottom - height(scale, value) * (tall - margin.top - margin.bottom);
}

/** The place under a pointer. */
export function placeAt(picture: Picture, x: number): number {
  const share = (x - picture.margin.left) / inner(picture);
  return Math.min(picture.count - 1, Math.max(0, Math.floor(share * picture.count)));
}

function inner(picture: Picture): number {
  return Math.max(1, picture.width - picture.margin.left - picture.margin.right);
}

/** Ground, scale, areas, lines and ticks. */
export function draw(pen: Pen, picture: Picture, colours: Colours): void {
  ground(pen, picture, colours);
  for (const area of picture.areas) drawArea(pen, picture, area);
  for (const line of picture.lines) drawLine(pen, picture, line);
  below(pen, picture, colours);
}

function ground(pen: Pen, picture: Picture, colours: Colours): void {
  const [left, right] = [xOf(picture, 0), xOf(picture, 1)];
  pen.font = colours.font;
  pen.lineWidth = 1;
  if (picture.shade) {
    const [low, high] = picture.shade.map((value) => yOf(picture, value)) as [number, number];
    pen.globalAlpha = 0.35;
    pen.fillStyle = colours.line;
    pen.fillRect(left, high, right - left, low - high);
    pen.globalAlpha = 1;
  }
  pen.textAlign = "right";
  pen.textBaseline = "middle";
  for (const { value, text } of apart(picture)) {
    rule(pen, left, right, yOf(picture, value), colours.line, [1, 3]);
    pen.fillStyle = colours.quiet;
    pen.fillText(text, left - 6, yOf(picture, value));
  }
  for (const value of picture.rules) rule(pen, left, right, yOf(picture, value), colours.quiet, []);
}

/** The ticks that have room: those with a rule first, then the ends. */
function apart(picture: Picture): Scale["ticks"] {
  const { ticks, low, high } = picture.scale;
  const rank = (value: number) => (picture.rules.includes(value) ? 0 : value === low || value === high ? 1 : 2);
  const kept: Scale["ticks"] = [];
  for (const tick of [...ticks].sort((left, right) => rank(left.value) - rank(right.value))) {
    if (kept.every((each) => Math.abs(yOf(picture, each.value) - yOf(picture, tick.value)) >= TALL)) kept.push(tick);
  }
  return kept;
}

function rule(pen: Pen, left: number, right: number, y: number, colour: string, dash: number[]): void {
  pen.strokeStyle = colour;
  pen.setLineDash(dash);
  pen.beginPath();
  pen.moveTo(left, Math.round(y) + 0.5);
  pen.lineTo(right, Math.round(y) + 0.5);
  pen.stroke();
  pen.setLineDash([]);
}

/** Where places are more than pixels each column goes from its lowest to its highest value: a peak of one place stays. */
function drawLine(pen: Pen, picture: Picture, line: Line): void {
  pen.strokeStyle = line.colour;
  pen.lineWidth = line.width;
  pen.lineJoin = "round";
  pen.setLineDash(line.dash);
  pen.beginPath();
  const width = Math.round(inner(picture));
  // many places side by side would run into one block
  if (line.values.length > width) pen.lineWidth = Math.min(1, line.width);
  if (line.values.length > width) dense(pen, picture, line.values, width);
  else sparse(pen, picture, line.values);
  pen.stroke();
  pen.setLineDash([]);
  if (line.values.length <= width / 12) dots(pen, picture, line);
}

function dense(pen: Pen, picture: Picture, values: ArrayLike<number>, width: number): void {
  const { low, high } = columnsOf(values, width, (place) => picture.across(place));
  let down = false;
  for (let column = 0; column < width; column += 1) {
    if (Number.isNaN(low[column]!)) {
      down = false;
      continue;
    }
    const x = picture.margin.left + column + 0.5;
    const [first, second] = [yOf(picture, low[column]!), yOf(picture, high[column]!)];
    if (down) pen.lineTo(x, first);
    else pen.moveTo(x, first);
    pen.lineTo(x, second === first ? first - 0.01 : second);
    down = true;
  }
}

function sparse(pen: Pen, picture: Picture, values: ArrayLike<number>): void {
  let down = false;
  for (let place = 0; place < values.length; place += 1) {
    const value = values[place]!;
    const [x, y] = [xOf(picture, picture.across(place)), yOf(picture, value)];
    if (Number.isNaN(value)) down = false;
    else if (down) pen.lineTo(x, y);
    else {
      pen.moveTo(x, y);
      down = true;
    }
  }
}

/** Few places: each is a dot, so that one between two gaps is seen too. */
function dots(pen: Pen, picture: Picture, line: Line): void {
  pen.fillStyle = line.colour;
  for (let place = 0; place < line.values.length; place += 1) {
    if (Number.isNaN(line.values[place]!)) continue;
    pen.beginPath();
    pen.arc(xOf(picture, picture.across(place)), yOf(picture, line.values[place]!), line.width + 0.8, 0, 2 * Math.PI);
    pen.fill();
  }
}

function drawArea(pen: Pen, picture: Picture, area: Area): void {
  const width = Math.round(inner(picture));
  const many = area.low.length > width;
  const low = many ? columnsOf(area.low, width, (place) => picture.across(place)).low : area.low;
  const high = many ? columnsOf(area.high, width, (place) => picture.across(place)).high : area.high;
  const x = (at: number) => xOf(picture, many ? (at + 0.5) / width : picture.across(at));
  pen.fillStyle = area.colour;
  pen.globalAlpha = area.opacity;
  for (let first = 0; first < low.length; first += 1) {
    if (Number.isNaN(low[first]!)) continue;
    let end = first;
    while (end < low.length && !Number.isNaN(low[end]!)) end += 1;
    pen.beginPath();
    for (let at = first; at < end; at += 1) pen.lineTo(x(at), yOf(picture, high[at]!));
    for (let at = end - 1; at >= first; at -= 1) pen.lineTo(x(at), yOf(picture, low[at]!));
    pen.fill();
    first = end;
  }
  pen.globalAlpha = 1;
}

function below(pen: Pen, picture: Picture, colours: Colours): void {
  pen.fillStyle = colours.quiet;
  pen.textBaseline = "top";
  pen.textAlign = "center";
  const bottom = picture.height - picture.margin.bottom + 4;
  let end = -Infinity;
  for (const { place, text } of picture.ticks) {
    const half = pen.measureText(text).width / 2;
    const x = Math.min(picture.width - half, Math.max(picture.margin.left - 8 + half, xOf(picture, picture.across(place))));
    // those at the ends were moved into the picture, so one may now lie over its neighbour
    if (x - half < end + 3) continue;
    pen.fillText(text, x, bottom);
    end = x + half;
  }
  if (!picture.title) return;
  pen.textAlign = "left";
  pen.fillStyle = colours.ink;
  pen.fillText(picture.title, picture.margin.left + 2, picture.margin.top - 11);
}
