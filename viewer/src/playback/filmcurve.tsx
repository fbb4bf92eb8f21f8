// A statistic over training: the head in sight as a line, all heads as a band.

import { useLayoutEffect, useMemo, useRef } from "preact/hooks";
import { prepare, useWidth } from "../curves/canvas";
import { bandOf } from "../curves/column";
import { type Colours, coloursOf, theme } from "../curves/colours";
import { draw, type Picture } from "../curves/draw";
import { Over } from "../curves/marks";
import { endsOf } from "../curves/finding";
import { brief, plainScale } from "../curves/scale";
import type { Frame } from "../payload";
import { frame } from "../store";
import { say } from "../strings";
import { show } from "./clock";
import { along } from "./training";

const HEIGHT = 66;
const MARGIN = { left: 46, right: 10, top: 8, bottom: 18 };

interface Given {
  training: Frame[];
  name: string;
  values: Float32Array;
  /** The same for every head; none where heads have no part in it. */
  heads: Float32Array[];
}

export function FilmCurve(given: Given) {
  const { ref, width } = useWidth<HTMLDivElement>();
  const canvas = useRef<HTMLCanvasElement>(null);
  const cross = frame.value;
  const turn = theme.value;
  const ready = canvas.current;
  const picture = useMemo(
    () => (ready && width > 0 ? pictureOf(given, width, coloursOf(ready)) : null),
    [ready, given.training, given.values, width, turn],
  );
  useLayoutEffect(() => {
    const pen = ready && picture && prepare(ready, width, HEIGHT);
    if (pen) draw(pen, picture, coloursOf(ready));
  }, [picture]);
  const take = (event: MouseEvent) => {
    const box = (event.currentTarget as Element).getBoundingClientRect();
    const share = (event.clientX - box.left - MARGIN.left) / Math.max(1, width - MARGIN.left - MARGIN.right);
    show(nearest(given.training, share));
  };
  return (
    <div class="film-curve" ref={ref}>
      <p class="film-name">
        {given.name} <span class="playback-value">{cross === null ? "" : brief(given.values[cross] ?? NaN)}</span>
      </p>
      <div class="film-drawing" onClick={take}>
        <canvas ref={canvas} role="img" aria-label={curveTold(given)} style={{ height: `${HEIGHT}px` }} />
        {picture && <Over picture={picture} marks={{ cross, pointed: null, brush: null, sight: null }} />}
      </div>
    </div>
  );
}

function pictureOf({ training, values, heads }: Given, width: number, colours: Colours): Picture {
  const band = heads.length > 1 ? bandOf(heads) : null;
  const last = training.length - 1;
  const drawn = [...values, ...(band ? [...band.low, ...band.high] : [])].filter((value) => !Number.isNaN(value));
  return {
    width,
    height: HEIGHT,
    margin: MARGIN,
    count: training.length,
    across: along(training),
    scale: plainScale(drawn),
    shade: null,
    rules: [],
    areas: band ? [{ ...band, colour: colours.quiet, opacity: 0.2 }] : [],
    lines: [{ values, colour: colours.runs[0], width: 1.6, dash: [] }],
    ticks: (last > 0 ? [0, last] : [0]).map((place) => ({ place, text: training[place]!.step.toLocaleString("en-US") })),
    title: "",
  };
}

/** The moment whose training step is nearest to a place along the curve. */
export function nearest(training: Frame[], share: number): number {
  const across = along(training);
  const away = (place: number) => Math.abs(across(place) - share);
  return training.reduce((best, _, place) => (away(place) < away(best) ? place : best), 0);
}

export function curveTold({ training, name, values }: Given): string {
  const ends = endsOf(values);
  if (!ends) return `${name}: ${say("time.unknown")}`;
  const known = [...values.keys()].filter((place) => !Number.isNaN(values[place]!));
  const [first, last] = [known[0]!, known[known.length - 1]!];
  return say("film.curve", {
    name,
    first: brief(values[first]!),
    start: training[first]!.step,
    last: brief(values[last]!),
    end: training[last]!.step,
    low: brief(values[ends.least]!),
    high: brief(values[ends.most]!),
  });
}
