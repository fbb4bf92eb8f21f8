// Draws the heat map whenever something that it shows has changed, at most once a frame.

import { effect, signal } from "@preact/signals";
import { grid, swiped } from "../cells";
import { prepare } from "../curves/canvas";
import { coloursOf, type Colours, theme } from "../curves/colours";
import type { Grid } from "../grid";
import { special } from "../labels";
import { paint, type Plan, type Shown } from "../paint";
import { pixels, table, TWO_SIDED } from "../palette";
import { arrivals, factor, upper } from "../range";
import * as store from "../store";
import { drawEdge } from "./axis";
import { hatch } from "./hatch";
import { hides, shownOf } from "./hidden";
import { type Layout, layout } from "./layout";
import { drawBars, type Margins, marginsOf } from "./margins";
import { Minimap } from "./minimap";
import { numbers } from "./numbers";
import { crosshair } from "./pointed";
import { timed } from "./timings";
import { inSight, zoomed } from "./window";

export interface Canvases {
  root: HTMLElement;
  matrix: HTMLCanvasElement;
  cross: HTMLCanvasElement;
  left: HTMLCanvasElement;
  top: HTMLCanvasElement;
  right: HTMLCanvasElement;
  bottom: HTMLCanvasElement;
  minimap: HTMLCanvasElement;
}

/** How the latest painting was reduced, for the line under the picture. */
export const painted = signal<Plan | null>(null);
/** Whether the curves at the edges are there. */
export const curves = signal(false);
/** The curves at the edges, of what is in sight. */
export const margins = signal<Margins | null>(null);
/** Where things stand since the latest painting. */
export const laid = signal<Layout | null>(null);

/** The last keys under a causal mask can receive thousands of times their share; bars end here so that the others show. */
const MOST_RECEIVED = 4;

/** How tall the plot may be: a good part of the screen, so that the curves below are still in sight. */
function room(): number {
  return Math.min(760, Math.max(300, Math.round(window.innerHeight * 0.58)));
}

/** The painter at work; null while another view is open. */
export const painting = signal<Painter | null>(null);

export class Painter {
  /** The pixel of each byte in the latest painting. */
  colours: Uint32Array = new Uint32Array(256);
  private readonly size = signal<[number, number]>([0, 0]);
  private readonly arrived = signal(0);
  private readonly stops: (() => void)[] = [];
  private readonly minimap = new Minimap();
  private readonly measuring = document.createElement("canvas").getContext("2d");
  private waiting = 0;
  private crossWaiting = 0;
  private readonly shown = new WeakMap<Grid, Shown>();

  constructor(private readonly on: Canvases) {
    const resized = () => {
      const [width, height] = [on.root.clientWidth, room()];
      if (width !== this.size.peek()[0] || height !== this.size.peek()[1]) this.size.value = [width, height];
    };
    const observer = typeof ResizeObserver === "undefined" ? null : new ResizeObserver(resized);
    observer?.observe(on.root);
    window.addEventListener("resize", resized);
    resized();
    this.stops.push(() => observer?.disconnect(), () => window.removeEventListener("resize", resized));
    this.stops.push(effect(() => this.load()));
    this.stops.push(effect(() => grid.value?.changed(() => ((this.arrived.value += 1), (arrivals.value += 1)))));
    this.stops.push(effect(() => swiped.value?.changed(() => ((this.arrived.value += 1), (arrivals.value += 1)))));
    this.stops.push(effect(() => this.follow()));
    this.stops.push(effect(() => this.followCross()));
    painting.value = this;
  }

  stop(): void {
    if (painting.peek() === this) painting.value = null;
    this.stops.forEach((stop) => stop());
    cancelAnimationFrame(this.waiting);
    cancelAnimationFrame(this.crossWaiting);
  }

  /** The curves belong to the recorded weights of one run: no moment of training, other quantity or difference has any here. */
  private load(): void {
    const [attention, head] = [store.current.value, store.head.value];
    const several = store.compare.value === "difference" || store.compare.value === "swipe";
    margins.value = null;
    if (!attention || several || store.quantity.value !== "weights" || store.frame.value !== null) return;
    marginsOf(attention, head).then(
      (found) => {
        if (store.current.peek() === attention && store.head.peek() === head) margins.value = found;
      },
      () => undefined,
    );
  }

