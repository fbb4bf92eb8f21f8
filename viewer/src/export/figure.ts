// A picture of the view in sight that stands by itself: title, axes, the matrix or whatever is shown, and the legend. As SVG, and
// from that as PNG at twice the size.

import { lettered, sides } from "../compare/names";
import { coloursOf } from "../curves/colours";
import { grid } from "../cells";
import { inputOf, outputOf } from "../headline";
import { drawEdge } from "../heatmap/axis";
import { drawBars } from "../heatmap/margins";
import { numbered, placed } from "../heatmap/numbers";
import { curves, laid, margins, painting } from "../heatmap/painter";
import { differs } from "../link/reading";
import { written } from "../link/number";
import { several } from "../link/several";
import { css, table, TWO_SIDED } from "../palette";
import { range, upper } from "../range";
import * as store from "../store";
import { say } from "../strings";
import { contents } from "./contents";
import { escape, round, SvgPen } from "./pen";

export interface Figure {
  svg: string;
  width: number;
  height: number;
}

const MARGIN = 16;
const TITLE = 52;
const LEGEND = 46;
const DENSITY = 2;

/** The view in sight; null where there is nothing to draw. */
export function figure(): Figure | null {
  const body = store.view.value === "heatmap" ? heatmap() : contents();
  if (!body) return null;
  const ink = coloursOf(document.body);
  const legend = legendOf();
  const title = [store.run.value.name, store.current.value?.id ?? "", headTold()].filter(Boolean).join(" · ");
  const example = store.currentExample.value;
  const [from, to] = [inputOf(example)?.text ?? "", outputOf(example)?.text ?? ""];
  const subtitle = sides() || [from, to].filter(Boolean).join(" → ");
  const width = Math.max(body.width, 420) + 2 * MARGIN;
  const height = TITLE + body.height + (legend ? LEGEND : 0) + 2 * MARGIN;
  const family = escape(getComputedStyle(document.body).fontFamily);
  const line = (text: string, y: number, size: number, extra = "") =>
    `<text x="${MARGIN}" y="${y}" font-size="${size}" font-family="${family}" fill="${ink.ink}" ${extra}>${escape(cutTo(text, width - 2 * MARGIN, size))}</text>`;
  const svg = [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${round(width)}" height="${round(height)}" viewBox="0 0 ${round(width)} ${round(height)}">`,
    `<title>${escape(title)}</title>`,
    `<rect width="100%" height="100%" fill="${ink.paper}"/>`,
    line(title, MARGIN + 15, 15, 'font-weight="600"'),
    line(subtitle, MARGIN + 36, 12),
    `<g transform="translate(${MARGIN} ${MARGIN + TITLE})">${body.svg}</g>`,
    legend && `<g transform="translate(${MARGIN} ${MARGIN + TITLE + body.height + 18})">${legend}</g>`,
    "</svg>",
  ].join("");
  return { svg, width, height };
}

