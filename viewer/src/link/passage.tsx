// A sequence as it is read: tokens in their text, coloured by what is chosen on the other side. Long ones go by pages.

import type { Signal } from "@preact/signals";
import { lettered } from "../compare/names";
import type { Grid } from "../grid";
import { detail, labels, languageTag } from "../labels";
import type { Axis } from "../payload";
import { range, upper } from "../range";
import { keyAxis, queryAxis } from "../store";
import { say } from "../strings";
import { colour, ink, written as painted } from "./colour";
import { brief, called, quoted } from "./finding";
import { flow, type Stretch } from "./flow";
import { written } from "./number";
import { type Cell, differs, type Line, peaks, readingKey, readingQuery } from "./reading";
import { toggle, useRoving } from "./roving";

/** Tokens of a page: what a reader takes in at once, and quick to draw. */
export const PAGE = 250;

export interface PassageProps {
  axis: Axis;
  name: string;
  side: "query" | "key";
  chosen: Signal<number | null>;
  /** The place that is marked, which may be shown without having been chosen. */
  shown: number | null;
  /** What the colours stand for; null: none. */
  line: Line | null;
  grid: Grid;
}

export function Passage(props: PassageProps) {
  const { axis, name, side, chosen, shown, line } = props;
  const focus = shown ?? (line ? (peaks(line, 1)[0]?.place ?? 0) : 0);
  const first = Math.floor(focus / PAGE) * PAGE;
  const end = Math.min(axis.length, first + PAGE);
  const { group, keyed } = useRoving(chosen, axis.length, first);
  const title = say(side === "query" ? "linkQueries" : "linkKeys", { name });
  const stretches = axis.kind === "text" ? flow(axis, labels(axis), first, end) : chips(axis, first, end);
  const reached = stretches.find((each) => shown !== null && each.places.includes(shown)) ?? stretches.find((each) => each.places.length > 0);
  return (
    <div class={`passage ${side}`}>
      <h3>{title}</h3>
      <p class="quiet">{meaning(side, line)}</p>
      <div class="passage-text" role="group" aria-label={title} lang={languageTag(axis)} dir="auto" ref={group} onKeyDown={keyed}>
        {stretches.map((each, at) =>
          each.places.length === 0 ? each.text : <Token key={at} {...props} stretch={each} reached={each === reached} />,
        )}
      </div>
      {axis.length > PAGE && <Pages first={first} end={end} count={axis.length} chosen={chosen} />}
    </div>
  );
}

function chips(axis: Axis, first: number, end: number): Stretch[] {
  return Array.from({ length: end - first }, (_, at) => ({ text: called(axis, first + at), places: [first + at], name: true }));
}

function meaning(side: "query" | "key", line: Line | null): string {
  const other = side === "query" ? readingKey() : readingQuery();
  const axis = side === "query" ? keyAxis.value : queryAxis.value;
  if (!line || other === null || !axis) return say("tokensPlain", { side: say(side === "query" ? "tokensKeySide" : "tokensQuerySide") });
  return side === "query" ? say("tokensByKey", { key: quoted(axis, other) }) : say("tokensByQuery", { query: quoted(axis, other) });
}

/** Tokens that share their text are coloured by the strongest of them. */
function strongestOf(stretch: Stretch, line: Line | null): Cell | null {
  const cells = stretch.places.map((place) => line?.cell(place) ?? null);
  return cells.reduce((most, cell) => (cell && (!most || Math.abs(cell.value) > Math.abs(most.value)) ? cell : most), null);
}

function Token({ axis, chosen, shown, line, grid, stretch, reached }: PassageProps & { stretch: Stretch; reached: boolean }) {
  const cell = strongestOf(stretch, line);
  const ground = cell && colour(grid, cell.value);
  const place = stretch.places[0]!;
  const text = stretch.text || called(axis, place);
  const masked = line !== null && stretch.places.every((each) => line.masked(each));
  const value = cell ? written(cell.value, cell.exact, differs()) : "";
  // What is spoken begins with what is seen, unless that is a blank.
  const names = text.trim() === "" ? brief(axis, place) : text;
  const marked = shown !== null && stretch.places.includes(shown);
  const kinds = ["token", stretch.name ? "named" : "", masked ? "masked" : "", marked ? "chosen" : ""];
  return (
    <span
      class={kinds.filter(Boolean).join(" ")}
      role="button"
      tabIndex={reached ? 0 : -1}
      data-place={place}
      aria-pressed={marked}
      aria-label={value ? say("tokensTold", { label: names, value }) : names}
      title={[value, ...stretch.places.map((each) => detail(axis, each))].filter(Boolean).join(" · ")}
      style={ground ? { background: painted(ground), color: ink(ground) } : undefined}
      onClick={() => toggle(chosen, nextOf(stretch, chosen.value))}
      onKeyDown={(event) => {
        if (event.key !== "Enter" && event.key !== " ") return;
        event.preventDefault();
        toggle(chosen, nextOf(stretch, chosen.value));
      }}
    >
      {stretch.name ? <bdi>{text}</bdi> : text}
    </span>
  );
}

/** Of tokens that share their text the next one at each click, and nothing after the last. */
function nextOf(stretch: Stretch, now: number | null): number {
  const at = now === null ? -1 : stretch.places.indexOf(now);
  return stretch.places[at + 1] ?? stretch.places.at(-1)!;
}

function Pages({ first, end, count, chosen }: { first: number; end: number; count: number; chosen: Signal<number | null> }) {
  return (
    <p class="passage-pages">
      <button type="button" disabled={first === 0} onClick={() => (chosen.value = first - PAGE)}>
        {say("tokensEarlier")}
      </button>
      <span>{say("tokensPage", { first: first + 1, last: end, count })}</span>
      <button type="button" disabled={end === count} onClick={() => (chosen.value = end)}>
        {say("tokensLater")}
      </button>
    </p>
  );
}

/** What the colours stand for. */
export function Legend({ grid }: { grid: Grid }) {
  const high = upper.value;
  const low = grid.signed ? -high : 0;
  const stops = Array.from({ length: 17 }, (_, at) => painted(colour(grid, low + ((high - low) * at) / 16)));
  const { a, b } = lettered();
  return (
    <p class="tokens-legend quiet">
      {differs() && <span>{say("compareReadsMore", { run: b })}</span>}
      <span>{written(low, range.value !== "largest")}</span>
      <span class="tokens-bar" aria-hidden="true" style={{ background: `linear-gradient(to right, ${stops.join(", ")})` }} />
      <span>{written(high, range.value !== "largest")}</span>
      {differs() && <span>{say("compareReadsMore", { run: a })}</span>}
    </p>
  );
}
