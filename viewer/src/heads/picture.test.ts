import { expect, it } from "vitest";
import { random } from "../testing/invent";
import { flip, peak, pick, rescale, resize, withMean } from "./picture";
import { shared } from "./pins";
import { light, shade } from "./surface";

const SMALL = { bytes: Uint8Array.of(1, 2, 3, 4, 5, 6), rows: 2, columns: 3 };

it("a peak of one cell survives at every smaller size", () => {
  const next = random(3);
  for (let round = 0; round < 50; round += 1) {
    const [rows, columns] = [1 + Math.floor(next() * 128), 1 + Math.floor(next() * 128)];
    const bytes = new Uint8Array(rows * columns);
    bytes[Math.floor(next() * bytes.length)] = 255;
    const small = resize({ bytes, rows, columns }, 1 + Math.floor(next() * rows), 1 + Math.floor(next() * columns));
    expect(Math.max(...small.bytes)).toBe(255);
  }
});

it("a picture made larger repeats its cells and mixes none", () => {
  expect([...resize(SMALL, 2, 6).bytes]).toEqual([1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6]);
  expect([...resize(SMALL, 3, 3).bytes]).toEqual([1, 2, 3, 4, 5, 6, 4, 5, 6]);
});

it("a picture made smaller has the largest of what each pixel covers", () => {
  expect([...resize(SMALL, 1, 3).bytes]).toEqual([4, 5, 6]);
  expect([...resize(SMALL, 1, 1).bytes]).toEqual([6]);
});

it("a picture the other way round has its rows as columns", () => {
  expect(flip(SMALL)).toEqual({ bytes: Uint8Array.of(1, 4, 2, 5, 3, 6), rows: 3, columns: 2 });
});

it("the mean of two heads is that of their weights, not of their bytes", () => {
  const all = withMean(Uint8Array.of(255, 0, 0, 255), 2, 1, 2);
  // weights 1 and 0 have the mean 0.5, whose byte is 255 times its root
  expect([...pick(all, "mean").bytes]).toEqual([180, 180]);
  expect([...pick(all, 1).bytes]).toEqual([0, 255]);
  expect([...pick(all, 7).bytes]).toEqual([180, 180]);
});

it("pictures on one scale keep their ratios, and the largest weight of all is the end of the scale", () => {
  const strong = { picture: { bytes: Uint8Array.of(255), rows: 1, columns: 1 }, scale: 0.25 };
  const faint = { picture: { bytes: Uint8Array.of(51), rows: 1, columns: 1 }, scale: 1 };
  expect(peak(faint.picture, 1)).toBeCloseTo(0.04);
  const { pictures, most } = shared([strong, faint]);
  expect(most).toBeCloseTo(0.25);
  expect(pictures.map((each) => each.bytes[0])).toEqual([255, 102]); // the root of 0.04 / 0.25 is 0.4
  expect(rescale(SMALL, 1, 1)).toBe(SMALL);
});

it("pictures of nothing but zeros have a scale all the same", () => {
  expect(shared([{ picture: { bytes: Uint8Array.of(0), rows: 1, columns: 1 }, scale: 1 }]).most).toBe(0);
  expect(shared([]).most).toBe(0);
});

it("numbers take the whole palette between the lowest and the highest", () => {
  const span = { statistic: "entropy", low: 1, high: 3 } as const;
  expect([1, 2, 3, 9].map((value) => shade(value, span))).toEqual([0, 128, 255, 255]);
  expect(shade(1, { ...span, high: 1 })).toBe(128);
});

it("ink on a colour is black where that can be read better", () => {
  expect(light(Uint8Array.of(255, 255, 255), 0)).toBe(true);
  expect(light(Uint8Array.of(0, 32, 77), 0)).toBe(false);
});
