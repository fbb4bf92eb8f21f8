// Decoding step by step: what was written, what else could have been, and what the row read.

import { action } from "../actions";
import { Button } from "../button";
import { grid, strongest } from "../cells";
import { named, short } from "../curves/name";
import { brief } from "../curves/scale";
import { languageTag } from "../labels";
import type { Step } from "../payload";
import { current, currentExample, interval, keyAxis, playing, query, queryAxis } from "../store";
import { say } from "../strings";
import { INTERVALS, nextPace, still, togglePlay } from "./clock";
import { at, go, stepAt, stops } from "./walk";

const SHOWN = 4;

action({ id: "play", keys: [" "], label: "playback.toggle", run: togglePlay });
action({ id: "step.on", keys: [")"], label: "playback.next", run: () => void go(1) });
action({ id: "step.back", keys: ["("], label: "playback.previous", run: () => void go(-1) });
action({ id: "pace", keys: ["y"], label: "playback.speed", run: nextPace });

export function Steps() {
  const way = stops(currentExample.value, current.value);
  const place = at(way, query.value);
  const step = stepAt(currentExample.value, current.value, query.value);
  return (
    <>
      {currentExample.value.steps.length === 0 && <p class="playback-note">{say("playback.undecoded")}</p>}
      <Transport />
      <label class="playback-slider">
        <span>{say("playback.slider")}</span>
        <input
          type="range"
          min={0}
          max={Math.max(0, way.length - 1)}
          value={Math.max(0, place)}
          disabled={way.length === 0}
          aria-valuetext={sentence(way, place, step)}
          onInput={(event) => (query.value = way[Number(event.currentTarget.value)] ?? null)}
        />
      </label>
      <p class="playback-now">{sentence(way, place, step)}</p>
      {step && step.candidates.length > 0 && <Candidates step={step} />}
      {place >= 0 && <Reads />}
    </>
  );
}

function Transport() {
  const quiet = still();
  return (
    <div class="playback-buttons">
      <Button of="step.back" face="◂" />
      <Button of="play" face={say(playing.value ? "playback.pause" : "playback.play")} />
      <Button of="step.on" face="▸" />
      {quiet ? <p class="playback-note">{say("playback.still")}</p> : <Pace />}
    </div>
  );
}

function Pace() {
  return (
    <label>
      {say("playback.interval")}{" "}
      <select
        aria-keyshortcuts="y"
        value={String(interval.value)}
        onChange={(event) => (interval.value = Number(event.currentTarget.value))}
      >
        {INTERVALS.map((each) => (
          <option key={each} value={String(each)}>
            {each / 1000}
          </option>
        ))}
      </select>
    </label>
  );
}

/** Where playback is and what it wrote, in one sentence. */
export function sentence(way: number[], place: number, step: Step | null): string {
  if (place < 0) return say("playback.before", { steps: way.length });
  const counted = { step: place + 1, steps: way.length };
  if (step) {
    return say("playback.step", { ...counted, token: short(step.token), probability: brief(Math.exp(step.logprob)) });
  }
  return say("playback.query", { ...counted, token: queryAxis.value ? named(queryAxis.value, way[place]!) : "" });
}

function Candidates({ step }: { step: Step }) {
  const lang = languageTag(queryAxis.value);
  return (
    <div class="playback-list">
      <h3 id="playback-chances">{say("playback.chances")}</h3>
      <ol aria-labelledby="playback-chances">
        {step.candidates.map(([token, logprob], at) => (
          <Bar
            key={`${at} ${token}`}
            name={short(token)}
            lang={lang}
            share={Math.exp(logprob)}
            text={brief(Math.exp(logprob))}
            strong={token === step.token}
          />
        ))}
      </ol>
    </div>
  );
}

function Reads() {
  const [shown, axis, row] = [grid.value, keyAxis.value, query.value];
  if (!shown || !axis || row === null) return null;
  const found = strongest(shown, row, SHOWN);
  const most = Math.max(1e-9, ...found.map((each) => Math.abs(each.value)));
  return (
    <div class="playback-list">
      <h3 id="playback-reads">{say("playback.reads")}</h3>
      {found.length === 0 && <p class="playback-note">{say("playback.unread")}</p>}
      <ol aria-labelledby="playback-reads" class={axis.kind === "series" ? "playback-wide" : undefined}>
        {found.map(({ key, value, exact }) => (
          <Bar
            key={key}
            name={named(axis, key)}
            lang={languageTag(axis)}
            share={Math.abs(value) / Math.max(1, most)}
            text={exact ? brief(value) : say("playback.about", { weight: brief(value) })}
            strong={false}
          />
        ))}
      </ol>
    </div>
  );
}

interface BarGiven {
  name: string;
  lang: string | undefined;
  share: number;
  text: string;
  strong: boolean;
}

function Bar({ name, lang, share, text, strong }: BarGiven) {
  return (
    <li class={strong ? "playback-bar playback-strong" : "playback-bar"}>
      <bdi class="playback-name" lang={lang} title={name}>
        {name}
      </bdi>
      <span class="playback-track" aria-hidden="true">
        <span class="playback-fill" style={{ inlineSize: `${Math.min(100, 100 * share)}%` }} />
      </span>
      <span class="playback-value">
        {text}
        {strong && <span class="visually-hidden"> {say("playback.chosen")}</span>}
      </span>
    </li>
  );
}
