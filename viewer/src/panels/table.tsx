// The matrix as a table: the strongest keys of every query in words and numbers. For those who do not see the pictures it
// is the whole answer, so it leaves nothing out: every query is on some page, and "strongest" goes up to all keys.

import { useMemo } from "preact/hooks";
import { action } from "../actions";
import type { Grid } from "../grid";
import { languageTag, numberOf } from "../labels";
import { called, pair, quoted } from "../link/finding";
import { written } from "../link/number";
import { differs, type Peak, useArrivals, useReading } from "../link/reading";
import { toggle } from "../link/roving";
import { ordered, type Page, page, pageSize, pageStart, type Row, shownSum } from "../link/rows";
import { Waiting } from "../link/waiting";
import type { Axis } from "../payload";
import { hideSpecial, key, quantity, query, type TableOrder, tableOrder, top, view } from "../store";
import { type Sentence, say } from "../strings";
import "../styles/table.css";

/** What the table is sorted by, in the order of its columns. */
const COLUMNS: readonly TableOrder["column"][] = ["place", "label", "largest", "shown"];

action({ id: "table.sort", keys: ["q"], label: "tableNextSort", run: () => sort(COLUMNS[(COLUMNS.indexOf(tableOrder.value.column) + 1) % COLUMNS.length]!) });
action({ id: "table.turn", keys: ["Q"], label: "tableTurnSort", run: () => sort(tableOrder.value.column) });

/** Sort the table in sight by a column, or the other way round by the same. */
function sort(column: TableOrder["column"]): void {
  if (view.value !== "table") return;
  const { column: by, falling } = tableOrder.value;
  // Weights are first asked for from the largest down, words and places from the beginning on.
  tableOrder.value = { column, falling: by === column ? !falling : column === "largest" || column === "shown" };
}

export function TableView() {
  const found = useReading();
  return found ? <Sheet grid={found.grid} queries={found.queries} keys={found.keys} /> : <Waiting />;
}

interface SheetProps {
  grid: Grid;
  queries: Axis;
  keys: Axis;
}

function Sheet({ grid, queries, keys }: SheetProps) {
  const count = Math.min(top.value, grid.columns);
  const order = tableOrder.value;
  const come = useArrivals(grid);
  const asked = [grid, come, queries, count, order, hideSpecial.value, quantity.value];
  const places = useMemo(() => ordered(grid, queries, count, order), asked);
  const first = pageStart(places, query.value, count);
  const shown = useMemo(() => page(grid, queries, places, first, count, order), [...asked, first]);
  const ranks = Array.from({ length: count }, (_, at) => at + 1);
  return (
    <div class="table">
      <Turning page={shown} places={places} size={pageSize(count)} />
      <div class="table-box" role="region" aria-label={say("linkTable")} tabIndex={0}>
        <table>
          <caption>
            <span>{caption(shown, queries, keys, count)}</span>
          </caption>
          <thead>
            <tr>
              <Heading column="place" words="tablePlace" />
              <Heading column="label" words="tableQuery" />
              {ranks.map((rank) =>
                rank === 1 ? (
                  <Heading key={rank} column="largest" words="tableRank" blanks={{ rank }} />
                ) : (
                  <th key={rank} scope="col">
                    {say("tableRank", { rank })}
                  </th>
                ),
              )}
              <Heading column="shown" words="tableShown" />
            </tr>
          </thead>
          <tbody>
            {shown.rows.map((row) => (
              <Line key={row.query} row={row} queries={queries} keys={keys} count={count} />
            ))}
          </tbody>
        </table>
      </div>
    </div>
  );
}

function caption(shown: Page, queries: Axis, keys: Axis, count: number): string {
  const size = (row: Row) => Math.abs(row.peaks[0]?.value ?? -Infinity);
  const sharpest = shown.rows.reduce<Row | null>((most, row) => (row.peaks[0] && (!most || size(row) > size(most)) ? row : most), null);
  const told = sharpest ? say("tableSharpest", { query: quoted(queries, sharpest.query), first: pair(keys, sharpest.peaks[0]!) }) : "";
  const pages = { count, first: shown.first + 1, last: shown.end, queries: shown.count, finding: told };
  return say("tableCaption", pages) + (shown.within ? ` ${say("tableWithin")}` : "");
}

function Heading({ column, words, blanks }: { column: TableOrder["column"]; words: Sentence; blanks?: Record<string, number> }) {
  const { column: by, falling } = tableOrder.value;
  const sorted = by === column ? (falling ? "descending" : "ascending") : "none";
  const told = say(words, blanks);
  return (
    <th scope="col" aria-sort={sorted}>
      <button type="button" title={say("withKey", { label: say("tableSort", { column: told }), key: "q Q" })} onClick={() => sort(column)}>
        {told}
        <span aria-hidden="true">{sorted === "none" ? " ↕" : falling ? " ↓" : " ↑"}</span>
      </button>
    </th>
  );
}

function Line({ row, queries, keys, count }: { row: Row; queries: Axis; keys: Axis; count: number }) {
  const marked = query.value === row.query;
  const sum = shownSum(row.peaks);
  return (
    <tr aria-current={marked ? "true" : undefined}>
      <td>{numberOf(queries, row.query)}</td>
      <th scope="row" lang={languageTag(queries)}>
        <button type="button" aria-pressed={marked} onClick={() => toggle(query, row.query)}>
          <bdi dir="auto">{called(queries, row.query)}</bdi>
        </button>
      </th>
      {Array.from({ length: count }, (_, at) => (
        <Value key={at} axis={keys} peak={row.peaks[at]} missing={row.missing && at === 0} />
      ))}
      <td>
        <data value={String(sum)}>{row.missing ? "" : written(sum, row.peaks.every((peak) => peak.exact), differs())}</data>
      </td>
    </tr>
  );
}

function Value({ axis, peak, missing }: { axis: Axis; peak: Peak | undefined; missing: boolean }) {
  if (!peak) return <td class="empty">{missing ? say("tableUnrecorded") : "–"}</td>;
  return (
    <td class={peak.place === key.value ? "at-key" : undefined} data-key={peak.place}>
      <bdi dir="auto" lang={languageTag(axis)}>
        {called(axis, peak.place)}
      </bdi>{" "}
      <data value={String(peak.value)}>{written(peak.value, peak.exact, differs())}</data>
    </td>
  );
}

function Turning({ page: shown, places, size }: { page: Page; places: number[]; size: number }) {
  if (shown.first === 0 && shown.end === shown.count) return null;
  return (
    <p class="table-pages">
      <button type="button" disabled={shown.first === 0} onClick={() => (query.value = places[shown.first - size]!)}>
        {say("tablePrevious")}
      </button>
      <span>{say("tokensPage", { first: shown.first + 1, last: shown.end, count: shown.count })}</span>
      <button type="button" disabled={shown.end === shown.count} onClick={() => (query.value = places[shown.end]!)}>
        {say("tableNext")}
      </button>
    </p>
  );
}
