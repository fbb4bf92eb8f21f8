// The film of training: one probe sentence at every recorded step, its statistics, and when heads became diagonal.

import { action } from "../actions";
import { Button } from "../button";
import { brief } from "../curves/scale";
import { type Statistic, statistics } from "../heads/statistics";
import type { Attention, Frame } from "../payload";
import { current, filming, frame, head, run } from "../store";
import { say } from "../strings";
import { goFrame, show, still, toggleFilm } from "./clock";
import { FilmCurve } from "./filmcurve";
import { FilmStrip } from "./filmstrip";
import { DIAGONAL, diagonalSteps, losses, over, probe } from "./training";

action({ id: "film", keys: ["f"], label: "film.toggle", run: toggleFilm });
action({ id: "film.on", keys: ["}"], label: "film.next", run: () => void goFrame(1) });
action({ id: "film.back", keys: ["{"], label: "film.previous", run: () => void goFrame(-1) });
action({ id: "film.recorded", keys: ["F"], label: "film.back", run: () => show(null) });

export function Film() {
  const { training, examples } = run.value;
  if (training.length === 0) return null;
  const probed = examples[training[0]!.example];
  const shown = current.value;
  return (
    <div class="film">
      <h3>{say("film.title")}</h3>
      {probed && <p dir="auto">{say("film.probe", { title: probe(probed) })}</p>}
      <Buttons />
      <Slider training={training} />
      {shown && training.some((each) => each.weights[shown.id]) ? (
        <>
          <FilmStrip training={training} attention={shown} />
          <Diagonal training={training} attention={shown} />
          <Curves training={training} attention={shown} />
        </>
      ) : (
        <p class="playback-note">{say("film.missing")}</p>
      )}
    </div>
  );
}

function Buttons() {
  return (
    <div class="playback-buttons">
      <Button of="film.back" face="◂" />
      <Button of="film" face={say(filming.value ? "playback.pause" : "playback.play")} />
      <Button of="film.on" face="▸" />
      {frame.value !== null && <Button of="film.recorded" />}
      {still() && <p class="playback-note">{say("film.still")}</p>}
    </div>
  );
}

/** Where the film is, in words. */
export function moment(training: Frame[], place: number | null): string {
  const here = place === null ? null : training[place];
  if (!here || place === null) return say("film.recorded");
  const blanks = { step: here.step.toLocaleString("en-US"), place: place + 1, count: training.length };
  return here.loss === null ? say("film.moment", blanks) : say("film.loss", { ...blanks, loss: brief(here.loss) });
}

function Slider({ training }: { training: Frame[] }) {
  const told = moment(training, frame.value);
  return (
    <>
      <label class="playback-slider">
        <span>{say("film.slider")}</span>
        <input
          type="range"
          min={0}
          max={training.length - 1}
          value={frame.value ?? training.length - 1}
          aria-valuetext={told}
          onInput={(event) => show(Number(event.currentTarget.value))}
        />
      </label>
      <p class="playback-now">{told}</p>
    </>
  );
}

/** When the head in sight became diagonal, or how many of all did. */
export function diagonalTold(training: Frame[], attention: Attention, chosen: number | "mean"): string {
  const steps = diagonalSteps(training, attention.id);
  const number = (step: number) => step.toLocaleString("en-US");
  if (chosen !== "mean" && chosen < steps.length) {
    const step = steps[chosen] ?? null;
    return step === null ? say("film.never", { head: chosen }) : say("film.diagonal", { head: chosen, step: number(step) });
  }
  const known = steps.flatMap((step, each) => (step === null ? [] : [{ step, head: each }]));
  if (known.length === 0) return say("film.none", { heads: steps.length });
  const first = known.reduce((best, each) => (each.step < best.step ? each : best));
  return say("film.heads", { count: known.length, heads: steps.length, head: first.head, step: number(first.step) });
}

function Diagonal({ training, attention }: { training: Frame[]; attention: Attention }) {
  return (
    <>
      <p>{diagonalTold(training, attention, head.value)}</p>
      <p class="playback-note">{say("film.definition", { threshold: DIAGONAL })}</p>
    </>
  );
}

function Curves({ training, attention }: { training: Frame[]; attention: Attention }) {
  const values = (name: Statistic, of: number | "mean") => over(training, attention.id, name, of);
  const heads = Array.from({ length: attention.heads }, (_, each) => each);
  const known = training.some((each) => each.loss !== null);
  return (
    <div class="film-curves">
      <h4>{say("film.curves")}</h4>
      {known && <FilmCurve training={training} name={say("film.name.loss")} values={losses(training)} heads={[]} />}
      {statistics([attention]).map((name) => (
        <FilmCurve
          key={name}
          training={training}
          name={say(`film.name.${name}`)}
          values={values(name, head.value)}
          heads={heads.map((each) => values(name, each))}
        />
      ))}
    </div>
  );
}