  private follow(): void {
    for (const each of [grid, swiped, inSight, this.size, this.arrived, margins, theme, store.language]) void each.value;
    for (const each of [upper, store.shrink, store.palette, store.scale, store.transposed, store.swipe, store.hideSpecial, store.compare]) void each.value;
    cancelAnimationFrame(this.waiting);
    this.waiting = requestAnimationFrame(() => timed("paint", () => this.paint()));
  }

  private followCross(): void {
    for (const each of [crosshair, laid, grid, theme, this.arrived]) void each.value;
    for (const each of [upper, store.palette, store.scale, store.transposed]) void each.value;
    cancelAnimationFrame(this.crossWaiting);
    this.crossWaiting = requestAnimationFrame(() => timed("crosshair", () => this.crosshair()));
  }

  /** Everything but the crosshair, now. */
  paint(): void {
    const [matrix, attention, queries, keys] = [grid.peek(), store.current.peek(), store.queryAxis.peek(), store.keyAxis.peek()];
    const [width, height] = this.size.peek();
    if (!matrix || !attention || !queries || !keys || width === 0 || matrix.rows !== attention.queries) return;
    const ink = coloursOf(this.on.root);
    if (this.measuring) this.measuring.font = ink.font;
    const measure = (text: string) => this.measuring?.measureText(text).width ?? text.length * 6;
    const [window, transposed] = [inSight.peek(), store.transposed.peek()];
    const plan = layout({ queries, keys, window, transposed, width, height, measure });
    this.arrange(plan);
    laid.value = plan;
    this.cells(matrix, plan, ink);
    this.edges(plan, ink);
    this.curves(plan, ink);
    this.small(matrix, plan, ink);
  }

  private arrange(plan: Layout): void {
    const style = this.on.root.style;
    style.setProperty("--heat-left", `${plan.left}px`);
    style.setProperty("--heat-top", `${plan.top}px`);
    style.setProperty("--heat-width", `${plan.width}px`);
    style.setProperty("--heat-height", `${plan.height}px`);
    style.setProperty("--heat-margin", `${plan.margin}px`);
  }

  /** The matrix itself, over the hatch where cells are hidden. */
  private cells(matrix: Grid, plan: Layout, ink: Colours): void {
    const pen = prepare(this.on.matrix, plan.width, plan.height);
    if (!pen) return;
    pen.setTransform(1, 0, 0, 1, 0, 0);
    const { width, height } = this.on.matrix;
    this.colours = this.coloursFor(matrix);
    painted.value = this.onto(pen, matrix, width, height, ink);
  }

  /** The cells in sight on a canvas of their own, so many pixels to one of the page. */
  picture(density: number): HTMLCanvasElement | null {
    const [matrix, plan] = [grid.peek(), laid.peek()];
    const canvas = document.createElement("canvas");
    const pen = canvas.getContext("2d");
    if (!matrix || !plan || !pen) return null;
    [canvas.width, canvas.height] = [Math.round(plan.width * density), Math.round(plan.height * density)];
    this.onto(pen, matrix, canvas.width, canvas.height, coloursOf(this.on.root));
    return canvas;
  }

  private coloursFor(matrix: Grid): Uint32Array {
    const colours = table(store.payload.peek(), matrix.signed ? TWO_SIDED : store.palette.peek());
    return pixels(colours, store.scale.peek(), matrix.signed, factor(matrix));
  }

  private onto(pen: CanvasRenderingContext2D, matrix: Grid, width: number, height: number, ink: Colours): Plan {
    const attention = store.current.peek()!;
    const beside = swiped.peek();
    if (hides(attention, matrix) || (beside && hides(attention, beside))) hatch(pen, width, height, ink);
    const target = { context: pen, width, height, transposed: store.transposed.peek(), shrink: store.shrink.peek() };
    const line = beside ? Math.round(store.swipe.peek() * width) : width;
    const done = paint(matrix, inSight.peek(), this.coloursFor(matrix), { ...target, to: line }, this.blocks(matrix));
    if (beside) {
      paint(beside, inSight.peek(), this.coloursFor(beside), { ...target, from: line }, this.blocks(beside));
      pen.fillStyle = ink.focus;
      pen.fillRect(line - 1, 0, 3, height);
    }
    return done.plan;
  }

