// Alignment lines: the two sequences beside one another, and the strongest few keys of each query tied to it.
// Everything that is out of sight is left out, so ten thousand tokens cost no more than fifty.

import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useMemo, useReducer, useRef, useState } from "preact/hooks";
import type { Signal } from "@preact/signals";
import { lettered } from "../compare/names";
import type { Grid } from "../grid";
import { detail, languageTag } from "../labels";
import { brief, called, readBy, reads } from "../link/finding";
import { written } from "../link/number";
import { bothWays, differs, type Reading, readingKey, readingQuery, scores, useArrivals, useReading } from "../link/reading";
import { toggle, useRoving } from "../link/roving";
import { inSight, middle, type Strand, strands } from "../link/strands";
import type { Axis } from "../payload";
import { allHeads, between, colourOf, dashOf, letter, sentencePairs, several, single, toggleHead } from "../link/several";
import { hideSpecial, key, keyAxis, lineHeads, quantity, query, queryAxis, scale, sentencePair, top, transposed, view } from "../store";
import { action } from "../actions";
import { say } from "../strings";
import { Waiting } from "../link/waiting";
import "../styles/lines.css";

/** Pixels of a place: down the page a line of text, across it a short word. */
const ROW = 28;
const COLUMN = 76;
/** Characters of a name, of which a button shows far fewer. */
const LONGEST = 200;
/** What is in sight before the page has been measured. */
const UNMEASURED = 480;

action({ id: "lines.heads", keys: ["K"], label: "linesAllHeads", run: () => view.value === "lines" && allHeads() });

export function Lines() {
  const found = useReading();
  if (!found) return <Waiting />;
  const { grid, queries, keys, shown } = found;
  const finding = findingOf(found);
  return (
    <div class={transposed.value ? "lines across" : "lines"}>
      <Choices queries={queries} keys={keys} heads={shown.heads} />
      <p class="quiet">{legend()}</p>
      <Scroller axes={[queries, keys]} grid={grid} names={[shown.query, shown.key]} finding={finding} />
      <p class="lines-finding">{finding}</p>
    </div>
  );
}

/** What the chosen query reads, or who reads the chosen key. */
function findingOf({ queries, keys, query: read, row, key: place, column }: Reading): string {
  if (read !== null && row) return reads(queries, read, keys, row);
  return place === null || !column ? "" : readBy(keys, place, queries, column);
}

function legend(): string {
  const count = top.value;
  if (several.value) return say("linesSeveral", { count, heads: several.value.map((each) => each.head).join(", ") });
  return say(differs() ? "linesSigned" : scores() ? "linesScores" : "linesLegend", { count, ...lettered() });
}

interface Props {
  axes: [Axis, Axis];
  names: [string, string];
  grid: Grid;
  finding: string;
}

function Scroller({ axes: [queries, keys], names, grid, finding }: Props) {
  const across = transposed.value;
  const length = Math.max(queries.length, keys.length) * (across ? COLUMN : ROW);
  const { box, band, scrolled } = useBand(across, length);
  const [from, to] = band;
  const [first, end] = inSight(keys.length, length, from, to);
  const drawn = useStrands(grid, [queries, keys], inSight(queries.length, length, from, to)).filter(
    // A line that leaves the picture says little, but those of the chosen query are all shown.
    (each) => each.query === query.value || (each.key >= first && each.key < end),
  );
  const size = across ? { width: `${length}px` } : { height: `${length}px` };
  const side = { length, from, to, across };
  return (
    <div class="lines-box" ref={box} onScroll={scrolled}>
      <div class="lines-inner" style={size}>
        <Side {...side} axis={queries} chosen={query} title={say("linkQueries", { name: names[0] })} role="queries" />
        <Drawing {...side} queries={queries} keys={keys} drawn={drawn} finding={finding} />
        <Side {...side} axis={keys} chosen={key} title={say("linkKeys", { name: names[1] })} role="keys" />
      </div>
    </div>
  );
}

