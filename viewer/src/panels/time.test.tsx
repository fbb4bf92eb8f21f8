// @vitest-environment jsdom
import { render } from "preact";
import { act } from "preact/test-utils";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { scene } from "../curves/scene";
import * as store from "../store";
import { invent } from "../testing/invent";
import { Time } from "./time";

const page = document.createElement("main");

/** Do something, and let what it sets off come to rest: drawing, loading, and drawing what was loaded. */
async function after(deed: () => void): Promise<void> {
  await act(deed);
  for (let round = 0; round < 3; round += 1) await act(() => new Promise((resolve) => setTimeout(resolve, 1)));
}

async function open(options: Parameters<typeof invent>[0] = {}): Promise<void> {
  store.payload.value = invent(options);
  await after(() => render(<Time />, page));
}

beforeEach(() => {
  // jsdom has no canvas; the pictures are tested in draw.test.ts
  vi.spyOn(HTMLCanvasElement.prototype, "getContext").mockReturnValue(null);
  document.body.replaceChildren(page);
});

afterEach(async () => {
  await after(() => render(null, page));
  vi.restoreAllMocks();
  [store.query.value, store.key.value, store.range.value, store.frame.value, store.lit.value] = [null, null, null, null, null];
  [store.multiples.value, store.compare.value, store.head.value, store.attention.value] = [false, "a", "mean", ""];
  store.language.value = "en";
});

function slider(name: string): HTMLElement {
  return page.querySelector<HTMLElement>(`[role=slider][aria-labelledby="curve-${name}"]`)!;
}

test("five curves stand with their definitions, and each picture says what it shows", async () => {
  await open();
  expect([...page.querySelectorAll("h3")].map((each) => each.textContent)).toEqual([
    "Received",
    "Sharpness: largest weight",
    "Sharpness: effective keys",
    "Focus path",
    "Sink and special mass",
  ]);
  const pictures = [...page.querySelectorAll("canvas")];
  expect(pictures).toHaveLength(5);
  expect(pictures.map((each) => each.getAttribute("role"))).toEqual(Array(5).fill("img"));
  expect(pictures[0]!.getAttribute("aria-label")).toMatch(/^Most received: “.+”, [\d.]+ times its even share/);
  expect(page.textContent).toContain("divided by what even attention would give it");
  expect(page.textContent).toContain("lowest to highest of 2 layers");
});

test("a key on a curve moves the crosshair, and the value there is read out", async () => {
  await open();
  const curve = slider("largest");
  act(() => void curve.dispatchEvent(new KeyboardEvent("keydown", { key: "End", bubbles: true })));
  expect(store.query.value).toBe(6);
  expect(slider("largest").getAttribute("aria-valuenow")).toBe("6");
  expect(slider("largest").getAttribute("aria-valuetext")).toMatch(/^“<eos>”: largest weight 0\.\d+$/);
});

test("brushed rows are named and can be let go by a button", async () => {
  await open();
  await after(() => (store.query.value = 2));
  act(() => void slider("sink").dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowRight", shiftKey: true, bubbles: true })));
  expect(store.range.value).toEqual([2, 4]);
  expect(page.textContent).toContain("Queries 3 to 4 are selected.");
  act(() => page.querySelector<HTMLButtonElement>(".time-range button")!.click());
  expect(store.range.value).toBeNull();
});

test("a click puts the crosshair, a drag brushes, a double click lets go, and hovering lights a layer and reads its values", async () => {
  // 46 and 12 pixels of margin, and 100 for each of seven queries
  vi.spyOn(HTMLElement.prototype, "clientWidth", "get").mockReturnValue(46 + 700 + 12);
  await open();
  const point = (kind: string, x: number) =>
    after(() => slider("largest").dispatchEvent(new PointerEvent(kind, { clientX: 46 + x, clientY: 20, button: 0, bubbles: true })));
  await point("pointerdown", 250);
  await point("pointerup", 252);
  expect([store.query.value, store.range.value]).toEqual([2, null]);
  await point("pointermove", 410);
  expect(["decoder.0.cross", "decoder.1.cross"]).toContain(store.lit.value);
  expect(page.querySelector(".curve-tip")!.textContent).toMatch(/^杰瑞 place 5 of 7.*largest weight 0\.\d+/);
  await point("pointerdown", 150);
  await point("pointermove", 390);
  await point("pointerup", 390);
  expect([store.query.value, store.range.value]).toEqual([2, [1, 4]]);
  expect(page.querySelector<HTMLElement>('[aria-labelledby="curve-largest"] .curve-brush')!.style).toMatchObject({ left: "146px", width: "300px" });
  await point("dblclick", 300);
  await point("pointerleave", 300);
  expect([store.range.value, store.lit.value]).toEqual([null, null]);
});

test("heads stand by themselves where that is asked for, and arrows go from head to head", async () => {
  await open();
  act(() => [...page.querySelectorAll("button")].find((each) => each.textContent === "Each head by itself")!.click());
  expect(page.querySelectorAll("canvas")).toHaveLength(5);
  expect(page.querySelector("canvas")!.getAttribute("aria-label")).toMatch(/^Received for each of 4 heads; highest peak: head \d/);
  const grid = page.querySelector<HTMLElement>('[aria-labelledby="multiples-received"]')!;
  act(() => void grid.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowRight", bubbles: true })));
  expect(store.head.value).toBe(0);
  act(() => void grid.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowRight", bubbles: true })));
  expect(store.head.value).toBe(1);
});

test("two runs are two curves: B at A's tokens, unknown where it has no partner", async () => {
  await open({ runs: 2 });
  expect([...page.querySelectorAll(".time-legend li")].map((each) => each.textContent)).toEqual(["run A", "run B"]);
  const found = (await scene())!;
  expect(found.letters).toEqual(["A", "B"]);
  // A wrote 汤姆 满 屋子 追逐 杰瑞 。 <eos>, B 汤姆 在 屋子 追 杰瑞 。 <eos>
  expect([...found.other!.largest].map(Number.isNaN)).toEqual([false, true, false, true, false, false, false]);
  await after(() => (store.compare.value = "b"));
  expect((await scene())!.letters).toEqual(["B", "A"]);
});

test("a moment of training has curves of its own, and says that they are about", async () => {
  await open();
  await after(() => (store.frame.value = 0));
  expect(page.textContent).toContain("At training step 0");
  expect(page.textContent).toContain("At training step 0: from weights kept in 256 steps, so about.");
  const found = (await scene())!;
  // at first all weights are even: every key receives its share, over all nine keys
  expect(found.main.received[4]).toBeCloseTo(1, 1);
  expect(found.main.effective[0]).toBeCloseTo(9, 1);
  await after(() => (store.attention.value = "encoder.0.self"));
  expect(page.textContent).toContain("The film has no weights of this attention");
});

test("everything is said in Chinese as well", async () => {
  store.language.value = "zh";
  await open();
  expect(page.querySelector("h2")!.textContent).toBe("时间：强弱如何");
  expect(page.querySelector("canvas")!.getAttribute("aria-label")).toMatch(/^所受最多：“/);
});

test("an example without attention says so", async () => {
  const made = invent();
  made.runs[0]!.examples[0]!.attentions = [];
  store.payload.value = made;
  await after(() => render(<Time />, page));
  expect(page.textContent).toContain("There is no attention in this example.");
});
