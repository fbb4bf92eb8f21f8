// The heat map: one matrix with its names, its curves at the edges, and a small map of where one is.

import { useSignalEffect } from "@preact/signals";
import { useLayoutEffect, useRef } from "preact/hooks";
import { action } from "../actions";
import { Button } from "../button";
import { allowed, grid, trouble } from "../cells";
import { lettered, sides } from "../compare/names";
import { css, LOWEST, middle, table, TWO_SIDED } from "../palette";
import { here, range, upper } from "../range";
import { hides } from "../heatmap/hidden";
import { curves, laid, painted, Painter } from "../heatmap/painter";
import { crosshair } from "../heatmap/pointed";
import { Pointer } from "../heatmap/pointer";
import { probing } from "../heatmap/probe";
import { inSight, zoomed } from "../heatmap/window";
import { Finding } from "../heatmap/finding";
import { detail, label, languageTag } from "../labels";
import { reads } from "../link/finding";
import { written } from "../link/number";
import { differs, readingQuery, rowLine, useGrid } from "../link/reading";
import { Waiting } from "../link/waiting";
import type { Shrink } from "../grid";
import type { Axis } from "../payload";
import * as store from "../store";
import { say } from "../strings";
import "../styles/heatmap.css";

action({ id: "shrink", keys: ["M"], label: "heatmapShrink", run: () => (store.shrink.value = store.shrink.value === "mean" ? "maximum" : "mean") });

export function Heatmap() {
  const matrix = useGrid();
  // Until another matrix is unpacked the one before it stays, so that going through layers does not flicker.
  if (!store.current.value?.recorded || trouble.value || matrix?.extent === "nothing") return <Waiting />;
  return (
    <div class="heatmap">
      <AxisNames />
      <Plot />
      <Finding />
      <Foot />
    </div>
  );
}

/** The canvases; from here on the painter follows the state by itself. */
function Plot() {
  const root = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    const find = (name: string) => root.current!.querySelector<HTMLCanvasElement>(`canvas.${name}`)!;
    const [matrix, cross, left, top] = [find("heat-matrix"), find("heat-cross"), find("heat-left"), find("heat-top")];
    const [right, bottom, minimap] = [find("heat-right"), find("heat-bottom"), find("heat-minimap")];
    const painter = new Painter({ root: root.current!, matrix, cross, left, top, right, bottom, minimap });
    new Pointer(root.current!.querySelector<HTMLElement>(".heat-stage")!);
    window.probe = probing(painter, matrix);
    return () => {
      painter.stop();
      delete window.probe;
    };
  }, []);
  const [down, across] = store.transposed.value ? [store.keyAxis.value, store.queryAxis.value] : [store.queryAxis.value, store.keyAxis.value];
  return (
    <div class="heat-plot" ref={root}>
      <canvas class="heat-top" aria-hidden="true" lang={languageTag(across)} />
      <canvas class="heat-left" aria-hidden="true" lang={languageTag(down)} />
      <div class="heat-stage" style={{ touchAction: zoomed.value ? "none" : "pan-y" }}>
        <Picture />
        <canvas class="heat-cross" aria-hidden="true" />
        <canvas class="heat-minimap" aria-hidden="true" />
        <Tooltip />
      </div>
      <canvas class="heat-right" aria-hidden="true" />
      <canvas class="heat-bottom" aria-hidden="true" />
      <CurveNames />
    </div>
  );
}

/** The matrix, with a text that states what its chosen row says. */
function Picture() {
  const ref = useRef<HTMLCanvasElement>(null);
  useSignalEffect(() => {
    ref.current?.setAttribute("aria-label", told());
  });
  return <canvas ref={ref} class="heat-matrix" role="img" tabIndex={0} aria-label={told()} />;
}

function told(): string {
  const [shown, matrix, queries, keys, row] = [store.current.value, grid.value, store.queryAxis.value, store.keyAxis.value, readingQuery()];
  if (!shown || !matrix || !queries || !keys) return say("linkWaiting");
  const finding = row === null || row >= matrix.rows ? "" : reads(queries, row, keys, rowLine(matrix, row));
  const words = { queries: matrix.rows, keys: matrix.columns, finding };
  return `${say(store.transposed.value ? "heatmapTurned" : "heatmapMatrix", words)} ${say("heatmapHint")}`;
}

function AxisNames() {
  const shown = store.current.value;
  if (!shown) return null;
  const [queries, keys] = [say("heatmapQueries", { name: shown.query }), say("heatmapKeys", { name: shown.key })];
  const [down, across] = store.transposed.value ? [keys, queries] : [queries, keys];
  return (
    <p class="heat-names quiet">
      <span>↓ {down}</span> <span>→ {across}</span>
    </p>
  );
}

/** What the bars at the two edges are. */
function CurveNames() {
  if (!curves.value) return null;
  const names = ["heatmapReceived", "heatmapLargest"] as const;
  const [below, beside] = store.transposed.value ? [names[1], names[0]] : names;
  return (
    <>
      <span class="heat-below quiet" title={say(`${below}Long`)}>
        {say(below)} →
      </span>
      <span class="heat-beside quiet" title={say(`${beside}Long`)}>
        ↑ {say(beside)}
      </span>
    </>
  );
}

