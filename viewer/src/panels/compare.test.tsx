// @vitest-environment jsdom
import { render } from "preact";
import { act } from "preact/test-utils";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { actions } from "../actions";
import { lettered } from "../compare/names";
import * as store from "../store";
import { invent } from "../testing/invent";
import { Compare } from "./compare";

let page: HTMLElement;

beforeEach(() => {
  [store.compare.value, store.swipe.value, store.example.value, store.head.value] = ["a", 0.5, 0, "mean"];
  store.language.value = "en";
  document.body.textContent = "";
  page = document.body.appendChild(document.createElement("div"));
});

afterEach(() => render(null, page));

function show(runs: 1 | 2): void {
  store.payload.value = invent({ runs });
  store.attention.value = "decoder.1.cross";
  act(() => render(<Compare />, page));
}

function pressed(): string[] {
  return [...page.querySelectorAll("button")].filter((each) => each.getAttribute("aria-pressed") === "true").map((each) => each.className);
}

function press(id: string): void {
  act(() => actions().find((each) => each.id === id)!.run());
}

it("one run has nothing to be compared with", () => {
  show(1);
  expect(page.textContent).toBe("");
  press("compare");
  expect(store.compare.value).toBe("a");
});

it("the key goes through A, B, their difference and swipe, and begins again", () => {
  show(2);
  const seen = Array.from({ length: 5 }, () => {
    press("compare");
    return pressed()[0];
  });
  expect(seen).toEqual(["compare-b", "compare-difference", "compare-swipe", "compare-a", "compare-b"]);
});

it("the buttons do the same", () => {
  show(2);
  act(() => page.querySelector<HTMLButtonElement>(".compare-difference")!.click());
  expect(store.compare.value).toBe("difference");
});

it("swipe has a line that can be moved, and says where it stands", () => {
  show(2);
  expect(page.querySelector("input")).toBeNull();
  act(() => void (store.compare.value = "swipe"));
  const line = page.querySelector("input")!;
  expect(line.getAttribute("aria-valuetext")).toBe("A shows 50 % of the width");
  line.value = "20";
  act(() => void line.dispatchEvent(new Event("input", { bubbles: true })));
  expect(store.swipe.value).toBe(0.2);
});

it("what was not aligned is said, and every head's statistics stand in a table", () => {
  show(2);
  expect(page.textContent).toContain("Only in A: 满, 追逐.");
  expect(page.textContent).toContain("Only in B: 在, 追.");
  const [a, b] = store.payload.value.runs.map((run) => run.examples[0]!.attentions.find((each) => each.id === "decoder.1.cross")!);
  const cells = [...page.querySelectorAll("tbody tr")[2]!.querySelectorAll("td")].map((cell) => Number(cell.textContent!.replace("−", "-")));
  expect(cells).toHaveLength(12);
  expect(cells[0]).toBeCloseTo(a!.summary.entropy[2]!, 2);
  expect(cells[1]).toBeCloseTo(b!.summary.entropy[2]!, 2);
  expect(cells[2]).toBeCloseTo(a!.summary.entropy[2]! - b!.summary.entropy[2]!, 3);
});

it("an example that B lacks is said to be lacking", () => {
  show(2);
  store.payload.value.runs[1]!.examples.length = 2;
  act(() => void (store.example.value = 3));
  expect(page.textContent).toContain("B has no example 4, so there is nothing to compare here.");
});

it("a head that B lacks is said to be lacking", () => {
  const payload = invent({ runs: 2 });
  payload.runs[1]!.examples[0]!.attentions.forEach((each) => (each.heads = 2));
  store.payload.value = payload;
  [store.attention.value, store.head.value] = ["decoder.1.cross", 3];
  act(() => render(<Compare />, page));
  expect(page.textContent).toContain("B has no head 3: the mean of its heads stands in.");
  expect(page.textContent).toContain("A has 4 heads, B has 2; they are matched by number.");
});

it("a name that looks like a tag is shown and never run", () => {
  const payload = invent({ runs: 2 });
  payload.runs[1]!.name = "<img src=x onerror=alert(1)>";
  store.payload.value = payload;
  act(() => render(<Compare />, page));
  expect(page.querySelector("img")).toBeNull();
  expect(page.querySelector(".compare-b")!.textContent).toContain("<img");
});

it("keys show the line first and then move it, as far as the edges", () => {
  show(1);
  press("swipe.left");
  expect(store.compare.value).toBe("a");
  show(2);
  press("swipe.left");
  expect([store.compare.value, store.swipe.value]).toEqual(["swipe", 0.5]);
  press("swipe.left");
  expect([store.swipe.value, page.querySelector("input")!.value]).toEqual([0.45, "45"]);
  for (let round = 0; round < 20; round += 1) press("swipe.right");
  expect(store.swipe.value).toBe(1);
});

it("A and B are called by their letters and their names", () => {
  show(2);
  expect(lettered()).toEqual({ a: "A (\u2068bahdanau.step 4000\u2069)", b: "B (\u2068luong.step 4000\u2069)" });
  store.payload.value.runs[1]!.name = "";
  expect(lettered().b).toBe("B");
});

it("heads are also compared by their alignment error, where either run has gold links", () => {
  const payload = invent({ runs: 2 });
  payload.runs[1]!.examples[0]!.attentions.forEach((each) => (each.summary.alignment = each.summary.alignment.map(() => 0.25)));
  store.payload.value = payload;
  store.attention.value = "decoder.1.cross";
  act(() => render(<Compare />, page));
  const last = [...page.querySelectorAll("tbody tr")[0]!.querySelectorAll("td")].slice(-3);
  expect(last.map((cell) => cell.textContent)).toEqual(["–", "0.25", "–"]);
});

it("Escape closes the report and nothing else", () => {
  show(2);
  const details = page.querySelector("details")!;
  details.open = true;
  const heard = vi.fn();
  document.addEventListener("keydown", heard);
  const escape = () => details.dispatchEvent(new KeyboardEvent("keydown", { key: "Escape", bubbles: true }));
  act(() => void escape());
  expect([details.open, heard.mock.calls.length]).toEqual([false, 0]);
  act(() => void escape());
  expect(heard).toHaveBeenCalledOnce();
  document.removeEventListener("keydown", heard);
});
