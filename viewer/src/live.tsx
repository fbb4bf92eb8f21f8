// What the crosshair is at, spoken: a live region for readers who do not see it move.

import { allowed, grid } from "./cells";
import { quoted, reads } from "./link/finding";
import { written } from "./link/number";
import { rowLine, useArrivals } from "./link/reading";
import { current, key, keyAxis, query, queryAxis } from "./store";
import { say } from "./strings";

export function Live() {
  useArrivals(grid.value);
  return (
    <div class="visually-hidden" role="status" aria-live="polite">
      {spoken()}
    </div>
  );
}

/** The cell under the crosshair and what its query reads most. */
export function spoken(): string {
  const [shown, matrix, queries, keys] = [current.value, grid.value, queryAxis.value, keyAxis.value];
  const [row, column] = [query.value, key.value];
  if (!shown || !matrix || !queries || !keys || row === null || row >= matrix.rows) return "";
  const finding = reads(queries, row, keys, rowLine(matrix, row));
  if (column === null || column >= matrix.columns) return finding;
  return say("livePlace", { cell: cellTold(row, column), finding });
}

/** One cell in words: who reads what and how much. */
export function cellTold(row: number, column: number): string {
  const [shown, matrix, queries, keys] = [current.value, grid.value, queryAxis.value, keyAxis.value];
  if (!shown || !matrix || !queries || !keys) return "";
  const names = { query: quoted(queries, row), key: quoted(keys, column) };
  if (!allowed(shown, row, column)) return say("heatmapNothing", names);
  const cell = matrix.value(row, column);
  return cell ? say("heatmapCell", { ...names, value: written(cell.value, cell.exact, matrix.signed) }) : say("heatmapNotKnown", names);
}
