import { beforeEach, describe, expect, it, vi } from "vitest";
import { allowed, grid, gridOf, rowOf, strongest, swiped, trouble } from "./cells";
import { DenseGrid } from "./grids/dense";
import { nothing } from "./grids/sparse";
import * as store from "./store";
import { invent } from "./testing/invent";

const come = () => new Promise<void>((done) => setTimeout(done, 20));
const attention = (id: string) => store.payload.value.runs[0]!.examples[0]!.attentions.find((each) => each.id === id)!;

const made = invent({ runs: 2 });

beforeEach(() => {
  store.payload.value = made;
  [store.compare.value, store.attention.value, store.head.value] = ["a", "", "mean"];
  [store.quantity.value, store.frame.value, store.hideSpecial.value] = ["weights", null, false];
});

describe("the matrix in sight", () => {
  it("is the last attention to another axis, the mean of its heads", async () => {
    await come();
    expect([grid.value!.rows, grid.value!.columns]).toEqual([7, 9]);
    const sum = rowOf(grid.value!, 0)!.reduce((left, right) => left + right, 0);
    expect(sum).toBeCloseTo(1, 5);
    expect(strongest(grid.value!, 0, 1)[0]!.key).toBe(0);
  });
  it("follows the store and never shows an older choice after a newer one", async () => {
    store.attention.value = "encoder.0.self";
    store.attention.value = "decoder.0.self";
    await come();
    expect([grid.value!.rows, grid.value!.columns]).toEqual([7, 7]);
    expect(swiped.value).toBeNull();
  });
  it("is A minus B where that is asked for, unknown where B has no such token", async () => {
    store.compare.value = "difference";
    await come();
    expect(grid.value!.signed).toBe(true);
    expect([...Array(7).keys()].map((row) => grid.value!.rowKnown(row))).toEqual([true, false, true, false, true, true, true]);
    const first = store.payload.value.runs.map((run, number) => gridOf(number, 0, run.examples[0]!.attentions.at(-1)!, "mean", "weights", null));
    const [a, b] = await Promise.all(first);
    expect(grid.value!.value(0, 2)!.value).toBeCloseTo(a!.value(0, 2)!.value - b!.value(0, 2)!.value, 6);
  });
  it("has B beside it while the two are swiped", async () => {
    store.compare.value = "swipe";
    await come();
    expect([grid.value!.signed, swiped.value!.rows]).toEqual([false, 7]);
  });
  it("is that of a moment of training, the mean taken from the heads' bytes", async () => {
    store.frame.value = 0;
    await come();
    expect(grid.value!.value(3, 3)!.value).toBeCloseTo(1 / 9, 2);
  });
  it("says why there is none", async () => {
    const broken = invent();
    broken.runs[0]!.examples[0]!.attentions.at(-1)!.full["mean"] = { data: "missing", dtype: "u8", shape: [7, 9] };
    vi.stubGlobal("document", { getElementById: () => null });
    store.payload.value = broken;
    await come();
    expect(grid.value).toBeNull();
    expect(trouble.value).toBe("the page has no tensor missing");
    vi.unstubAllGlobals();
  });
});

describe("a matrix that is kept in part", () => {
  it("gives the strongest keys of each query", async () => {
    store.payload.value = invent({ partial: true });
    const found = await gridOf(0, 0, attention("decoder.1.cross"), 0, "weights", null);
    expect(found.extent).toBe("top");
    expect(strongest(found, 3, 5).length).toBe(3);
    expect(strongest(found, 3, 5)[0]!.key).toBe(1);
  });
  it("gives scores with their sign and other quantities where they were kept", async () => {
    const scores = await gridOf(0, 0, attention("decoder.1.cross"), 0, "scores", null);
    expect(scores.signed).toBe(true);
    expect(scores.value(0, 1)!.value).toBeLessThan(0);
    expect((await gridOf(0, 0, attention("decoder.0.self"), 0, "flow", null)).extent).toBe("nothing");
  });
  it("is unpacked once", () => {
    const once = gridOf(0, 0, attention("decoder.1.cross"), 1, "weights", null);
    expect(gridOf(0, 0, attention("decoder.1.cross"), 1, "weights", null)).toBe(once);
  });
  it("puts recorded rows where they belong", async () => {
    const some = { ...attention("decoder.1.cross"), id: "some", rows: [2, 5], queries: 7 };
    const bytes = new Uint8Array(18).fill(255);
    const { provide } = await import("./tensors");
    provide("two-rows", bytes);
    const found = await gridOf(0, 0, { ...some, full: { mean: { data: "two-rows", dtype: "u8", shape: [2, 9] } }, exact: {} }, "mean", "weights", null);
    expect([found.value(2, 0)?.value, found.value(3, 0), found.value(5, 8)?.value]).toEqual([1, null, 1]);
  });
});

describe("the strongest keys", () => {
  const small = new DenseGrid({ rows: 1, columns: 4, bytes: new Uint8Array(4), exact: Float32Array.from([0.1, 0.4, 0.2, 0.3]) });
  it("come in falling order", () => {
    expect(strongest(small, 0, 3).map((each) => each.key)).toEqual([1, 3, 2]);
    expect(strongest(small, 9, 3)).toEqual([]);
    expect(strongest(nothing(1, 4), 0, 3)).toEqual([]);
  });
  it("leave special tokens out where they are hidden", async () => {
    await come();
    store.hideSpecial.value = true;
    expect(strongest(grid.value!, 6, 9).some((each) => each.key === 8)).toBe(false);
  });
});

describe("a mask", () => {
  it("lets a causal query see up to its own place, counted from the end where there are more keys", () => {
    const causal = { ...attention("decoder.0.self"), queries: 2, keys: 4 };
    expect([0, 1, 2, 3].map((key) => allowed(causal, 0, key))).toEqual([true, true, true, false]);
    expect(allowed(causal, 1, 3)).toBe(true);
    expect(allowed({ ...causal, mask: "full" }, 0, 3)).toBe(true);
  });
  it("is as it was given, once the matrix is there", async () => {
    const { provide } = await import("./tensors");
    provide("given", Uint8Array.from([1, 0]));
    const given = { ...attention("decoder.0.self"), id: "given", mask: "given" as const, allowed: { data: "given", dtype: "u8" as const, shape: [1, 2] }, queries: 1, keys: 2, full: {}, top: null, thumbnails: null };
    expect(allowed(given, 0, 1)).toBe(true);
    await gridOf(0, 0, given, "mean", "weights", null);
    expect([allowed(given, 0, 0), allowed(given, 0, 1)]).toEqual([true, false]);
  });
});
