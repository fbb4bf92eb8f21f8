// A few moments of training as small pictures of the matrix in sight.

import { useLayoutEffect, useRef } from "preact/hooks";
import { gridOf } from "../cells";
import { prepare } from "../curves/canvas";
import { useLater } from "../curves/later";
import type { Grid } from "../grid";
import { paint } from "../paint";
import { pixels, table } from "../palette";
import type { Attention, Frame } from "../payload";
import { current, frame, head, palette, payload, run, runIndex, scale } from "../store";
import { say } from "../strings";
import { show } from "./clock";
import { chosenPlaces } from "./training";

const PICTURES = 8;
const SIDE = 56;

export function FilmStrip({ training, attention }: { training: Frame[]; attention: Attention }) {
  const places = chosenPlaces(training.length, PICTURES).filter((place) => training[place]!.weights[attention.id]);
  return (
    <ul class="film-strip" aria-label={say("film.strip")}>
      {places.map((place) => (
        <li key={place}>
          <Still place={place} step={training[place]!.step} />
        </li>
      ))}
    </ul>
  );
}

function Still({ place, step }: { place: number; step: number }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const grid = useLater(() => gridAt(place));
  const [colours, shade] = [palette.value, scale.value];
  useLayoutEffect(() => {
    if (!canvas.current || !grid) return;
    const context = prepare(canvas.current, SIDE, SIDE);
    if (!context) return;
    context.setTransform(1, 0, 0, 1, 0, 0);
    const target = { context, width: canvas.current.width, height: canvas.current.height, transposed: false };
    paint(grid, [0, 0, grid.rows, grid.columns], pixels(table(payload.value, colours), shade, false), target, () => null);
  }, [grid, colours, shade]);
  const told = say("film.picture", { step: step.toLocaleString("en-US") });
  return (
    <button type="button" class="film-still" aria-pressed={frame.value === place} onClick={() => show(place)}>
      <canvas ref={canvas} role="img" aria-label={told} style={{ width: `${SIDE}px`, height: `${SIDE}px` }} />
      <span aria-hidden="true">{told}</span>
    </button>
  );
}

function gridAt(place: number): Promise<Grid> | null {
  const shown = current.value;
  const moment = run.value.training[place];
  if (!shown || !moment?.weights[shown.id]) return null;
  const chosen = head.value !== "mean" && head.value >= shown.heads ? "mean" : head.value;
  return gridOf(runIndex.value, moment.example, shown, chosen, "weights", place);
}
