import { expect, test } from "vitest";
import type { Beams } from "../payload";
import { bestPath, count, firstShown, grown, neighbour, ROWS, written } from "./tree";

/**
 * Two rows, four steps:  a - c - e.      (e ends: the answer is a c e)
 *                        b   d - f - g   (b dies at once; d goes on from a)
 */
const beams: Beams = {
  parents: [
    [0, 0],
    [0, 0],
    [0, 1],
    [-1, 1],
  ],
  tokens: [
    ["a", "b"],
    ["c", "d"],
    ["e", "f"],
    ["", "g"],
  ],
  scores: [
    [-1, -2],
    [-1.5, -2.5],
    [-2, -3],
    [NaN, -4],
  ],
  ended: [
    [false, false],
    [false, false],
    [true, false],
    [false, false],
  ],
  best: [2, 0],
  attention: null,
  weights: null,
};

const statuses = (now: number) => grown(beams, now).map((step) => step.map((node) => `${node.token} ${node.status}`));

test("the tree grows to the step that is shown, and a branch is given up once nobody goes on with it", () => {
  expect(statuses(0)).toEqual([["a best", "b alive"]]);
  expect(statuses(1)).toEqual([
    ["a best", "b pruned"],
    ["c best", "d alive"],
  ]);
});

test("a row that is empty is no node, and one that finished is not given up", () => {
  const nodes = grown(beams, 3);
  expect(nodes[3]!.map((node) => node.token)).toEqual(["g"]);
  expect(nodes[2]![0]).toMatchObject({ token: "e", ended: true, status: "best" });
  expect(count(nodes)).toEqual({ alive: 1, ended: 1, pruned: 1 });
  const another = { ...beams, best: [3, 1] as [number, number] };
  expect(grown(another, 3)[2]![0]!.status).toBe("ended");
  expect(grown(another, 3)[1]![0]!.status).toBe("alive");
});

test("the way to the answer, and what a branch had written", () => {
  expect(bestPath(beams)).toEqual([0, 0, 0]);
  expect(written(beams, 3, 1)).toEqual(["a", "d", "f", "g"]);
});

test("keys lead to the parent, to the best child, and along a step", () => {
  const nodes = grown(beams, 3);
  const to = (step: number, row: number, key: string) => neighbour(nodes, { step, row }, key)?.token ?? null;
  expect([to(1, 1, "ArrowLeft"), to(0, 0, "ArrowRight"), to(0, 0, "ArrowDown"), to(0, 1, "ArrowUp")]).toEqual(["a", "c", "b", "a"]);
  expect([to(0, 1, "ArrowRight"), to(0, 0, "ArrowLeft"), to(0, 0, "ArrowUp"), to(0, 0, "x")]).toEqual([null, null, null, null]);
});

test("a search of 200 steps and 12 rows shows a window before the current step", () => {
  const parents = Array.from({ length: 200 }, () => Array.from({ length: 12 }, () => 0));
  const first = firstShown({ ...beams, parents }, 150);
  expect(first).toBe(135);
  const wide = Array.from({ length: 200 }, () => Array.from({ length: 500 }, () => 0));
  expect((151 - firstShown({ ...beams, parents: wide }, 150)) * ROWS).toBeLessThanOrEqual(320);
});
