// A time series with its moments shaded by weight; from the split on its lines are forecasts, and dashed.

import { written } from "../link/number";
import { toggle } from "../link/roving";
import type { SeriesAxis } from "../payload";
import { say } from "../strings";
import { Canvas, frame, type Paint, type Theme } from "./canvas";
import type { OverlayProps } from "./image";
import { type Shade, shadeOf } from "./shade";
import { useTensor } from "./tensor";
import { dates, numbers } from "./ticks";

const HEIGHT = 230;
const TICKS = 22;
/** Room for numbers on the left and for names on the right. */
const LEFT = 46;
const RIGHT = 70;
/** The lines stay readable on the deepest shade. */
const DEEPEST = 0.5;

/** From places and values to pixels. */
export interface Field {
  x(place: number): number;
  /** Where the moment of a place begins and ends: half way to its neighbours. */
  span(place: number): [number, number];
  y(value: number): number;
  low: number;
  high: number;
}

export function SeriesOverlay({ axis, chosen, shown, line, finding }: OverlayProps<SeriesAxis>) {
  const values = useTensor(axis.values) as Float32Array | null;
  const shade = line && shadeOf(line);
  const paint: Paint = (context, width, height, theme) => {
    const field = fieldOf(axis, values, width, height);
    context.font = theme.font;
    if (shade) shades(context, shade, axis, field, height);
    scales(context, axis, field, width, height, theme);
    if (values) axis.names.forEach((_, name) => drawn(context, axis, values, name, field, width, theme));
    split(context, axis, field, height, theme);
    if (shown !== null) {
      const [left, right] = field.span(shown);
      frame(context, theme, left, 2, Math.max(3, right - left), height - TICKS - 4);
    }
  };
  return (
    <div class="overlay-series">
      <Canvas
        label={say("overlaySeries", { finding })}
        height={() => HEIGHT}
        paint={paint}
        choose={(x, _, width, height) => toggle(chosen, nearest(axis.length, fieldOf(axis, values, width, height), x))}
      />
      {shade && <p class="quiet">{say("overlayFull", { value: written(shade.most) })}</p>}
    </div>
  );
}

/** Moments stand where their times are, if these only grow; else one after the other. */
export function fieldOf(axis: SeriesAxis, values: Float32Array | null, width: number, height: number): Field {
  const grows = axis.times.every((time, at) => at === 0 || time > axis.times[at - 1]!);
  const time = (place: number) => (grows ? axis.times[place]! : place);
  const [first, last] = [time(0), time(axis.length - 1)];
  const [left, right] = [LEFT, width - RIGHT];
  const x = (place: number) => (last > first ? left + ((time(place) - first) / (last - first)) * (right - left) : (left + right) / 2);
  const half = (place: number, beside: number) => (x(place) + x(beside)) / 2;
  const span = (place: number): [number, number] => [
    place === 0 ? left : half(place, place - 1),
    place === axis.length - 1 ? right : half(place, place + 1),
  ];
  const [low, high] = bounds(values);
  const y = (value: number) => 10 + (1 - (value - low) / (high - low)) * (height - TICKS - 20);
  return { x, span, y, low, high };
}

/** The least and the largest value, with a little room where they are one. */
export function bounds(values: Float32Array | null): [number, number] {
  let [low, high] = [Infinity, -Infinity];
  for (const value of values ?? []) {
    if (!Number.isFinite(value)) continue;
    low = Math.min(low, value);
    high = Math.max(high, value);
  }
  if (low > high) return [0, 1];
  return low === high ? [low - 1, high + 1] : [low, high];
}

export function nearest(length: number, field: Field, x: number): number {
  let [low, high] = [0, length - 1];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (field.span(middle)[1] < x) low = middle + 1;
    else high = middle;
  }
  return low;
}

function shades(context: CanvasRenderingContext2D, shade: Shade, axis: SeriesAxis, field: Field, height: number): void {
  for (let place = 0; place < axis.length; place += 1) {
    const [left, right] = field.span(place);
    context.globalAlpha = DEEPEST * shade.share(place);
    context.fillStyle = shade.colour(place);
    context.fillRect(left, 4, Math.max(0.5, right - left), height - TICKS - 8);
  }
  context.globalAlpha = 1;
}

function scales(context: CanvasRenderingContext2D, axis: SeriesAxis, field: Field, width: number, height: number, theme: Theme): void {
  context.textBaseline = "middle";
  for (const tick of numbers(field.low, field.high, 4)) {
    context.fillStyle = theme.line;
    context.fillRect(LEFT, field.y(tick.at), width - LEFT - RIGHT, 1);
    context.fillStyle = theme.quiet;
    context.fillText(tick.label, LEFT - 6 - context.measureText(tick.label).width, field.y(tick.at));
  }
  context.textBaseline = "bottom";
  let free = -Infinity;
  for (const { x, label } of moments(axis, field, width)) {
    const half = context.measureText(label).width / 2;
    const start = Math.min(width - 2 * half, Math.max(0, x - half));
    if (start < free) continue;
    context.fillStyle = theme.quiet;
    context.fillRect(x, height - TICKS, 1, 4);
    context.fillText(label, start, height);
    free = start + 2 * half + 12;
  }
}

function moments(axis: SeriesAxis, field: Field, width: number): { x: number; label: string }[] {
  const [first, last] = [axis.times[0]!, axis.times.at(-1)!];
  const [left, right] = [field.x(0), field.x(axis.length - 1)];
  const ticks = (axis.dates ? dates : numbers)(first, last, (width - LEFT - RIGHT) / 110);
  return ticks.map((tick) => ({ x: last > first ? left + ((tick.at - first) / (last - first)) * (right - left) : left, label: tick.label }));
}

/** One line and its name at the end; what is forecast is dashed, and what is missing is left open. */
function drawn(
  context: CanvasRenderingContext2D,
  axis: SeriesAxis,
  values: Float32Array,
  name: number,
  field: Field,
  width: number,
  theme: Theme,
): void {
  const split = axis.split ?? axis.length;
  const value = (place: number) => values[place * axis.names.length + name]!;
  context.strokeStyle = theme.series[name % theme.series.length]!;
  context.lineWidth = 2;
  stroke(context, field, value, 0, Math.min(axis.length, split), []);
  stroke(context, field, value, Math.max(0, split - 1), axis.length, [5, 4]);
  const last = value(axis.length - 1);
  context.fillStyle = theme.ink;
  context.textBaseline = "middle";
  context.fillText(axis.names[name]!, width - RIGHT + 6, field.y(Number.isFinite(last) ? last : field.low), RIGHT - 6);
}

function stroke(context: CanvasRenderingContext2D, field: Field, value: (place: number) => number, first: number, end: number, dash: number[]): void {
  context.setLineDash(dash);
  context.beginPath();
  let open = true;
  for (let place = first; place < end; place += 1) {
    const there = Number.isFinite(value(place));
    if (there && open) context.moveTo(field.x(place), field.y(value(place)));
    else if (there) context.lineTo(field.x(place), field.y(value(place)));
    open = !there;
  }
  context.stroke();
  context.setLineDash([]);
}

function split(context: CanvasRenderingContext2D, axis: SeriesAxis, field: Field, height: number, theme: Theme): void {
  if (axis.split === null || axis.split >= axis.length) return;
  const x = field.span(axis.split)[0];
  context.fillStyle = theme.ink;
  context.fillRect(x, 0, 1, height - TICKS);
  context.textBaseline = "top";
  context.fillText(say("overlayForecast"), x + 4, 0);
}
