import { expect, test } from "vitest";
import { quantise } from "../grid";
import type { Attention, Axis } from "../payload";
import { measure, sinks } from "./moment";

const attention = { heads: 1, queries: 3, keys: 3, scale: 1 } as Attention;

test("a causal 3 x 3 matrix gives the numbers that are worked out by hand", () => {
  const rows = [1, 0, 0, 0.5, 0.5, 0, 0, 0, 1];
  const even = Float32Array.of(1 + 1 / 2 + 1 / 3, 1 / 2 + 1 / 3, 1 / 3);
  const tables = measure(Uint8Array.from(rows, (weight) => quantise(weight)), attention, even, [0]);
  const close = (found: Float32Array, wanted: number[]) => wanted.forEach((value, at) => expect(found[at]).toBeCloseTo(value, 2));
  close(tables.received, [1.5 / (11 / 6), 0.5 / (5 / 6), 3]);
  close(tables.largest, [1, 0.5, 1]);
  close(tables.effective, [1, 2, 1]);
  close(tables.focus, [0, 0.5, 2]);
  close(tables.spread, [0, 0.5, 0]);
  close(tables.sink, [1, 0.5, 0]);
});

test("a query that reads nothing has no focus, and a key that nobody may see receives nothing", () => {
  const tables = measure(new Uint8Array(9), attention, new Float32Array(3), [0]);
  expect([...tables.focus]).toEqual([NaN, NaN, NaN]);
  expect([...tables.received]).toEqual([0, 0, 0]);
  expect([...tables.effective]).toEqual([0, 0, 0]);
});

test("special tokens, punctuation and what stands before a picture's patches are sinks", () => {
  const labels = ["Tom", "，", "x", "<eos>"];
  const words: Axis = { kind: "text", length: 4, labels, pieces: labels, text: "", spans: [], special: [3], lang: null };
  expect(sinks(words).sort()).toEqual([1, 3]);
  expect(sinks({ kind: "image", length: 6, labels: null, grid: [2, 2], size: [8, 8], pixels: null, prefix: ["CLS", "REG"] })).toEqual([0, 1]);
  expect(sinks({ kind: "index", length: 3, labels: null })).toEqual([]);
});
