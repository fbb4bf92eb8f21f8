// Where the parts of the heat map stand: names left and above, the matrix, curves right of it and below.

import { type Edge, roomFor } from "./axis";
import type { Axis } from "../payload";
import type { Window } from "../store";

export interface Layout {
  /** Pixels of CSS. */
  left: number;
  top: number;
  width: number;
  height: number;
  margin: number;
  /** The axis that goes down and the one that goes across. */
  rows: Edge;
  columns: Edge;
}

/** Room for the curves along the right and lower edge. */
export const MARGIN = 48;
/** A cell of a small matrix is no larger than this. */
const WIDEST = 84;
const TALLEST = 52;
const SMALLEST = 60;
/** Left of the matrix there is room for the name of the curve below it, however short the names of the rows are. */
const CAPTION = 48;

interface Wanted {
  queries: Axis;
  keys: Axis;
  window: Window;
  transposed: boolean;
  /** All the room that there is. */
  width: number;
  height: number;
  measure(text: string): number;
}

/** Fit everything into the room that there is: the names take what they need, the matrix what is left. */
export function layout(wanted: Wanted): Layout {
  const { window, transposed, measure } = wanted;
  const [down, across] = transposed ? [wanted.keys, wanted.queries] : [wanted.queries, wanted.keys];
  const [row, column] = transposed ? [1, 0] : [0, 1];
  const edge = (axis: Axis, at: number, pixels: number, side: Edge["side"]): Edge => ({
    axis,
    first: window[at]!,
    end: window[at + 2]!,
    pixels,
    side,
  });
  // The map keeps its size while one zooms: room for names and cells is that of the whole matrix, whatever is in sight of it.
  const whole = (axis: Axis, pixels: number, side: Edge["side"]): Edge => ({ axis, first: 0, end: axis.length, pixels, side });
  const left = Math.max(CAPTION, roomFor(whole(down, Math.max(SMALLEST, wanted.height - MARGIN - 30), "left"), measure));
  const width = Math.floor(Math.max(SMALLEST, Math.min(wanted.width - left - MARGIN, across.length * WIDEST)));
  const top = roomFor(whole(across, width, "top"), measure);
  const height = Math.floor(Math.max(SMALLEST, Math.min(wanted.height - top - MARGIN, down.length * TALLEST)));
  const [rows, columns] = [edge(down, row, height, "left"), edge(across, column, width, "top")];
  return { left, top, width, height, margin: MARGIN, rows, columns };
}
