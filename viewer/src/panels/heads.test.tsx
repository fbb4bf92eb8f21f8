// @vitest-environment jsdom
import { render } from "preact";
import { act } from "preact/test-utils";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { actions } from "../actions";
import { matrix } from "../heads/order";
import { MOST_PINS } from "../heads/pins";
import { inSight, MARGIN } from "../heads/window";
import type { Attention } from "../payload";
import * as store from "../store";
import { invent } from "../testing/invent";
import { Heads } from "./heads";

let page: HTMLElement;

beforeEach(() => {
  vi.spyOn(HTMLCanvasElement.prototype, "getContext").mockReturnValue(null);
  [store.pinned.value, store.headsFilter.value, store.headsOrder.value, store.headsView.value] = [[], null, null, "pictures"];
  [store.example.value, store.attention.value, store.head.value, store.frame.value] = [0, "decoder.1.cross", 2, null];
  [store.language.value, store.compare.value] = ["en", "a"];
  document.body.textContent = "";
  page = document.body.appendChild(document.createElement("div"));
  store.payload.value = invent();
  act(() => render(<Heads />, page));
});

afterEach(() => render(null, page));

function cells(): HTMLElement[] {
  return [...page.querySelectorAll<HTMLElement>("[role=gridcell]")];
}

function cell(label: string): HTMLElement {
  return cells().find((each) => each.getAttribute("aria-label")!.startsWith(label))!;
}

function run(id: string): void {
  act(() => actions().find((each) => each.id === id)!.run());
}

async function press(key: string): Promise<void> {
  await act(async () => {
    document.activeElement!.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));
    await new Promise((done) => setTimeout(done, 40));
  });
}

it("there is a cell for every head of every layer and for the mean of each", () => {
  expect(cells()).toHaveLength(2 * 5);
  expect(cell("layer 1, mean of heads")).toBeDefined();
  expect(page.querySelector("[role=grid]")!.getAttribute("aria-rowcount")).toBe("3");
});

it("a cell says layer, head and statistic", () => {
  act(() => void (store.headsView.value = "entropy"));
  const value = store.layers.value[1]!.summary.entropy[3]!;
  expect(cell("layer 1, head 3").getAttribute("aria-label")).toBe(`layer 1, head 3, entropy ${Number(value.toPrecision(3))}`);
});

it("the selected head is marked, a click selects another, and pointing at it lights its box", () => {
  expect(cells().filter((each) => each.getAttribute("aria-selected") === "true")).toEqual([cell("layer 1, head 2")]);
  act(() => cell("layer 0, head 1").click());
  expect([store.attention.value, store.head.value]).toEqual(["decoder.0.cross", 1]);
  act(() => void cell("layer 0, head 1").dispatchEvent(new Event("pointerenter")));
  expect(store.lit.value).toBe("decoder.0.cross");
  act(() => void cell("layer 0, head 1").dispatchEvent(new Event("pointerleave")));
  expect(store.lit.value).toBeNull();
});

it("Tab reaches one cell, arrows the others, Enter selects", async () => {
  expect(cells().filter((each) => each.tabIndex === 0)).toEqual([cell("layer 1, head 2")]);
  act(() => cell("layer 1, head 2").focus());
  await press("ArrowUp");
  await press("ArrowRight");
  expect(document.activeElement).toBe(cell("layer 0, head 3"));
  expect(store.head.value).toBe(2);
  await press("Enter");
  expect([store.attention.value, store.head.value]).toEqual(["decoder.0.cross", 3]);
});

it("sorted, the lowest comes first and the means are gone", () => {
  act(() => void (store.headsOrder.value = { statistic: "entropy", rising: true }));
  const values = store.layers.value.flatMap((each) => each.summary.entropy as number[]);
  expect(cells()).toHaveLength(8);
  expect(cells()[0]!.getAttribute("aria-label")).toContain(`entropy ${Number(Math.min(...values).toPrecision(3))}`);
});

it("the keys go through statistics and orders and come back", () => {
  const seen = Array.from({ length: 5 }, () => (run("heads.view"), store.headsView.value));
  expect(seen).toEqual(["entropy", "sink", "distance", "diagonality", "pictures"]);
  run("heads.order");
  expect(store.headsOrder.value).toEqual({ statistic: "entropy", rising: true });
  for (let round = 0; round < 8; round += 1) run("heads.order");
  expect(store.headsOrder.value).toBeNull();
});

