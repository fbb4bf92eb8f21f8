// @vitest-environment jsdom
import { render } from "preact";
import { act } from "preact/test-utils";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { actions } from "../actions";
import * as store from "../store";
import { invent } from "../testing/invent";
import { Network, shifted } from "./network";

let page: HTMLElement;

beforeEach(() => {
  vi.spyOn(HTMLCanvasElement.prototype, "getContext").mockReturnValue(null);
  [store.folds.value, store.lit.value, store.networkZoom.value, store.compare.value] = [{}, null, null, "a"];
  [store.example.value, store.attention.value, store.head.value, store.language.value] = [0, "", "mean", "en"];
  document.body.textContent = "";
  page = document.body.appendChild(document.createElement("div"));
});

afterEach(() => render(null, page));

function show(change: (payload: ReturnType<typeof invent>) => void = () => undefined): void {
  const payload = invent();
  change(payload);
  store.payload.value = payload;
  act(() => render(<Network />, page));
}

function box(name: string): HTMLButtonElement {
  return [...page.querySelectorAll<HTMLButtonElement>(".network-box")].find((each) => each.title === name)!;
}

function press(key: string): void {
  act(() => void document.activeElement!.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true })));
}

it("the selected attention is marked and said", () => {
  show();
  expect(box("decoder.1.cross").getAttribute("aria-current")).toBe("true");
  expect(page.querySelectorAll("[aria-current]")).toHaveLength(1);
  expect(page.querySelector(".network-finding")!.textContent).toMatch(/^Where: decoder › .*one of 6 attentions in \d+ modules\./);
});

it("a click on an attention selects it", () => {
  show();
  act(() => box("encoder.0.self").click());
  expect(store.attention.value).toBe("encoder.0.self");
  expect(box("encoder.0.self").getAttribute("aria-current")).toBe("true");
});

it("each attention says its score, normaliser, scope, kernel and heads, and has a picture with words", () => {
  show();
  const facts = [...box("decoder.1.cross").querySelectorAll(".network-fact")].map((each) => each.textContent);
  const about = store.run.value.graph.nodes.find((node) => node.id === "decoder.1.cross")!.about;
  expect(facts).toEqual([about["score"], about["normalise"], about["scope"], about["kernel"], "4 heads", expect.stringMatching(/^reads \d\.\d of 9$/)]);
  expect(box("decoder.1.cross").querySelector("canvas")!.getAttribute("aria-label")).toMatch(/^layer 1, mean of heads, entropy [\d.]+, sink/);
});

it("every attention of the trace can be reached by unfolding, and each is there once", () => {
  show();
  while (page.querySelector(".network-times")) act(() => page.querySelector<HTMLButtonElement>(".network-times")!.click());
  const shown = [...page.querySelectorAll<HTMLButtonElement>(".network-box.looks")].map((each) => each.title).sort();
  expect(shown).toEqual(store.currentExample.value.attentions.map((each) => each.id).sort());
});

it("a key unfolds the layers of the selected attention and folds them again", () => {
  show();
  const count = () => page.querySelectorAll(".network-box").length;
  const before = count();
  const toggle = () => act(() => actions().find((each) => each.id === "network.fold")!.run());
  toggle();
  expect(count()).toBeGreaterThan(before);
  expect(box("decoder.0.cross")).toBeDefined();
  toggle();
  expect(count()).toBe(before);
});

it("a frame is closed by its header, and stands for the selected attention while it is closed", () => {
  show();
  const header = () => [...page.querySelectorAll<HTMLButtonElement>(".network-header")].find((each) => each.textContent!.includes("decoder"))!;
  act(() => header().click());
  expect(box("decoder.1.cross")).toBeUndefined();
  expect(box("decoder").getAttribute("aria-current")).toBe("true");
  expect(box("decoder").textContent).toContain("holds the selected attention");
  expect(box("decoder").getAttribute("aria-expanded")).toBe("false");
});

it("Tab reaches one box, arrows the others, and Space is the box's own", () => {
  show();
  const stops = () => [...page.querySelectorAll<HTMLElement>("[data-stop]")];
  expect(stops().filter((each) => each.tabIndex === 0)).toEqual([box("decoder.1.cross")]);
  act(() => box("decoder.1.cross").focus());
  press("Home");
  expect(document.activeElement).toBe(stops()[0]);
  press("End");
  expect(document.activeElement).toBe(stops().at(-1));
  expect(stops().filter((each) => each.tabIndex === 0)).toEqual([document.activeElement]);
  const heard = vi.fn();
  document.addEventListener("keydown", heard);
  press(" ");
  expect(heard).not.toHaveBeenCalled();
  document.removeEventListener("keydown", heard);
});

it("keys of size change the network's own size", () => {
  show();
  act(() => box("decoder.1.cross").focus());
  press("+");
  expect(store.networkZoom.value).toBe(1.25);
  press("-");
  press("-");
  expect(store.networkZoom.value).toBeCloseTo(0.8);
  press("0");
  expect(store.networkZoom.value).toBe(1);
});

it("the box of what is pointed at elsewhere lights up", () => {
  show();
  act(() => void (store.lit.value = "encoder.1.self"));
  expect(page.querySelectorAll(".lit")).toHaveLength(1);
  expect(page.querySelector<HTMLElement>(".lit")!.title).toMatch(/^encoder\..\.self$/);
});

it("a trace without a graph has boxes for its axes and attentions", () => {
  show((payload) => (payload.runs[0]!.graph = { nodes: [], edges: [] }));
  expect(page.querySelector(".network-finding")!.textContent).toContain("the network around them was not recorded");
  expect(box("axis:source").textContent).toContain("axis of 9");
  expect(box("decoder.1.cross")).toBeDefined();
});

it("a trace with neither says so", () => {
  show((payload) => {
    payload.runs[0]!.graph = { nodes: [], edges: [] };
    payload.runs[0]!.examples[0]!.attentions = [];
  });
  expect(page.querySelector(".network-finding")!.textContent).toBe("This trace has no network.");
});

it("names from the file are text and never markup", () => {
  show((payload) => {
    payload.runs[0]!.graph.nodes.push({ id: "</script><b>x</b>", kind: "<i>", parent: null, inputs: {}, output: null, parameters: 0, about: {} });
  });
  expect(page.querySelector("b, i, script")).toBeNull();
  expect(page.textContent).toContain("</script><b>x</b>");
});

it("what is in the panel already does not move it", () => {
  expect(shifted(5, 100, 20, 50)).toBe(5);
  expect(shifted(0, 100, 300, 50)).toBe(262);
  expect(shifted(500, 100, 200, 20)).toBe(188);
  expect(shifted(500, 100, 0, 20)).toBe(0);
  expect(shifted(0, 40, 300, 90)).toBe(288);
});
