import { describe, expect, it } from "vitest";
import { DenseGrid } from "../grids/dense";
import { prepareMask } from "../mask";
import { plan } from "../paint";
import type { Attention, Axis } from "../payload";
import { provide } from "../tensors";
import { type Edge, named, thickness, tickStep, turned } from "./axis";
import { hides, shownOf } from "./hidden";
import { layout } from "./layout";
import { perPixel } from "./margins";

const measure = (text: string) => text.length * 6;
const text = (...labels: string[]): Axis => ({ kind: "text", length: labels.length, labels, pieces: labels, text: "", spans: labels.map(() => null), special: [], lang: null });
const edge = (axis: Axis, pixels: number, side: Edge["side"]): Edge => ({ axis, first: 0, end: axis.length, pixels, side });

describe("names at the edges", () => {
  it("are written only where a row is ten pixels tall", () => {
    const axis: Axis = { kind: "index", length: 10, labels: null };
    expect([named(edge(axis, 100, "left")), named(edge(axis, 99, "left"))]).toEqual([true, false]);
  });
  it("are turned above columns too narrow for them", () => {
    const axis = text("a", "a long name");
    expect([turned(edge(axis, 300, "top"), measure), turned(edge(axis, 60, "top"), measure)]).toEqual([false, true]);
    expect(thickness(edge(axis, 60, "top"), measure)).toBeGreaterThan(thickness(edge(axis, 300, "top"), measure));
  });
  it("take no more room than they may", () => {
    expect(thickness(edge(text("x".repeat(10_000)), 40, "left"), measure)).toBe(142);
  });
  it("give way to ticks at 1, 2 or 5 times a power of ten", () => {
    expect([tickStep(1, 40), tickStep(0.15, 44), tickStep(8, 44), tickStep(60, 44)]).toEqual([50, 500, 10, 1]);
  });
  it("leave room for the name of the curve below, however short they are", () => {
    const short = text("a", "b");
    const found = layout({ queries: short, keys: short, window: [0, 0, 2, 2], transposed: false, width: 800, height: 500, measure });
    expect(found.left).toBe(48);
  });
  it("leave the matrix what is left, and cells of a small one no larger than needed", () => {
    const axis = text("a", "b");
    const found = layout({ queries: axis, keys: text("a", "b", "c"), window: [0, 0, 2, 3], transposed: false, width: 800, height: 500, measure });
    expect([found.width, found.height]).toEqual([252, 104]);
    const turnedRound = layout({ queries: axis, keys: text("a", "b", "c"), window: [0, 0, 2, 3], transposed: true, width: 800, height: 500, measure });
    expect([turnedRound.rows.end, turnedRound.columns.end]).toEqual([3, 2]);
  });
});

describe("curves at the edges", () => {
  it("keep the largest value under each pixel", () => {
    const axis: Axis = { kind: "index", length: 8, labels: null };
    expect([...perPixel(Float32Array.from([0, 5, 1, 1, 0, 0, 9, 0]), edge(axis, 4, "top"))]).toEqual([5, 1, 0, 9]);
    expect([...perPixel(Float32Array.from([1, 2]), { ...edge(axis, 4, "top"), end: 2 })]).toEqual([1, 1, 2, 2]);
  });
});

describe("hidden cells", () => {
  const attention = { mask: "causal", queries: 4, keys: 4 } as Attention;
  const grid = new DenseGrid({ rows: 4, columns: 4, bytes: new Uint8Array(16) });

  it("are those that a causal query may not see", () => {
    const shown = shownOf(attention, grid)(plan(grid, [0, 0, 4, 4], 40, 40))!;
    expect([...shown]).toEqual([1, 0, 0, 0, 1, 1, 0, 0, 1, 1, 1, 0, 1, 1, 1, 1]);
  });
  it("hide a block only where all of its cells are hidden", () => {
    const shown = shownOf(attention, grid)(plan(grid, [0, 0, 4, 4], 2, 2))!;
    expect([...shown]).toEqual([1, 0, 1, 1]);
    expect([...shownOf(attention, grid)(plan(grid, [1, 1, 4, 4], 40, 40))!]).toEqual([1, 0, 0, 1, 1, 0, 1, 1, 1]);
  });
  it("are those of a mask that was given, a block as soon as one of its cells may be seen", async () => {
    provide("edges-mask", Uint8Array.from([0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]));
    const given = { mask: "given", allowed: { data: "edges-mask", dtype: "u8", shape: [4, 4] }, queries: 4, keys: 4 } as Attention;
    await prepareMask(given);
    const shown = shownOf(given, grid);
    expect([...shown(plan(grid, [0, 1, 2, 4], 40, 40))!]).toEqual([0, 1, 0, 0, 0, 0]);
    expect([...shown(plan(grid, [0, 0, 4, 4], 2, 2))!]).toEqual([0, 1, 0, 1]);
  });
  it("are also the rows that were not recorded", () => {
    const some = new DenseGrid({ rows: 2, columns: 2, bytes: new Uint8Array(4), recorded: Uint8Array.from([0, 1]) });
    const full = { mask: "full", queries: 2, keys: 2 } as Attention;
    expect([...shownOf(full, some)(plan(some, [0, 0, 2, 2], 20, 20))!]).toEqual([0, 0, 1, 1]);
    expect([hides(full, some), hides(full, grid), hides(attention, grid)]).toEqual([true, false, true]);
    expect(shownOf(full, grid)(plan(grid, [0, 0, 4, 4], 40, 40))).toBeNull();
  });
});
