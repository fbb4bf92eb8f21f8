import { beforeEach, expect, test } from "vitest";
import { DenseGrid } from "../grids/dense";
import { attention, compare, hideSpecial, key, payload, quantity, query, scale } from "../store";
import { invent } from "../testing/invent";
import { called, quoted, readBy, reads } from "./finding";
import { columnLine, ends, peaks, reach, readingQuery, rowLine } from "./reading";
import { inSight, middle, strands } from "./strands";
import { strength } from "./strength";
import { keyAxis, queryAxis } from "../store";

/** 7 x 9, as the translation's: row 0 reads 0.6, 0.3, 0.1; row 4 reads all of key 2; the rest nothing. */
function matrix(): DenseGrid {
  const exact = new Float32Array(63);
  exact.set([0.5, 0.25, 0, 0, 0, 0, 0, 0, 0.125], 0);
  exact[4 * 9 + 2] = 1;
  return new DenseGrid({ rows: 7, columns: 9, bytes: new Uint8Array(63), exact });
}

beforeEach(() => {
  payload.value = invent({ runs: 2 });
  [attention.value, query.value, key.value] = ["decoder.1.cross", null, null];
  [hideSpecial.value, quantity.value, compare.value, scale.value] = [false, "weights", "a", "sqrt"];
});

test("the strongest places come in falling order, equal ones in the order of their places", () => {
  expect(peaks(rowLine(matrix(), 0), 4).map((peak) => [peak.place, peak.value])).toEqual([[0, 0.5], [1, 0.25], [8, 0.125], [2, 0]]);
  expect(peaks(columnLine(matrix(), 2), 1)).toEqual([{ place: 4, value: 1, exact: true }]);
});

test("special tokens that are hidden have no cell", () => {
  hideSpecial.value = true;
  expect(peaks(rowLine(matrix(), 0), 3).map((peak) => peak.place)).toEqual([0, 1, 2]);
});

test("a masked place is not one that was not looked at", () => {
  attention.value = "decoder.0.self";
  const line = rowLine(new DenseGrid({ rows: 7, columns: 7, bytes: new Uint8Array(49) }), 1);
  expect([line.masked(1), line.masked(2)]).toEqual([false, true]);
  expect([line.cell(1)?.value, line.cell(2)]).toEqual([0, null]);
});

test("of differences the largest either way come first, of scores the highest", () => {
  const exact = Float32Array.from({ length: 63 }, (_, at) => (at === 3 ? -0.9 : at === 5 ? 0.4 : 0));
  const grid = new DenseGrid({ rows: 7, columns: 9, bytes: new Uint8Array(63), exact, signed: true });
  compare.value = "difference";
  expect(peaks(rowLine(grid, 0), 2).map((peak) => peak.place)).toEqual([3, 5]);
  [compare.value, quantity.value] = ["a", "scores"];
  expect(peaks(rowLine(grid, 0), 2).map((peak) => peak.place)).toEqual([5, 0]);
  expect(reach(rowLine(grid, 0)).map((value) => Math.round(value * 10) / 10)).toEqual([-0.9, 0.4]);
});

test("scores that are all one still have two ends, weights begin at nothing", () => {
  expect(ends([0.25, 0.5])).toEqual([0, 0.5]);
  expect(ends([])).toEqual([0, 0]);
  quantity.value = "scores";
  expect(ends([-3])).toEqual([-4, -3]);
});

test("the finding names the query, its two strongest keys and their weights", () => {
  expect(reads(queryAxis.value!, 0, keyAxis.value!, rowLine(matrix(), 0))).toBe("“汤姆” reads mostly “Tom” 0.500, then “chases” 0.250");
  expect(readBy(keyAxis.value!, 2, queryAxis.value!, columnLine(matrix(), 2))).toBe("“Jerry” is read most by “杰瑞” 1.00");
  expect(reads(queryAxis.value!, 1, keyAxis.value!, rowLine(matrix(), 1))).toBe("“满” reads nothing.");
  expect(readBy(keyAxis.value!, 3, queryAxis.value!, columnLine(matrix(), 3))).toBe("“all” is read by nothing.");
});

test("without any choice the first query is read; with a key alone, none", () => {
  expect(readingQuery()).toBe(0);
  key.value = 3;
  expect(readingQuery()).toBe(null);
  query.value = 2;
  expect(readingQuery()).toBe(2);
});

test("strength is a share of the largest on the chosen scale", () => {
  expect(strength(0.25, 0, 1)).toBe(0.5);
  expect(strength(-0.25, 0, 1)).toBe(0.5);
  scale.value = "linear";
  expect(strength(0.25, 0, 0.5)).toBe(0.5);
  expect(strength(-2, -4, 0)).toBe(0.5);
  expect(strength(1, 0, 0)).toBe(0);
  scale.value = "log";
  expect(strength(1e-5, 0, 1)).toBe(0);
  expect(strength(Math.sqrt(1e-5), 0, 1)).toBeCloseTo(0.5, 12);
});

test("a query has at most so many lines, none for what it does not read, and more than half is outlined", () => {
  const drawn = strands(matrix(), [0, 4], 2);
  expect(drawn.map((each) => [each.query, each.key, each.hard])).toEqual([[0, 0, false], [0, 1, false], [4, 2, true]]);
  expect(drawn[0]!.strength).toBeCloseTo(Math.SQRT1_2, 6);
});

test("however many are asked for, the lines in sight stay within bounds", () => {
  const grid = new DenseGrid({ rows: 60, columns: 400, bytes: new Uint8Array(24000).fill(9) });
  attention.value = "encoder.0.self";
  expect(strands(grid, Array.from({ length: 60 }, (_, at) => at), 128).length).toBe(1200);
});

test("two sequences share one length, and only places whose middles are in sight are drawn", () => {
  expect([middle(0, 2, 100), middle(1, 2, 100)]).toEqual([25, 75]);
  expect(inSight(2, 100, 0, 100)).toEqual([0, 2]);
  expect(inSight(2, 100, 30, 100)).toEqual([1, 2]);
  expect(inSight(100, 1000, 95, 115)).toEqual([9, 12]);
  expect(inSight(3, 30, 40, 50)).toEqual([3, 3]);
});

test("blanks are made visible, nothing is its number, and Arabic is set apart in a sentence", () => {
  const axis = { kind: "index", length: 4, labels: [" ", "\n", "", "قط"] } as const;
  const names = { ...axis, labels: [...axis.labels] };
  expect([0, 1, 2, 3].map((place) => called(names, place))).toEqual(["␣", "⏎", "#3", "قط"]);
  expect(quoted(names, 3)).toBe("“\u2068قط\u2069”");
});

test("a query of which nothing is known says so, and why", () => {
  const recorded = new Uint8Array([1, 0, 1, 1, 1, 1, 1]);
  const grid = new DenseGrid({ rows: 7, columns: 9, bytes: new Uint8Array(63), recorded });
  expect(reads(queryAxis.value!, 1, keyAxis.value!, rowLine(grid, 1))).toBe("“满” was not recorded.");
  compare.value = "difference";
  expect(reads(queryAxis.value!, 1, keyAxis.value!, rowLine(grid, 1))).toBe("“满” has no counterpart in B.");
});
