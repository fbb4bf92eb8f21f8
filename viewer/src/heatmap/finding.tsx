// One sentence under the heat map: what stands at the crosshair, or, before anybody moved it, what the sharpest query reads.

import { grid } from "../cells";
import { readBy, reads } from "../link/finding";
import { columnLine, rowLine, useGrid } from "../link/reading";
import { cellTold } from "../live";
import * as store from "../store";
import { say } from "../strings";
import { margins } from "./painter";
import { crosshair } from "./pointed";

export function Finding() {
  useGrid();
  return <p class="heat-finding">{found()}</p>;
}

/** The sentence. */
export function found(): string {
  const [matrix, queries, keys] = [grid.value, store.queryAxis.value, store.keyAxis.value];
  if (!matrix || !queries || !keys || matrix.rows !== queries.length) return "";
  const at = crosshair.value;
  const query = at && at.query !== null && at.query < matrix.rows ? at.query : null;
  const key = at && at.key !== null && at.key < matrix.columns ? at.key : null;
  if (query === null && key !== null) return readBy(keys, key, queries, columnLine(matrix, key));
  if (query === null) return sharpest();
  const row = reads(queries, query, keys, rowLine(matrix, query));
  return key === null ? row : say("livePlace", { cell: cellTold(query, key), finding: row });
}

function sharpest(): string {
  const [matrix, queries, keys] = [grid.value!, store.queryAxis.value!, store.keyAxis.value!];
  const largest = margins.value?.largest;
  let best = store.current.value?.rows?.[0] ?? 0;
  if (largest?.length === matrix.rows) largest.forEach((value, place) => (best = value > (largest[best] ?? -1) ? place : best));
  if (best >= matrix.rows) return "";
  return say(largest ? "heatmapSharpest" : "heatmapFirst", { finding: reads(queries, best, keys, rowLine(matrix, best)) });
}
