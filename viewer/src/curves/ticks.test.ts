import { expect, test } from "vitest";
import type { Axis } from "../payload";
import { ticksOf } from "./ticks";

const measure = (text: string) => 6 * text.length;

function text(labels: string[]): Axis {
  return { kind: "text", length: labels.length, labels, pieces: labels, text: "", spans: [], special: [], lang: null };
}

test("tokens stand under the curve where they fit, a long one shortened", () => {
  const ticks = ticksOf(text(["Tom", "chases", "Jerry", "incomprehensibly"]), 240, measure);
  expect(ticks.map((tick) => tick.place)).toEqual([0, 1, 2, 3]);
  expect(ticks.slice(0, 3).map((tick) => tick.text)).toEqual(["Tom", "chases", "Jerry"]);
  expect(ticks[3]!.text).toBe("incompr…");
});

test("where tokens do not fit round positions do, and none lies over another", () => {
  const ticks = ticksOf(text(Array.from({ length: 4096 }, () => "word")), 600, measure);
  expect(ticks.slice(0, 3)).toEqual([
    { place: 499, text: "500" },
    { place: 999, text: "1000" },
    { place: 1499, text: "1500" },
  ]);
  const right = ticks.map((tick) => ((tick.place + 0.5) / 4096) * 600 + measure(tick.text) / 2);
  ticks.slice(1).forEach((tick, at) => expect(((tick.place + 0.5) / 4096) * 600 - measure(tick.text) / 2).toBeGreaterThan(right[at]!));
});

test("sound is counted in round seconds", () => {
  const axis: Axis = { kind: "audio", length: 40, labels: null, seconds_per_step: 0.025, spectrogram: null, sound: null, rate: null };
  expect(ticksOf(axis, 300, measure)).toEqual([
    { place: 0, text: "0 s" },
    { place: 8, text: "0.2 s" },
    { place: 16, text: "0.4 s" },
    { place: 24, text: "0.6 s" },
    { place: 32, text: "0.8 s" },
  ]);
});

test("a series shows the day, the day and time, or the time, as its span asks", () => {
  const series = (step: number): Axis => ({
    kind: "series",
    length: 4,
    labels: null,
    times: [0, 1, 2, 3].map((each) => each * step),
    values: { data: "", dtype: "f32", shape: [4, 1] },
    names: ["load"],
    split: null,
    dates: true,
  });
  const last = (step: number) => ticksOf(series(step), 600, measure).at(-1)!.text;
  expect(last(3600)).toBe("03:00");
  expect(last(86400)).toBe("01-04 00:00");
  expect(last(86400 * 365)).toBe("1972-12-31");
});

test("an axis without places and a picture without room have no ticks", () => {
  expect(ticksOf(text([]), 300, measure)).toEqual([]);
  expect(ticksOf(text(["a"]), 0, measure)).toEqual([]);
});
