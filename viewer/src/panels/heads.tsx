// All heads of all layers at once: pictures or one statistic, sorted, filtered, pinned.

import type { JSX } from "preact";
import { useRef } from "preact/hooks";
import { Controls } from "../heads/controls";
import { finding, span } from "../heads/finding";
import { Grid } from "../heads/grid";
import { Multiples } from "../heads/multiples";
import { headsOf, matrix, passes, ranked, type Arranged } from "../heads/order";
import { isPinned, MOST_PINS, toggle } from "../heads/pins";
import { headSentence, meaningOf, numberOf, shown } from "../heads/statistics";
import { MARGIN } from "../heads/window";
import { css, table } from "../palette";
import { current, head, headsFilter, headsOrder, headsView, layers, palette, payload, pinned } from "../store";
import { say } from "../strings";
import { useWidth } from "../width";
import "../styles/heads.css";

/** Cells are targets, so never smaller than 24 pixels; larger than 56 they say no more. */
const [SMALLEST, LARGEST] = [24, 56];
/** A sorted head carries its name, which needs more room. */
const NAMED = 52;
/** The height at which the matrix begins to scroll, as heads.css has it. */
const TALLEST = 340;

export function Heads(): JSX.Element {
  const box = useRef<HTMLDivElement>(null);
  const width = useWidth(box, 320);
  return (
    <section class="heads" aria-labelledby="heads-title">
      <h2 id="heads-title">{say("headsTitle")}</h2>
      <div ref={box}>{layers.value.length === 0 ? <p>{say("headsNone")}</p> : <Body width={width} />}</div>
    </section>
  );
}

function Body({ width }: { width: number }): JSX.Element {
  const size = sizeFor(width);
  const arranged = arrange(width, size);
  return (
    <>
      <Controls />
      <p class="heads-line">{finding()}</p>
      <p class="heads-line heads-quiet">{headsView.value === "pictures" ? say("headsPicturesMean") : meaningOf(headsView.value)}</p>
      {arranged.cells.length > 0 && <Grid arranged={arranged} size={size} />}
      <Bar />
      {headsFilter.value && <p class="heads-line">{kept()}</p>}
      <Selected />
      <Multiples />
    </>
  );
}

/** As large as lets all heads be seen at once. */
function sizeFor(width: number): number {
  const columns = Math.max(1, ...layers.value.map((layer) => layer.heads)) + 1;
  const [across, down] = [(width - MARGIN.left) / columns, (TALLEST - MARGIN.top) / layers.value.length];
  return Math.min(LARGEST, Math.max(headsOrder.value ? NAMED : SMALLEST, Math.floor(Math.min(across, down))));
}

function arrange(width: number, size: number): Arranged {
  if (!headsOrder.value) return matrix(layers.value, headsFilter.value, numberOf);
  const columns = Math.max(1, Math.floor((width - MARGIN.left) / size));
  return ranked(layers.value, headsOrder.value, headsFilter.value, columns, numberOf);
}

/** The palette with the numbers at its ends; pictures have the heat map's scale, which says so itself. */
function Bar(): JSX.Element | null {
  const ends = span();
  if (!ends) return null;
  const colours = table(payload.value, palette.value);
  const stops = Array.from({ length: 17 }, (_, at) => css(colours, Math.min(255, at * 16)));
  return (
    <p class="heads-bar">
      <span>{shown(ends.low)}</span>
      <span class="heads-ramp" role="img" aria-label={say("headsScaleBar", { low: shown(ends.low), high: shown(ends.high) })} style={{ background: `linear-gradient(to right, ${stops.join(", ")})` }} />
      <span>{shown(ends.high)}</span>
    </p>
  );
}

function kept(): string {
  const all = layers.value.flatMap((attention) => headsOf(attention).map((each) => passes(attention, each, headsFilter.value, numberOf)));
  return say("headsKept", { kept: all.filter(Boolean).length, all: all.length });
}

/** The selected head in words, and the button that pins it. */
function Selected(): JSX.Element | null {
  const shownAttention = current.value;
  if (!shownAttention) return null;
  const pin = { attention: shownAttention.id, head: head.value };
  const full = pinned.value.length >= MOST_PINS && !isPinned(pin);
  return (
    <p class="heads-line">
      <span>{headSentence(shownAttention, head.value)}</span>{" "}
      <button type="button" aria-pressed={isPinned(pin)} disabled={full} onClick={() => toggle(pin)}>
        {say("headsPin")} (P)
      </button>
      {full && <span> {say("headsFull", { most: MOST_PINS })}</span>}
    </p>
  );
}
