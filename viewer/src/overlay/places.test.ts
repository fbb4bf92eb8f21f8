import { beforeAll, expect, test } from "vitest";
import type { ImageAxis, SeriesAxis } from "../payload";
import { payload } from "../store";
import { invent } from "../testing/invent";
import { envelope, placeAt } from "./audio";
import { patchAt, patchBox } from "./image";
import { bounds, fieldOf, nearest } from "./series";
import { shadeOf } from "./shade";

beforeAll(() => {
  payload.value = invent();
});

const image: ImageAxis = { kind: "image", length: 7, labels: null, grid: [2, 3], size: [20, 30], pixels: null, prefix: ["CLS"] };

test("patches follow the prefix row by row and cover the picture without a seam", () => {
  expect(patchBox(image, 1, 100, 50)).toEqual([0, 0, 33, 25]);
  expect(patchBox(image, 2, 100, 50)).toEqual([33, 0, 34, 25]);
  expect(patchBox(image, 6, 100, 50)).toEqual([67, 25, 33, 25]);
});

test("a point finds the patch in which it lies, also on the very edge", () => {
  expect(patchAt(image, 34, 26, 100, 50)).toBe(5);
  expect(patchAt(image, 100, 50, 100, 50)).toBe(6);
  expect(patchAt(image, -1, -1, 100, 50)).toBe(1);
});

test("a peak between two pixels is not lost", () => {
  const found = envelope((place) => (place === 5 ? 1 : 0.1), 10, 4);
  expect(found.map((share) => Math.round(share * 10) / 10)).toEqual(Float32Array.from([0.1, 0.1, 1, 0.1]));
  expect(envelope((place) => place, 2, 4)).toEqual(Float32Array.from([0, 0, 1, 1]));
  expect(placeAt(40, 50, 100)).toBe(20);
  expect(placeAt(40, 100, 100)).toBe(39);
});

const series: SeriesAxis = {
  kind: "series",
  length: 3,
  labels: null,
  times: [0, 1, 4],
  values: { data: "", dtype: "f32", shape: [3, 1] },
  names: ["a"],
  split: 2,
  dates: false,
};

test("moments stand where their times are and each reaches half way to the next", () => {
  const field = fieldOf(series, Float32Array.from([0, 5, 10]), 46 + 70 + 400, 230);
  expect([0, 1, 2].map((place) => field.x(place))).toEqual([46, 146, 446]);
  expect([0, 1, 2].map((place) => field.span(place))).toEqual([[46, 96], [96, 296], [296, 446]]);
  expect([field.y(10), field.y(0)]).toEqual([10, 198]);
  expect([nearest(3, field, 0), nearest(3, field, 97), nearest(3, field, 500)]).toEqual([0, 1, 2]);
});

test("times that do not grow are shown one after the other", () => {
  const field = fieldOf({ ...series, times: [0, 0, 4] }, null, 46 + 70 + 400, 230);
  expect([0, 1, 2].map((place) => field.x(place))).toEqual([46, 246, 446]);
});

test("the bounds of a series leave out what is missing, and one value has room around it", () => {
  expect(bounds(Float32Array.from([1, NaN, 3]))).toEqual([1, 3]);
  expect(bounds(Float32Array.from([2, 2]))).toEqual([1, 3]);
  expect(bounds(Float32Array.from([NaN]))).toEqual([0, 1]);
});

test("the largest weight has the whole shade and its value is told; a line of nothing has none", () => {
  const cell = (value: number) => ({ value, exact: true });
  const line = (values: number[]) => ({ length: values.length, known: true, masked: () => false, cell: (at: number) => cell(values[at]!) });
  const shade = shadeOf(line([0, 0.05, 0.2]));
  expect([shade.share(0), shade.share(1), shade.share(2), shade.most]).toEqual([0, 0.5, 1, 0.2]);
  expect(shadeOf(line([0, 0])).share(1)).toBe(0);
});
