// Weights written into their cells, where there are few and they are large: they can be read without pointing at anything.

import { allowed, grid } from "../cells";
import { colour, ink } from "../link/colour";
import * as store from "../store";
import type { Layout } from "./layout";
import { inSight } from "./window";

/** More numbers than this are not read. */
const MOST = 144;
/** Pixels that a number needs. */
const WIDE = 34;
const HIGH = 18;

/** Whether numbers stand in the cells of this layout. */
export function numbered(plan: Layout): boolean {
  const [rows, columns] = [plan.rows.end - plan.rows.first, plan.columns.end - plan.columns.first];
  return rows * columns <= MOST && plan.width / columns >= WIDE && plan.height / rows >= HIGH;
}

export function numbers(pen: CanvasRenderingContext2D, plan: Layout): void {
  const [matrix, shown] = [grid.peek(), store.current.peek()];
  if (!matrix || !shown || store.compare.peek() === "swipe" || !numbered(plan)) return;
  pen.font = `11px ${getComputedStyle(document.body).fontFamily}`;
  [pen.textAlign, pen.textBaseline] = ["center", "middle"];
  for (const { text, x, y, tint } of placed(plan)) {
    pen.fillStyle = tint;
    pen.fillText(text, x, y);
  }
}

interface Placed {
  text: string;
  x: number;
  y: number;
  tint: string;
}

/** Every number of the cells in sight, and where it stands. */
export function placed(plan: Layout): Placed[] {
  const [matrix, shown, transposed] = [grid.peek(), store.current.peek(), store.transposed.peek()];
  if (!matrix || !shown) return [];
  const [first, left, end, right] = inSight.peek();
  const found: Placed[] = [];
  for (let query = Math.floor(first); query < Math.min(matrix.rows, end); query += 1) {
    for (let key = Math.floor(left); key < Math.min(matrix.columns, right); key += 1) {
      const cell = allowed(shown, query, key) ? matrix.value(query, key) : null;
      const [row, column] = transposed ? [key, query] : [query, key];
      const y = ((row + 0.5 - plan.rows.first) / (plan.rows.end - plan.rows.first)) * plan.height;
      const x = ((column + 0.5 - plan.columns.first) / (plan.columns.end - plan.columns.first)) * plan.width;
      const within = y > 7 && y < plan.height - 7 && x > 14 && x < plan.width - 14;
      if (cell && within) found.push({ text: short(cell.value), x, y, tint: ink(colour(matrix, cell.value)) });
    }
  }
  return found;
}

/** Two digits: .79, 1.00, 0 where that is all that there is. */
export function short(value: number): string {
  const size = Math.abs(value);
  if (!Number.isFinite(value)) return "–";
  const digits = size >= 100 ? String(Math.round(size)) : size >= 10 ? size.toFixed(1) : size.toFixed(2).replace(/^0\./, ".");
  const told = digits === ".00" ? "0" : digits;
  return value < 0 && told !== "0" ? `−${told}` : told;
}
