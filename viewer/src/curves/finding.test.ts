import { beforeAll, expect, test } from "vitest";
import type { Attention, Axis } from "../payload";
import { language } from "../store";
import { endsOf, finding, headsFinding, pathOf } from "./finding";
import { ofHead, type Tables } from "./measures";
import { nearestLayer } from "./picture";
import { type Plot, PLOTS, told } from "./plots";
import { interpolated, type Scene } from "./scene";

beforeAll(() => (language.value = "en"));

function words(...labels: string[]): Axis {
  return { kind: "text", length: labels.length, labels, pieces: labels, text: "", spans: [], special: [], lang: null };
}

const tables: Tables = {
  heads: 2,
  received: Float32Array.of(0.5, 2.25, 0.25, 1, 1, 1),
  largest: Float32Array.of(0.9, 0.6, 0.5, 0.5),
  effective: Float32Array.of(1.2, 2.8, 3, 3),
  focus: Float32Array.of(2, 0.5, 1, 1),
  spread: Float32Array.of(0, 0.25, 1, 1),
  sink: Float32Array.of(0.3, 0.4, 0, 0),
};
const axes = { query: words("汤姆", "杰瑞"), key: words("Tom", "Jerry", "<eos>") };
const scene = { attention: { keys: 3, layer: 0 } as Attention, axes, tables, main: ofHead(tables, 0), layers: [] as Scene["layers"] } as Scene;
const [received, largest, effective, focus, sink] = PLOTS as [Plot, Plot, Plot, Plot, Plot];

test("each curve says what it shows, with the tokens' own names", () => {
  expect(finding(scene, received)).toBe("Most received: “Jerry”, 2.25 times its even share; least: “<eos>”, 0.25 times.");
  expect(finding(scene, largest)).toBe("Sharpest query: “汤姆”, largest weight 0.9; most diffuse: “杰瑞”, 0.6; mean 0.75.");
  expect(finding(scene, effective)).toBe("2 effective keys on average, from 1.2 (“汤姆”) to 2.8 (“杰瑞”), out of 3.");
  expect(finding(scene, focus)).toBe("The focus goes forward or stays in 0 of 1 steps, and back most at “杰瑞”, by 1.5 positions.");
  expect(finding(scene, sink)).toBe("35 % of the weight lies on special keys, most at “杰瑞”, 40 %.");
});

test("a focus that never goes back is said to move from its first key to its last", () => {
  const onward = { ...scene, main: { ...scene.main, focus: Float32Array.of(0.2, 1.9) } };
  expect(finding(onward, focus)).toBe("The focus never goes back: it moves from “Tom” to “<eos>”.");
});

test("a curve that is the same everywhere has neither a highest nor a lowest place", () => {
  const flat = { ...scene, main: { ...scene.main, received: Float32Array.of(1, 1, 1) } };
  expect(finding(flat, received)).toBe("The same everywhere: 1 times its even share.");
});

test("heads are compared by their means, and by their peaks in what is received", () => {
  expect(headsFinding(tables, sink)).toContain("highest mean: head 0, 0.35; lowest: head 1, 0.");
  expect(headsFinding(tables, received)).toContain("highest peak: head 0, 2.25 times the even share; lowest peak: head 1, 1.");
});

test("a value at a place is told in words, and an unknown one as such", () => {
  expect(told(scene, received, scene.main, 1)).toBe("2.25 times its even share");
  expect(told(scene, focus, scene.main, 1)).toBe("position 0.5 ± 0.25, near “Jerry”");
  expect(told(scene, sink, scene.main, 7)).toBe("not recorded");
  expect(finding({ ...scene, main: { ...scene.main, sink: Float32Array.of(NaN, NaN) } }, sink)).toBe("not recorded");
});

test("Arabic in a sentence is isolated, so that what stands around it keeps its place", () => {
  const right = { ...scene, axes: { ...axes, key: words("Tom", "العربية", "<eos>") } };
  expect(finding(right, received)).toContain("“\u2068العربية\u2069”, 2.25 times");
});

test("a label of ten thousand characters is not a sentence's whole text", () => {
  const long = { ...scene, axes: { ...axes, query: words("x".repeat(10000), "y") } };
  expect(finding(long, largest).length).toBeLessThan(200);
});

test("ends skip what is unknown, and a path counts half a key back as staying", () => {
  expect(endsOf([NaN, 3, 1, NaN, 2])).toEqual({ most: 1, least: 2, mean: 2 });
  expect(endsOf([NaN])).toBeNull();
  expect(pathOf([0, 2, 1.5, NaN, 0, 3])).toEqual({ steps: 4, forward: 3, at: 4, back: 1.5 });
});

test("the layer that is pointed at is the one with the nearest curve", () => {
  const layer = (id: string, value: number) => ({ attention: { id } as Attention, measures: { ...scene.main, sink: Float32Array.of(value, NaN) } });
  const two = { ...scene, layers: [layer("low", 0.1), layer("high", 0.9)] };
  const near = (value: number, place = 0) => nearestLayer(two, sink, place, (each) => Math.abs(each - value))?.attention.id ?? null;
  expect([near(0.2), near(0.8), near(0.5, 1)]).toEqual(["low", "high", null]);
  expect(nearestLayer(scene, sink, 0, () => 0)).toBeNull();
});

test("a position in the other run lies between the partners of its neighbours", () => {
  // B has one more key at its beginning, and one in the middle
  const [from, to] = [[1, 2, 4], [0, 1, 2]];
  expect([1, 1.5, 3, 4, 0, 5, NaN].map((value) => interpolated(value, from, to))).toEqual([0, 0.5, 1.5, 2, -1, 3, NaN]);
});