/** Which heads, each in its colour, and between which sentences. */
function Choices({ queries, keys, heads }: { queries: Axis; keys: Axis; heads: number }) {
  const pairs = sentencePairs(queries, keys);
  const chosenPair = sentencePair.value;
  const told = (pair: [number, number]) => say("linesSentence", { from: letter(pair[0]), to: letter(pair[1]) });
  if (heads < 2 && pairs.length === 0) return null;
  return (
    <div class="lines-choices">
      {heads > 1 && single() && (
        <div class="lines-heads" role="group" aria-label={say("linesHeads")}>
          <span class="quiet">{say("linesHeads")}</span>
          {places([0, heads]).map((head) => (
            <button
              key={head}
              type="button"
              class="lines-head"
              aria-pressed={lineHeads.value.includes(head)}
              aria-label={say("headNumber", { head })}
              style={{ "--head": colourOf(head) }}
              onClick={() => toggleHead(head)}
            >
              {head}
            </button>
          ))}
          <button type="button" aria-pressed={lineHeads.value.length >= heads} onClick={allHeads}>
            {say("linesAllHeads")} (K)
          </button>
        </div>
      )}
      {pairs.length > 0 && (
        <label>
          <span>{say("linesSentences")}</span>
          <select
            value={chosenPair ? chosenPair.join() : ""}
            onChange={(event) => (sentencePair.value = pairs.find((pair) => pair.join() === event.currentTarget.value) ?? null)}
          >
            <option value="">{say("linesAllSentences")}</option>
            {pairs.map((pair) => (
              <option key={pair.join()} value={pair.join()}>
                {told(pair)}
              </option>
            ))}
          </select>
        </label>
      )}
    </div>
  );
}

/** Read anew only when something other than the choice has changed: it takes a thousand cells for every query in sight. */
function useStrands(grid: Grid, [queries, keys]: [Axis, Axis], [first, end]: [number, number]): Strand[] {
  const come = useArrivals(grid);
  const heads = several.value;
  const [more, arrived] = useReducer<number, void>((count) => count + 1, 0);
  useEffect(() => {
    const stops = (heads ?? []).map((each) => each.grid.changed(() => arrived()));
    return () => stops.forEach((stop) => stop());
  }, [heads]);
  const asked = [grid, heads, come, more, first, end, top.value, scale.value, hideSpecial.value, quantity.value, sentencePair.value];
  return useMemo(() => {
    const wanted = { heads: heads?.length ?? 1, between: between(queries, keys) };
    if (!heads) return strands(grid, places([first, end]), top.value, wanted);
    return heads.flatMap((each) => strands(each.grid, places([first, end]), top.value, wanted).map((strand) => ({ ...strand, head: each.head })));
  }, asked);
}

/** What of the length is in sight and half as much to both sides; it moves by half a sight, so scrolling redraws seldom. */
function useBand(across: boolean, length: number) {
  const box = useRef<HTMLDivElement>(null);
  const [band, set] = useState<[number, number]>([0, 2 * UNMEASURED]);
  function scrolled(): void {
    const element = box.current!;
    const sight = (across ? element.clientWidth : element.clientHeight) || UNMEASURED;
    const start = (Math.floor((across ? element.scrollLeft : element.scrollTop) / (sight / 2)) - 1) * (sight / 2);
    const next: [number, number] = [Math.max(0, start), Math.min(length, start + sight * 2.5)];
    set((now) => (now[0] === next[0] && now[1] === next[1] ? now : next));
  }
  useLayoutEffect(scrolled, [across, length]);
  useFollow(box, across, length);
  return { box, band, scrolled };
}

/** Bring the chosen query, or else the chosen key, into sight when it changes elsewhere. */
function useFollow(box: { current: HTMLDivElement | null }, across: boolean, length: number): void {
  const [place, count] = query.value !== null ? [query.value, queryAxis.value?.length] : [key.value, keyAxis.value?.length];
  useLayoutEffect(() => {
    const element = box.current;
    if (place === null || !count || place >= count || !element) return;
    const at = middle(place, count, length);
    const [start, sight] = across ? [element.scrollLeft, element.clientWidth] : [element.scrollTop, element.clientHeight];
    if (at > start + ROW && at < start + sight - ROW) return;
    if (across) element.scrollLeft = at - sight / 2;
    else element.scrollTop = at - sight / 2;
  }, [place, count, across, length]);
}

function places([first, end]: [number, number]): number[] {
  return Array.from({ length: end - first }, (_, at) => first + at);
}

interface SideProps {
  axis: Axis;
  chosen: Signal<number | null>;
  title: string;
  role: string;
  length: number;
  from: number;
  to: number;
  across: boolean;
}

