import { expect, test } from "vitest";
import { bandOf, columnsOf } from "./column";
import { cells } from "./draw";

test("each column of pixels keeps the lowest and the highest of its values", () => {
  const { low, high } = columnsOf([1, 5, 2, 2, 9, 0], 3, cells(6));
  expect([...low]).toEqual([1, 2, 0]);
  expect([...high]).toEqual([5, 2, 9]);
});

test("a peak of one place among 4,096 is in its column", () => {
  const values = new Float32Array(4096);
  values[3000] = 1;
  const { high } = columnsOf(values, 500, cells(4096));
  expect(high[Math.floor(((3000 + 0.5) / 4096) * 500)]).toBe(1);
  expect(high.filter((value) => value === 1)).toHaveLength(1);
});

test("a column without a known value is a gap, and unknown values beside known ones do not count", () => {
  const { low, high } = columnsOf([NaN, NaN, NaN, 3], 2, cells(4));
  expect([...low]).toEqual([NaN, 3]);
  expect([...high]).toEqual([NaN, 3]);
});

test("the band of two layers goes from the lower to the higher one, place by place", () => {
  const { low, high } = bandOf([Float32Array.of(1, 4, NaN), Float32Array.of(2, 3, NaN)]);
  expect([...low]).toEqual([1, 3, NaN]);
  expect([...high]).toEqual([2, 4, NaN]);
});
