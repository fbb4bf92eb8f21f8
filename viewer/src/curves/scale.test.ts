import { expect, test } from "vitest";
import { brief, height, keysScale, nice, plainScale, sharesScale, unitScale } from "./scale";

test("half and twice an even share lie at equal distances from one", () => {
  const scale = sharesScale([0.6, 1.7]);
  expect([scale.low, scale.high]).toEqual([0.25, 4]);
  expect(height(scale, 1)).toBeCloseTo(0.5);
  expect(height(scale, 2) - 0.5).toBeCloseTo(0.5 - height(scale, 0.5));
  expect(scale.ticks.map((tick) => tick.text)).toEqual(["¼", "½", "1", "2", "4"]);
});

test("the scale of shares grows with its values by factors of two, and nothing received lies on the ground", () => {
  const scale = sharesScale([0, 9]);
  expect([scale.low, scale.high]).toEqual([1 / 64, 16]);
  expect(height(scale, 0)).toBe(0);
  expect(scale.ticks[0]!.text).toBe("1/64");
});

test("weights go from 0 to 1, and further where they do", () => {
  expect(unitScale([0.2, 0.4]).high).toBe(1);
  expect(unitScale([0.2, 3.4]).high).toBe(5);
  expect(unitScale([0.5], true).ticks.map((tick) => tick.text)).toEqual(["0 %", "50 %", "100 %"]);
});

test("effective keys are drawn by logarithm from one to all", () => {
  const scale = keysScale(100);
  expect(height(scale, 10)).toBeCloseTo(0.5);
  expect(scale.ticks.map((tick) => tick.value)).toEqual([1, 10, 100]);
  expect(keysScale(1).high).toBe(2);
});

test("values that are all the same still have a scale, and unknown ones none of their own", () => {
  expect(plainScale([3, 3])).toMatchObject({ low: 2.5, high: 3.5 });
  expect(plainScale([NaN, 1, 2])).toMatchObject({ low: 1, high: 2 });
  expect(plainScale([])).toMatchObject({ low: 0, high: 1 });
});

test("numbers are written with three digits that count", () => {
  expect([0.12345, 12.345, 12345.6, 0.00001, 0, NaN].map(brief)).toEqual(["0.123", "12.3", "12,346", "1.0e-5", "0", "–"]);
});

test("round numbers are 1, 2, 5 and ten times those", () => {
  expect([0.3, 1, 1.1, 4, 7, 30].map(nice)).toEqual([0.5, 1, 2, 5, 10, 50]);
});
