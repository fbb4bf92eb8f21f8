import { expect, test } from "vitest";
import type { Attention, Ref } from "../payload";
import { provide } from "../tensors";
import { ofHead, tablesOf } from "./measures";

let number = 0;

function put(values: number[], shape: number[]): Ref {
  const data = `measure${number++}`;
  provide(data, Float32Array.from(values));
  return { data, dtype: "f32", shape };
}

/** Two heads, two queries, two keys. The first head looks at its own place, the second always at the first key. */
function attention(change: Partial<Attention> = {}, effective = [1, 1, 1, 1]): Attention {
  const statistics = {
    received: put([1, 1, 2, 0], [2, 2]),
    baseline: put([1, 1], [2]),
    largest: put([1, 1, 0.8, 0.6], [2, 2]),
    effective: put(effective, [2, 2]),
    focus: put([0, 1, 0, 0], [2, 2]),
    spread: put([0, 0, 0, 0], [2, 2]),
    sink: put([1, 0, 1, 1], [2, 2]),
  };
  return { heads: 2, queries: 2, keys: 2, rows: null, statistics, ...change } as Attention;
}

test("a head has its own rows", async () => {
  const second = ofHead(await tablesOf(attention()), 1);
  expect([...second.received]).toEqual([2, 0]);
  expect([...second.focus]).toEqual([0, 0]);
});

test("the mean of heads has their mean of what is received, and the spread of both together", async () => {
  const mean = ofHead(await tablesOf(attention()), "mean");
  expect([...mean.received]).toEqual([1.5, 0.5]);
  expect([...mean.focus]).toEqual([0, 0.5]);
  // at the second query one head stands on key 0 and one on key 1: the deviation of 0 and 1 is 1/2
  expect([...mean.spread]).toEqual([0, 0.5]);
});

test("a query that reads nothing has no focus, and the mean is of the heads that do", async () => {
  const tables = await tablesOf(attention({}, [1, 0, 1, 1]));
  expect([...ofHead(tables, 0).focus]).toEqual([0, NaN]);
  expect([...ofHead(tables, "mean").focus]).toEqual([0, 0]);
});

test("where only some queries were recorded the others are unknown", async () => {
  const tables = await tablesOf(attention({ queries: 3, rows: [0, 2] }));
  expect([...ofHead(tables, 0).largest]).toEqual([1, NaN, 1]);
});