/** The same as pixels, two for each of the page's. */
export async function rasterised({ svg, width, height }: Figure): Promise<Blob | null> {
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svg)}`;
  await image.decode();
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [Math.round(DENSITY * width), Math.round(DENSITY * height)];
  const pen = canvas.getContext("2d");
  pen?.drawImage(image, 0, 0, canvas.width, canvas.height);
  return new Promise((done) => canvas.toBlob(done, "image/png"));
}

function headTold(): string {
  const count = store.current.value?.heads ?? 0;
  if (store.view.value === "lines" && several.value) return several.value.map((each) => say("headNumber", { head: each.head })).join(", ");
  const head = store.head.value;
  return head === "mean" || head >= count ? say("headMean", { count }) : say("headNumber", { head });
}

/** A text of at most so many pixels. */
function cutTo(text: string, width: number, size: number): string {
  const pen = document.createElement("canvas").getContext("2d");
  if (!pen) return text;
  pen.font = `${size}px ${getComputedStyle(document.body).fontFamily}`;
  let shown = text.slice(0, 400);
  while (shown.length > 8 && pen.measureText(shown).width > width) shown = `${shown.slice(0, -6)}…`;
  return shown;
}

/** The heat map with its names and curves as text and shapes; the cells are one picture. */
function heatmap(): Figure | null {
  const [plan, painter, matrix, shown] = [laid.value, painting.value, grid.value, store.current.value];
  if (!plan || !painter || !matrix || !shown) return null;
  const ink = coloursOf(document.body);
  const pen = new SvgPen();
  const on = pen as unknown as CanvasRenderingContext2D;
  const nobody: ReadonlySet<number> = new Set();
  const names = 20;
  const [queries, keys] = [say("heatmapQueries", { name: shown.query }), say("heatmapKeys", { name: shown.key })];
  const [down, across] = store.transposed.value ? [keys, queries] : [queries, keys];
  [pen.font, pen.fillStyle, pen.textBaseline] = [ink.font, ink.quiet, "middle"];
  pen.fillText(`↓ ${down}    → ${across}`, 0, 8);
  at(pen, 0, names + plan.top, () => drawEdge(on, plan.rows, plan.left, ink, null, nobody));
  at(pen, plan.left, names, () => drawEdge(on, plan.columns, plan.top, ink, null, nobody));
  const cells = painter.picture(DENSITY)?.toDataURL("image/png") ?? "";
  const parts = [`<image x="${plan.left}" y="${names + plan.top}" width="${plan.width}" height="${plan.height}" preserveAspectRatio="none" style="image-rendering:pixelated" href="${cells}"/>`];
  at(pen, plan.left, names + plan.top, () => {
    [pen.strokeStyle, pen.lineWidth] = [ink.quiet, 1];
    pen.strokeRect(0, 0, plan.width, plan.height);
    if (!numbered(plan) || store.compare.value === "swipe") return;
    [pen.font, pen.textAlign, pen.textBaseline] = [ink.font, "center", "middle"];
    for (const { text, x, y, tint } of placed(plan)) {
      pen.fillStyle = tint;
      pen.fillText(text, x, y);
    }
  });
  if (curves.value && margins.value) {
    const [sharp, received] = store.transposed.value ? [plan.columns, plan.rows] : [plan.rows, plan.columns];
    const put = (edge: typeof sharp, values: Float32Array, most: number, colour: string, mark: { at: number; colour: string } | null) => {
      const [x, y] = edge.side === "left" ? [plan.left + plan.width, names + plan.top] : [plan.left, names + plan.top + plan.height];
      at(pen, x, y, () => drawBars(on, { edge, values, most, room: plan.margin, colour, mark }));
    };
    put(sharp, margins.value.largest, 1, ink.runs[0], null);
    put(received, margins.value.received, Math.min(4, Math.max(2, ...margins.value.received)), ink.runs[1], { at: 1, colour: ink.quiet });
    [pen.font, pen.fillStyle, pen.textAlign, pen.textBaseline] = [ink.font, ink.quiet, "right", "top"];
    pen.fillText(say(store.transposed.value ? "heatmapLargest" : "heatmapReceived"), plan.left - 4, names + plan.top + plan.height + 6);
    pen.textAlign = "left";
    pen.fillText(say(store.transposed.value ? "heatmapReceived" : "heatmapLargest"), plan.left + plan.width + 4, names + plan.top + plan.height + 6);
  }
  return { svg: parts.join("") + pen.toString(), width: plan.left + plan.width + plan.margin, height: names + plan.top + plan.height + plan.margin };
}

function at(pen: SvgPen, x: number, y: number, draw: () => void): void {
  pen.save();
  pen.translate(x, y);
  draw();
  pen.restore();
}

/** The colours with the weights at their ends; views without colours have none. */
function legendOf(): string {
  const matrix = grid.value;
  if (!matrix || (store.view.value !== "heatmap" && store.view.value !== "tokens")) return "";
  const ink = coloursOf(document.body);
  const pen = new SvgPen();
  const colours = table(store.payload.value, matrix.signed ? TWO_SIDED : store.palette.value);
  const exact = range.value !== "largest";
  const { a, b } = lettered();
  const side = (run: string) => (differs() ? `${say("compareReadsMore", { run }).replace(/[\u2068\u2069]/g, "")} ` : "");
  const [first, last] = [`${side(b)}${matrix.signed ? written(-upper.value, exact) : "0"}`, `${written(upper.value, exact, matrix.signed)} ${side(a)}`];
  [pen.font, pen.fillStyle, pen.textBaseline] = [ink.font, ink.ink, "middle"];
  pen.fillText(first, 0, 8);
  const left = pen.measureText(first).width + 8;
  for (let step = 0; step < 64; step += 1) {
    pen.fillStyle = css(colours, Math.min(255, step * 4 + 2));
    pen.fillRect(left + 3 * step, 2, 3.2, 12);
  }
  pen.fillStyle = ink.ink;
  pen.fillText(`${last}   ${say("linkScale")}: ${say(({ linear: "scaleLinear", sqrt: "scaleSqrt", log: "scaleLog" } as const)[store.scale.value])}`, left + 200, 8);
  return pen.toString();
}