  /** What shows of a grid; a grid belongs to one attention for good. */
  private blocks(of: Grid): Shown {
    let found = this.shown.get(of);
    if (!found) this.shown.set(of, (found = shownOf(store.current.peek()!, of)));
    return found;
  }

  private edges(plan: Layout, ink: Colours): void {
    const cross = crosshair.peek();
    const [rowPlace, columnPlace] = store.transposed.peek() ? [cross?.key, cross?.query] : [cross?.query, cross?.key];
    const faint = (axis: Layout["rows"]["axis"]) => (store.hideSpecial.peek() ? special(axis) : new Set<number>());
    const left = prepare(this.on.left, plan.left, plan.height);
    if (left) drawEdge(left, plan.rows, plan.left, ink, rowPlace ?? null, faint(plan.rows.axis));
    const top = prepare(this.on.top, plan.width + plan.margin, plan.top);
    if (top) drawEdge(top, plan.columns, plan.top, ink, columnPlace ?? null, faint(plan.columns.axis));
  }

  private curves(plan: Layout, ink: Colours): void {
    const [right, bottom] = [prepare(this.on.right, plan.margin, plan.height), prepare(this.on.bottom, plan.width, plan.margin)];
    const found = margins.peek();
    curves.value = found !== null;
    if (!found || !right || !bottom) return;
    const transposed = store.transposed.peek();
    const most = found.received.reduce((high, value) => Math.min(MOST_RECEIVED, Math.max(high, value)), 2);
    const [sharp, received] = transposed ? [bottom, right] : [right, bottom];
    const [queries, keys] = transposed ? [plan.columns, plan.rows] : [plan.rows, plan.columns];
    const room = plan.margin;
    drawBars(sharp, { edge: queries, values: found.largest, most: 1, room, colour: ink.runs[0], mark: null });
    drawBars(received, { edge: keys, values: found.received, most, room, colour: ink.runs[1], mark: { at: 1, colour: ink.quiet } });
  }

  /** Where in all of the matrix the window is, while it is not all. */
  private small(matrix: Grid, plan: Layout, ink: Colours): void {
    this.on.minimap.hidden = !zoomed.peek() || Math.min(plan.width, plan.height) < 160;
    if (!this.on.minimap.hidden) this.minimap.draw(this.on.minimap, matrix, this.colours, this.blocks(matrix), store.transposed.peek(), ink);
  }

  private crosshair(): void {
    const plan = laid.peek();
    if (!plan) return;
    const ink = coloursOf(this.on.root);
    const pen = prepare(this.on.cross, plan.width, plan.height);
    if (pen) {
      this.lines(pen, plan, ink);
      numbers(pen, plan);
    }
    this.edges(plan, ink);
  }

  private lines(pen: CanvasRenderingContext2D, plan: Layout, ink: Colours): void {
    const cross = crosshair.peek();
    const transposed = store.transposed.peek();
    const [row, column] = transposed ? [cross?.key, cross?.query] : [cross?.query, cross?.key];
    const [high, wide] = [plan.height / (plan.rows.end - plan.rows.first), plan.width / (plan.columns.end - plan.columns.first)];
    const y = row === undefined || row === null ? null : (row - plan.rows.first) * high;
    const x = column === undefined || column === null ? null : (column - plan.columns.first) * wide;
    if (y !== null) outline(pen, 0, y, plan.width, Math.max(2, high), ink);
    if (x !== null) outline(pen, x, 0, Math.max(2, wide), plan.height, ink);
  }
}

/** Two strokes, one in each of paper and ink: visible on every colour. */
function outline(pen: CanvasRenderingContext2D, x: number, y: number, width: number, height: number, ink: Colours): void {
  for (const [colour, thick] of [[ink.paper, 3], [ink.ink, 1]] as const) {
    pen.strokeStyle = colour;
    pen.lineWidth = thick;
    pen.strokeRect(Math.round(x) + 0.5, Math.round(y) + 0.5, Math.round(width) - 1, Math.round(height) - 1);
  }
}