it("a filter says how many heads pass and makes the others faint", () => {
  const values = store.layers.value.flatMap((each) => each.summary.entropy as number[]);
  const bound = [...values].sort((left, right) => left - right)[2]!;
  act(() => void (store.headsFilter.value = { statistic: "entropy", bound: "most", value: bound }));
  expect(page.textContent).toContain("Heads that pass the filter: 3 of 8.");
  expect(page.querySelectorAll(".faint")).toHaveLength(5);
  expect(page.querySelector(".faint")!.getAttribute("aria-label")).toContain("left out by the filter");
});

it("keys go through the filters, move the bound within the heads there are, and come back to all", () => {
  run("heads.raise");
  expect(store.headsFilter.value).toBeNull();
  run("heads.filter");
  const values = store.layers.value.flatMap((each) => each.summary.entropy as number[]);
  const [low, high] = [Math.min(...values), Math.max(...values)];
  expect(store.headsFilter.value).toEqual({ statistic: "entropy", bound: "least", value: (low + high) / 2 });
  run("heads.raise");
  expect(store.headsFilter.value!.value).toBeCloseTo((low + high) / 2 + (high - low) / 20);
  for (let round = 0; round < 20; round += 1) run("heads.raise");
  expect(store.headsFilter.value!.value).toBeCloseTo(high);
  for (let round = 0; round < 30; round += 1) run("heads.lower");
  expect(store.headsFilter.value!.value).toBeCloseTo(low);
  for (let round = 0; round < 7; round += 1) run("heads.filter");
  expect(store.headsFilter.value).toMatchObject({ statistic: "diagonality", bound: "most" });
  run("heads.filter");
  expect(store.headsFilter.value).toBeNull();
});

it("heads are measured against gold links where there are some, and sorted by their error", () => {
  const errors: Record<string, number[]> = { "decoder.0.cross": [0.5, 1, 0.75, 0.25], "decoder.1.cross": [0.6, 0, 0.3, 0.9] };
  const payload = invent();
  payload.runs[0]!.examples[0]!.attentions.forEach((each) => (each.summary.alignment = errors[each.id] ?? each.summary.alignment));
  act(() => void ([store.payload.value, store.headsView.value] = [payload, "alignment"]));
  act(() => void (store.headsOrder.value = { statistic: "alignment", rising: true }));
  expect(cells()[0]!.getAttribute("aria-label")).toBe("L1 H1: layer 1, head 1, alignment error 0");
  expect(cells().at(-1)!.getAttribute("aria-label")).toBe("L0 H1: layer 0, head 1, alignment error 1");
  expect(page.textContent).toContain("alignment error rate (AER)");
  const offered = [...page.querySelectorAll("select")[0]!.options].map((each) => each.value);
  expect(offered).toEqual(["pictures", "entropy", "sink", "distance", "diagonality", "alignment"]);
});

it("without gold links no alignment error is offered, and one that a link asks for is said to be unknown", () => {
  const offered = () => [...page.querySelectorAll("select")[0]!.options].map((each) => each.value);
  expect(offered()).not.toContain("alignment");
  act(() => void (store.headsView.value = "alignment"));
  expect(offered()).toContain("alignment");
  expect(page.textContent).toContain("their alignment error was not recorded");
});

it("a key unpins all heads", () => {
  run("heads.pin");
  expect(store.pinned.value).toHaveLength(1);
  run("heads.unpin");
  expect(store.pinned.value).toEqual([]);
});

it("a filter chosen from the list starts in the middle", () => {
  const select = page.querySelectorAll("select")[2]!;
  select.value = "sink least";
  act(() => void select.dispatchEvent(new Event("change", { bubbles: true })));
  const values = store.layers.value.flatMap((each) => each.summary.sink as number[]);
  expect(store.headsFilter.value!.value).toBeCloseTo((Math.min(...values) + Math.max(...values)) / 2);
  expect(page.querySelector("input[type=range]")).not.toBeNull();
});

