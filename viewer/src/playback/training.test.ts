import { beforeAll, expect, test } from "vitest";
import type { Attention, Frame } from "../payload";
import { language } from "../store";
import { diagonalTold, moment } from "./film";
import { curveTold, nearest } from "./filmcurve";
import { along, chosenPlaces, diagonalSteps, losses, over, probe, settled } from "./training";

beforeAll(() => (language.value = "en"));

function frame(step: number, diagonality: (number | null)[], loss: number | null = null): Frame {
  const summary = { entropy: diagonality, sink: diagonality, distance: diagonality, diagonality } as Frame["summary"][string];
  return { step, loss, example: 0, weights: {}, summary: { cross: summary } };
}

const training = [frame(0, [0.5, 0.9], 4), frame(100, [0.85, 0.6], 2), frame(1000, [0.7, 0.8]), frame(2000, [0.9, 0.8], 1)];
const attention = { id: "cross", heads: 2 } as Attention;

test("a head is diagonal from the first step after which it stays so", () => {
  expect(settled([0.9, 0.5, 0.8, 0.9], 0.8)).toBe(2);
  expect(settled([0.9, 0.9], 0.8)).toBe(0);
  expect(settled([0.9, 0.7], 0.8)).toBeNull();
  expect(settled([0.9, NaN], 0.8)).toBeNull();
  expect(diagonalSteps(training, "cross")).toEqual([2000, 1000]);
});

test("what became of the heads is said for one and for all", () => {
  expect(diagonalTold(training, attention, 0)).toBe("Head 0 became diagonal at step 2,000.");
  expect(diagonalTold(training.slice(0, 3), attention, 0)).toBe("Head 0 did not become diagonal.");
  expect(diagonalTold(training, attention, "mean")).toBe("2 of 2 heads became diagonal; the first was head 1, at step 1,000.");
  expect(diagonalTold([frame(0, [0.1, 0.2])], attention, "mean")).toBe("None of 2 heads became diagonal.");
});

test("a statistic over training is a head's or the mean of those that are known", () => {
  const rounded = (values: Float32Array) => [...values].map((value) => Number(value.toFixed(3)));
  expect(rounded(over(training, "cross", "entropy", 1))).toEqual([0.9, 0.6, 0.8, 0.8]);
  expect(rounded(over([frame(0, [0.5, null])], "cross", "entropy", "mean"))).toEqual([0.5]);
  expect(rounded(over(training, "nobody", "entropy", "mean"))).toEqual([NaN, NaN, NaN, NaN]);
  expect([...losses(training)]).toEqual([4, 2, NaN, 1]);
});

test("few frames are all shown, many evenly with both ends", () => {
  expect(chosenPlaces(3, 8)).toEqual([0, 1, 2]);
  expect(chosenPlaces(200, 5)).toEqual([0, 50, 100, 149, 199]);
});

test("moments lie by their training step, and the nearest is the one that is taken", () => {
  expect(along(training)(0)).toBeCloseTo(0.02);
  expect(along(training)(2)).toBeCloseTo(0.5);
  expect(along([frame(7, [])])(0)).toBeCloseTo(0.5);
  expect([nearest(training, 0), nearest(training, 0.06), nearest(training, 0.6), nearest(training, 9)]).toEqual([0, 1, 2, 3]);
});

test("a moment and a curve are told in words", () => {
  expect(moment(training, 1)).toBe("Step 100, frame 2 of 4, loss 2");
  expect(moment(training, 2)).toBe("Step 1,000, frame 3 of 4");
  expect(moment(training, null)).toBe("The model as it was recorded");
  const told = curveTold({ training, name: "Loss", values: losses(training), heads: [] });
  expect(told).toBe("Loss: from 4 at step 0 to 1 at step 2000; lowest 1, highest 4.");
  expect(curveTold({ training, name: "Loss", values: Float32Array.of(NaN), heads: [] })).toBe("Loss: not recorded");
});

test("the probe is called by its title, or by the texts of its axes", () => {
  const axis = { kind: "text" as const, length: 1, labels: null, pieces: ["a"], text: "a b", spans: [], special: [], lang: null };
  const example = { title: "", axes: { source: axis, target: { ...axis, text: "c" } }, attentions: [], steps: [], beams: null };
  expect(probe(example)).toBe("a b → c");
  expect(probe({ ...example, title: "Tom" })).toBe("Tom");
});
