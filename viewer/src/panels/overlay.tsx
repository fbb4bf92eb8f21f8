// The matrix laid over what it looked at: a picture, a sound, a series; text is coloured in place.

import type { Signal } from "@preact/signals";
import type { Grid } from "../grid";
import { detail } from "../labels";
import { brief, readBy, reads } from "../link/finding";
import { Passage } from "../link/passage";
import { type Line, useReading } from "../link/reading";
import { Waiting } from "../link/waiting";
import { AudioOverlay } from "../overlay/audio";
import { EveryQuery } from "../overlay/every";
import { ImageOverlay } from "../overlay/image";
import { SeriesOverlay } from "../overlay/series";
import type { Axis } from "../payload";
import { key, query } from "../store";
import { say } from "../strings";
import "../styles/overlay.css";
import "../styles/tokens.css";

export function Overlay() {
  const found = useReading();
  if (!found) return <Waiting />;
  const { grid, queries, keys, shown, query: read, row, key: place, column } = found;
  const reading = read !== null && row ? reads(queries, read, keys, row) : say("tokensPlain", { side: say("tokensQuerySide") });
  const readers = place !== null && column ? readBy(keys, place, queries, column) : say("tokensPlain", { side: say("tokensKeySide") });
  return (
    <div class="overlay">
      {!drawable(queries) && !drawable(keys) && <p class="quiet">{say("overlayUnfit")}</p>}
      <Places axis={queries} chosen={query} shown={read} words="overlayQuery" />
      <Side axis={queries} side="query" name={shown.query} chosen={query} shown={read} line={column} grid={grid} finding={readers} />
      <Places axis={keys} chosen={key} shown={place} words="overlayKey" />
      <Side axis={keys} side="key" name={shown.key} chosen={key} shown={place} line={row} grid={grid} finding={reading} />
      {keys.kind === "image" && queries.kind !== "image" && <EveryQuery queries={queries} keys={keys} grid={grid} shown={read} />}
    </div>
  );
}

function drawable(axis: Axis): boolean {
  return axis.kind === "image" || axis.kind === "audio" || axis.kind === "series";
}

interface SideProps {
  axis: Axis;
  side: "query" | "key";
  name: string;
  chosen: Signal<number | null>;
  shown: number | null;
  line: Line | null;
  grid: Grid;
  finding: string;
}

function Side(props: SideProps) {
  const { axis, side, name, chosen, shown, line, finding } = props;
  if (!drawable(axis)) return <Passage {...props} />;
  const drawn = { chosen, shown, line, finding, side };
  return (
    <figure class={`overlay-side ${side}`}>
      <figcaption>
        <h3>{say(side === "query" ? "linkQueries" : "linkKeys", { name })}</h3>
        <p>{finding}</p>
      </figcaption>
      {axis.kind === "image" && <ImageOverlay axis={axis} {...drawn} />}
      {axis.kind === "audio" && <AudioOverlay axis={axis} {...drawn} />}
      {axis.kind === "series" && <SeriesOverlay axis={axis} {...drawn} />}
    </figure>
  );
}

interface PlacesProps {
  axis: Axis;
  chosen: Signal<number | null>;
  shown: number | null;
  words: "overlayQuery" | "overlayKey";
}

/** A slider over the places of an axis, and a button for a step either way. */
function Places({ axis, chosen, shown, words }: PlacesProps) {
  const last = axis.length - 1;
  const told = shown === null ? say("overlayNone") : `${brief(axis, shown)} · ${detail(axis, shown)}`;
  const go = (to: number) => (chosen.value = Math.min(last, Math.max(0, to)));
  return (
    <div class="overlay-places">
      <label>
        <span>{say(words)}</span>
        <input
          type="range"
          min={0}
          max={last}
          value={shown ?? 0}
          aria-valuetext={told}
          onInput={(event) => go(event.currentTarget.valueAsNumber)}
        />
      </label>
      <button type="button" aria-label={`${say(words)}: ${say("overlayEarlier")}`} onClick={() => go((shown ?? 1) - 1)}>
        ‹
      </button>
      <button type="button" aria-label={`${say(words)}: ${say("overlayLater")}`} onClick={() => go((shown ?? -1) + 1)}>
        ›
      </button>
      <output title={told}>
        <bdi>{told}</bdi>
      </output>
    </div>
  );
}