it("a pinned head becomes a larger picture with words, and can be unpinned", async () => {
  run("heads.pin");
  await act(async () => void (await new Promise((done) => setTimeout(done))));
  expect(store.pinned.value).toEqual([{ attention: "decoder.1.cross", head: 2 }]);
  expect(page.querySelector(".heads-pins canvas")!.getAttribute("aria-label")).toMatch(/^layer 1, head 2, entropy/);
  expect(page.querySelector(".heads-pins")!.textContent).toMatch(/One scale for all: 0 to 0\.\d+/);
  expect(cell("layer 1, head 2").getAttribute("aria-label")).toContain("pinned");
  act(() => page.querySelector<HTMLButtonElement>(".heads-unpin")!.click());
  expect(store.pinned.value).toEqual([]);
  expect(page.querySelector(".heads-pins")).toBeNull();
});

it("there is room for so many pins, and the panel says when it is full", () => {
  const all = store.currentExample.value.attentions.flatMap((each) => [0, 1, 2, 3].map((head) => ({ attention: each.id, head })));
  act(() => void (store.pinned.value = all.filter((pin) => pin.attention !== "decoder.1.cross").slice(0, MOST_PINS)));
  run("heads.pin");
  expect(store.pinned.value).toHaveLength(MOST_PINS);
  expect(page.textContent).toContain("12 heads are pinned; unpin one first.");
});

it("pins that this example does not have are passed over", () => {
  act(() => void (store.pinned.value = [{ attention: "nobody", head: 0 }, { attention: "decoder.1.cross", head: 99 }]));
  expect(page.querySelector(".heads-pins")).toBeNull();
});

it("at a moment of training the statistics are those of that moment", () => {
  const moment = store.run.value.training[0]!;
  act(() => void ([store.frame.value, store.headsView.value] = [0, "entropy"]));
  const value = moment.summary["decoder.1.cross"]!.entropy[0]!;
  expect(cell("layer 1, head 0").getAttribute("aria-label")).toContain(`entropy ${Number(value.toPrecision(3))}`);
});

it("the finding names the lowest and the highest", () => {
  const label = page.querySelector(".heads-canvas")!.getAttribute("aria-label")!;
  expect(label).toMatch(/^Heads: 8, layers: 2\. Lowest entropy: layer \d, head \d \([\d.]+\); highest: layer \d, head \d \([\d.]+\)\.$/);
});

it("what was not recorded is said, not drawn as nothing", () => {
  const payload = invent();
  payload.runs[0]!.examples[0]!.attentions.forEach((each) => (each.summary.entropy = each.summary.entropy.map(() => null)));
  act(() => void ([store.payload.value, store.headsView.value] = [payload, "entropy"]));
  expect(page.textContent).toContain("their entropy was not recorded");
  expect(page.querySelectorAll(".unknown")).toHaveLength(10);
});

it("no more cells are made than are in sight, however many heads there are", () => {
  const layers = Array.from({ length: 96 }, (_, layer) => ({ id: String(layer), layer, heads: 128 }) as Attention);
  const arranged = matrix(layers, null, () => 0);
  const seen = inSight({ arranged, size: 26 }, { left: 100, top: 300, width: 340 + MARGIN.left, height: 300 + MARGIN.top });
  expect(arranged.cells).toHaveLength(96 * 129);
  expect(seen.cells.length).toBeLessThan(15 * 14);
  expect(seen.cells[0]).toMatchObject({ row: 11, column: 3 });
});

it("Tab reaches the selected head even where it is out of sight", () => {
  store.payload.value = invent({ layers: 2, heads: 64 });
  act(() => void ([store.attention.value, store.head.value] = ["decoder.1.cross", "mean"]));
  expect(cells().length).toBeLessThan(2 * 65);
  expect(cells().filter((each) => each.tabIndex === 0).map((each) => each.getAttribute("aria-selected"))).toEqual(["true"]);
});

it("the focus stays with its head when the order changes", () => {
  act(() => cell("layer 1, head 2").focus());
  act(() => void (store.headsOrder.value = { statistic: "sink", rising: false }));
  expect(document.activeElement!.getAttribute("aria-label")).toMatch(/^L1 H2: layer 1, head 2,/);
});