function Side({ axis, chosen, title, role, length, from, to, across }: SideProps) {
  const [first, end] = inSight(axis.length, length, from, to);
  const { group, keyed } = useRoving(chosen, axis.length, first);
  const reached = chosen.value !== null && chosen.value >= first && chosen.value < end ? chosen.value : first;
  return (
    <div class={`lines-side ${role}`} role="group" aria-label={title} ref={group} onKeyDown={keyed}>
      {places([first, end]).map((place) => (
        <button
          key={place}
          type="button"
          data-place={place}
          lang={languageTag(axis)}
          aria-pressed={chosen.value === place}
          tabIndex={place === reached ? 0 : -1}
          title={`${brief(axis, place)} · ${detail(axis, place)}`}
          style={{ [across ? "left" : "top"]: `${middle(place, axis.length, length)}px` }}
          onClick={() => toggle(chosen, place)}
        >
          <bdi dir="auto">{called(axis, place).slice(0, LONGEST)}</bdi>
        </button>
      ))}
    </div>
  );
}

interface DrawingProps {
  queries: Axis;
  keys: Axis;
  drawn: Strand[];
  finding: string;
  length: number;
  from: number;
  to: number;
  across: boolean;
}

function Drawing({ queries, keys, drawn, finding, length, from, to, across }: DrawingProps) {
  const size = to - from;
  // Lines of several heads between the same two tokens lie beside one another.
  const heads = several.value?.map((each) => each.head) ?? [];
  const apart = Math.min(3, 14 / Math.max(1, heads.length));
  const aside = (strand: Strand) => (strand.head === undefined ? 0 : (heads.indexOf(strand.head) - (heads.length - 1) / 2) * apart);
  const shape = (strand: Strand) =>
    bend(middle(strand.query, queries.length, length) - from + aside(strand), middle(strand.key, keys.length, length) - from + aside(strand), across);
  return (
    <svg
      class="lines-drawing"
      role="img"
      aria-label={say("linesDrawing", { finding })}
      viewBox={across ? `0 0 ${size} 100` : `0 0 100 ${size}`}
      preserveAspectRatio="none"
      style={across ? { left: `${from}px`, width: `${size}px` } : { top: `${from}px`, height: `${size}px` }}
    >
      {drawn.map((strand) => (
        <Line key={`${strand.head ?? ""} ${strand.query} ${strand.key}`} strand={strand} path={shape(strand)}>
          {`${strand.head === undefined ? "" : `${say("headNumber", { head: strand.head })}: `}${brief(queries, strand.query)} → ${brief(keys, strand.key)}: ${written(strand.value, strand.exact, differs())}`}
        </Line>
      ))}
    </svg>
  );
}

/** From the queries' side to the keys': left to right, or, where sequences run across the page, bottom to top. */
function bend(query: number, key: number, across: boolean): string {
  const [a, b] = [query.toFixed(1), key.toFixed(1)];
  return across ? `M${a},100 C${a},60 ${b},40 ${b},0` : `M0,${a} C40,${a} 60,${b} 100,${b}`;
}

/** Whether a line belongs to what is chosen; where nothing is, all do. */
function belongs(strand: Strand): boolean {
  if (query.value !== null && readingQuery() !== null) return strand.query === query.value;
  const at = readingKey();
  return at === null || strand.key === at;
}

function Line({ strand, path, children }: { strand: Strand; path: string; children: ComponentChildren }) {
  const near = belongs(strand);
  const width = strand.head === undefined ? 0.75 + 5.25 * strand.strength : 0.75 + 3 * strand.strength;
  const opacity = (0.12 + 0.88 * strand.strength) * (near ? 1 : 0.15);
  const kind = ["strand", strand.value < 0 && bothWays() ? "less" : "", strand.key === key.value && near ? "at-key" : ""];
  const choose = () => ([query.value, key.value] = [strand.query, strand.key]);
  return (
    <g onClick={choose}>
      <title>{children}</title>
      {strand.hard && near && strand.head === undefined && <path class="strand-outline" d={path} vector-effect="non-scaling-stroke" stroke-width={width + 2.5} />}
      <path
        class={kind.filter(Boolean).join(" ")}
        d={path}
        vector-effect="non-scaling-stroke"
        stroke-width={width}
        opacity={opacity}
        data-head={strand.head}
        style={strand.head === undefined ? undefined : { stroke: colourOf(strand.head), strokeDasharray: dashOf(strand.head) }}
      />
    </g>
  );
}