/** The cell of the crosshair: its two places and its value. */
function Tooltip() {
  const at = crosshair.value;
  const cell = at && at.query !== null && at.key !== null ? { query: at.query, key: at.key } : null;
  const [shown, matrix, queries, keys, plan] = [store.current.value, useGrid(), store.queryAxis.value, store.keyAxis.value, laid.value];
  const ref = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    if (!ref.current || !cell || !plan) return;
    const [row, column] = store.transposed.value ? [cell.key, cell.query] : [cell.query, cell.key];
    const x = ((column + 0.5 - plan.columns.first) / (plan.columns.end - plan.columns.first)) * plan.width;
    const y = ((row + 0.5 - plan.rows.first) / (plan.rows.end - plan.rows.first)) * plan.height;
    const side = x > plan.width / 2 ? `calc(${x - 14}px - 100%)` : `${x + 14}px`;
    ref.current.style.transform = `translate(${side}, ${y > plan.height / 2 ? `calc(${y - 14}px - 100%)` : `${y + 14}px`})`;
  });
  if (!cell || !shown || !matrix || !queries || !keys || cell.query >= matrix.rows || cell.key >= matrix.columns) return null;
  return (
    <div class="heat-tooltip" ref={ref} aria-hidden="true">
      <strong>{valueTold(cell.query, cell.key)}</strong>
      <PlaceTold axis={queries} place={cell.query} />
      <PlaceTold axis={keys} place={cell.key} />
    </div>
  );
}

function valueTold(query: number, key: number): string {
  const [shown, matrix] = [store.current.value!, grid.value!];
  if (!allowed(shown, query, key)) return say("heatmapMasked");
  const cell = matrix.value(query, key);
  if (cell) return written(cell.value, cell.exact, matrix.signed);
  return matrix.extent === "top" ? say("heatmapLowest", { value: written(least(query), false) }) : say("heatmapUnknown");
}

/** Where only the strongest keys of a row are known, every other is at most as large as the smallest of them. */
function least(query: number): number {
  const matrix = grid.value!;
  let found = Infinity;
  for (let key = 0; key < matrix.columns; key += 1) found = Math.min(found, matrix.value(query, key)?.value ?? Infinity);
  return Number.isFinite(found) ? found : 0;
}

function PlaceTold({ axis, place: at }: { axis: Axis; place: number }) {
  return (
    <div>
      <bdi lang={languageTag(axis)}>{label(axis, at).slice(0, 80)}</bdi> <span class="quiet">{detail(axis, at)}</span>
    </div>
  );
}

function Foot() {
  const matrix = grid.value;
  const shown = store.current.value;
  if (!matrix || !shown) return <div class="heat-foot" />;
  return (
    <div class="heat-foot">
      <span class="heat-zoom" role="group" aria-label={say("heatmapZoom")}>
        <Button of="zoom.out" face="−" />
        <Button of="zoom.in" face="+" />
        <Button of="zoom.all" face="⤢" />
      </span>
      <Legend />
      {sides() && <bdi class="heat-sides">{sides()}</bdi>}
      {hides(shown, matrix) && (
        <span class="heat-hatched">
          <i aria-hidden="true" /> {say("heatmapHidden")}
        </span>
      )}
      <Reduced />
    </div>
  );
}

function Reduced() {
  const plan = painted.value;
  const [first, left, end, right] = inSight.value;
  const edges = { first: Math.floor(first) + 1, last: Math.ceil(end), left: Math.floor(left) + 1, right: Math.ceil(right) };
  return (
    <span class="quiet">
      {zoomed.value && say("heatmapWindow", edges)}{" "}
      {plan && plan.high + plan.wide > 0 && (
        <>
          <label title={say("withKey", { label: say("heatmapShrink"), key: "M" })}>
            {say("heatmapShrunkBy")}{" "}
            <select aria-keyshortcuts="M" value={store.shrink.value} onChange={(event) => (store.shrink.value = event.currentTarget.value as Shrink)}>
              <option value="maximum">{say("heatmapMaximum")}</option>
              <option value="mean">{say("heatmapMean")}</option>
            </select>
          </label>{" "}
          {say("heatmapShrunk", { high: 2 ** plan.high, wide: 2 ** plan.wide })}
        </>
      )}
    </span>
  );
}

/** The colours and what they stand for. */
function Legend() {
  const ref = useRef<HTMLCanvasElement>(null);
  const matrix = grid.value!;
  useSignalEffect(() => {
    const pen = ref.current?.getContext("2d");
    const shown = grid.value;
    if (!pen || !shown) return;
    const colours = table(store.payload.value, shown.signed ? TWO_SIDED : store.palette.value);
    for (let at = 0; at < 256; at += 1) {
      pen.fillStyle = css(colours, at);
      pen.fillRect(at, 0, 1, 1);
    }
  });
  const [first, last] = ends(matrix.signed);
  const mid = matrix.signed ? null : written(middle(store.scale.value, upper.value), false).replace("≈", "");
  const { a, b } = lettered();
  const [less, more] = matrix.signed && differs() ? [b, a].map((run) => say("compareReadsMore", { run })) : [];
  return (
    <span class="heat-legend">
      {less && <span class="heat-side">{less}</span>}
      <span>{first}</span>
      <span class="heat-ramp">
        <canvas ref={ref} width={256} height={1} role="img" aria-label={say("heatmapColours", { first, last })} />
        {mid !== null && <span class="heat-mark">{mid}</span>}
      </span>
      <span>{last}</span>
      {more && <span class="heat-side">{more}</span>}
    </span>
  );
}

/** What the two ends of the colours stand for; a weight beyond the range has the last colour as well. */
function ends(signed: boolean): [string, string] {
  const most = upper.value;
  const beyond = here.value !== null && here.value > most * 1.005;
  const exact = range.value !== "largest";
  const last = `${beyond ? "≥" : ""}${written(most, exact, signed)}`;
  if (signed) return [`${beyond ? "≤" : ""}${written(-most, exact)}`, last];
  return [store.scale.value === "log" ? `≤${written(LOWEST * most)}` : "0", last];
}
