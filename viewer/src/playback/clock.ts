// What goes by itself: the steps of decoding, and the film. With reduced motion nothing does: playing goes one step on.

import { batch, effect } from "@preact/signals";
import { example, filming, frame, interval, payload, playing, query, run } from "../store";
import { go, way } from "./walk";

export const INTERVALS = [2000, 1000, 500, 200] as const;

export function still(): boolean {
  return typeof matchMedia === "function" && matchMedia("(prefers-reduced-motion: reduce)").matches;
}

/** Start, stop, or with reduced motion go one step; from the end it starts again. */
export function togglePlay(): void {
  const all = way();
  if (playing.value) playing.value = false;
  else if (all.length > 0) {
    const ended = query.value === all[all.length - 1];
    if (ended) query.value = all[0]!;
    if (!still()) playing.value = all.length > 1 || !ended;
    else if (!ended) go(1);
  }
}

export function toggleFilm(): void {
  const count = run.value.training.length;
  if (filming.value) filming.value = false;
  else if (count > 0) {
    const ended = frame.value === count - 1;
    if (ended || frame.value === null) show(0);
    if (!still()) filming.value = count > 1;
    else if (!ended && frame.value !== 0) goFrame(1);
  }
}

/** Show a moment of training on the example that it was recorded on. */
export function show(place: number | null): void {
  const moment = place === null ? null : run.value.training[place];
  batch(() => {
    if (moment) example.value = moment.example;
    frame.value = moment ? place : null;
  });
}

/** Some moments on; false where there is no further one. */
export function goFrame(by: number): boolean {
  const count = run.value.training.length;
  const next = frame.value === null ? (by > 0 ? 0 : count - 1) : frame.value + by;
  if (next < 0 || next >= count) return false;
  show(next);
  return true;
}

/** The next slower or faster pace, in a circle. */
export function nextPace(): void {
  const place = INTERVALS.findIndex((each) => each === interval.value);
  interval.value = INTERVALS[(place + 1) % INTERVALS.length]!;
}

/** Tick while something plays, and drop a moment that belongs to another example or run. Returns how to stop. */
export function keepTime(): () => void {
  const stopSteps = effect(() => (playing.value ? every(interval.value, () => go(1), () => (playing.value = false)) : undefined));
  const stopFilm = effect(() => (filming.value ? every(interval.value, () => goFrame(1), () => (filming.value = false)) : undefined));
  const stopMoment = effect(() => {
    if (!payload.value || frame.value === null) return;
    const moment = run.value.training[frame.value];
    if (!moment || moment.example !== example.value) [frame.value, filming.value] = [null, false];
  });
  return () => [stopSteps, stopFilm, stopMoment].forEach((stop) => stop());
}

function every(pace: number, tick: () => boolean, end: () => void): () => void {
  const timer = setInterval(() => {
    if (!tick()) end();
  }, pace);
  return () => clearInterval(timer);
}
