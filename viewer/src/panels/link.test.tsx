// @vitest-environment jsdom
import { render } from "preact";
import { act } from "preact/test-utils";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { actions, pressed } from "../actions";
import { grid } from "../cells";
import { missing } from "../link/about";
import { MOST } from "../link/choices";
import { attention, compare, current, example, head, hideSpecial, key, language, palette, payload, quantity, query, scale, top, transposed, chosenView, view } from "../store";
import { table } from "../strings";
import { link } from "../strings/link";
import { invent } from "../testing/invent";
import { Link } from "./link";

const root = document.createElement("div");

async function shown(id = "decoder.1.cross"): Promise<void> {
  [example.value, attention.value] = [0, id];
  await vi.waitFor(() => expect(grid.value).not.toBeNull());
  await act(() => render(<Link />, root));
}

beforeEach(() => {
  vi.spyOn(HTMLCanvasElement.prototype, "getContext").mockReturnValue(null);
  document.body.append(root);
  window.addEventListener("keydown", pressed);
  payload.value = invent();
  [head.value, query.value, key.value, quantity.value, compare.value, chosenView.value] = [0, null, null, "weights", "a", "heatmap"];
  [scale.value, palette.value, top.value, hideSpecial.value, transposed.value, language.value] = ["sqrt", "cividis", 8, false, false, "en"];
});

afterEach(() => {
  window.removeEventListener("keydown", pressed);
  render(null, root);
});

async function press(letter: string, on: Element = document.body): Promise<void> {
  await act(() => void on.dispatchEvent(new KeyboardEvent("keydown", { key: letter, bubbles: true, cancelable: true })));
}

test("every view has a key and a tab, and only one tab is a stop for Tab", async () => {
  await shown();
  for (const [letter, name] of [["l", "Lines"], ["k", "Tokens"], ["o", "Overlay"], ["t", "Table"], ["h", "Heat map"]] as const) {
    await press(letter);
    const chosen = root.querySelectorAll('[role="tab"][aria-selected="true"]');
    expect([...chosen].map((each) => each.textContent)).toEqual([name]);
    expect([...root.querySelectorAll<HTMLElement>('[role="tab"]')].filter((each) => each.tabIndex === 0).length).toBe(1);
    expect(root.querySelector('[role="tabpanel"]')!.getAttribute("aria-labelledby")).toBe(chosen[0]!.id);
  }
});

test("arrows go from tab to tab, round the end, and leave the crosshair alone", async () => {
  await shown();
  await press("ArrowLeft", root.querySelector('[role="tab"][aria-selected="true"]')!);
  expect([view.value, document.activeElement!.textContent, query.value]).toEqual(["table", "Table", null]);
  await press("Home", document.activeElement!);
  expect(view.value).toBe("heatmap");
});

test("scale, palette, how many, special tokens and direction each have a key", async () => {
  await shown();
  await press("s");
  await press("p");
  await press(">");
  await press("m");
  await press("x");
  expect([scale.value, palette.value, top.value, hideSpecial.value, transposed.value]).toEqual(["log", "viridis", 9, true, true]);
  await press("s");
  await press("<");
  expect([scale.value, top.value]).toEqual(["linear", 8]);
});

test("each of them is a control too", async () => {
  chosenView.value = "lines";
  await shown();
  const [quantities, scales] = root.querySelectorAll("select");
  expect([...quantities!.options].map((each) => each.value)).toEqual(["weights", "scores", "values"]);
  scales!.value = "log";
  await act(() => void scales!.dispatchEvent(new Event("change", { bubbles: true })));
  expect(scale.value).toBe("log");
  const [number] = root.querySelectorAll<HTMLInputElement>('input[type="number"]');
  number!.value = "1000";
  await act(() => void number!.dispatchEvent(new Event("change", { bubbles: true })));
  expect(top.value).toBe(MOST);
  const toggles = [...root.querySelectorAll<HTMLButtonElement>("button[aria-pressed]")].filter((each) => each.closest(".link-controls"));
  expect(toggles.map((each) => each.textContent)).toEqual(["Hide special tokens", "Transpose"]);
  await act(() => toggles[0]!.click());
  expect(hideSpecial.value).toBe(true);
});

test("only quantities that were kept are offered, and where none was, no choice is", async () => {
  await shown("encoder.0.self");
  expect([...root.querySelectorAll("select")].some((each) => each.options[0]!.value === "weights")).toBe(false);
  await press("v");
  expect(quantity.value).toBe("weights");
});

test("an attention without the chosen quantity shows its weights", async () => {
  quantity.value = "scores";
  await shown("decoder.1.cross");
  expect(quantity.value).toBe("scores");
  await act(() => void (attention.value = "encoder.0.self"));
  await vi.waitFor(() => expect(quantity.value).toBe("weights"));
});

test("the attention's name and the source of its weights are told", async () => {
  await shown();
  const about = root.querySelector(".link-about")!.textContent;
  expect(about).toContain("decoder.1.cross");
  expect(about).toContain("Weights: recomputed in float32 from recorded queries and keys.");
  expect(about).toContain("queries 7 · keys 9 · heads 4");
});

test("a page over its budget says what share it shows and how to bring the rest back", async () => {
  payload.value = invent({ partial: true });
  await shown();
  await vi.waitFor(() => expect(grid.value!.extent).toBe("top"));
  const share = Math.round(current.value!.top!.share * 100);
  const about = root.querySelector(".link-about")!.textContent;
  expect(about).toContain(`it shows ${share} % of the mass`);
  expect(about).toContain("Left out of this page: 1");
  expect(root.querySelector("code")!.textContent).toBe('trace.to_html("run.html", budget="64MB")');
});

test("what was not recorded is told", () => {
  const of = current.value!;
  expect(missing({ ...of, recorded: false }, null)).toEqual(["Only statistics were recorded for this attention, no weights."]);
  expect(missing({ ...of, rows: [0, 3] }, null)).toEqual([`Only 2 of ${of.queries} queries were recorded.`]);
});

test("views without a matrix say why", async () => {
  const unrecorded = invent();
  for (const each of unrecorded.runs[0]!.examples[0]!.attentions) each.recorded = false;
  payload.value = unrecorded;
  for (const letter of ["l", "k", "o", "t"]) {
    await shown();
    await press(letter);
    expect(root.querySelector('[role="tabpanel"]')!.textContent).toContain("Only statistics were recorded");
  }
});

test("every word of the panel is there in both languages, with the same blanks", () => {
  for (const [english, chinese] of Object.values(link)) {
    expect(chinese).not.toBe("");
    expect([...chinese.matchAll(/\{\w+\}/g)].flat().sort()).toEqual([...english.matchAll(/\{\w+\}/g)].flat().sort());
  }
  expect(Object.keys(table)).toEqual(expect.arrayContaining(Object.keys(link)));
});

test("no key of the panel belongs to two actions", () => {
  const keys = actions().flatMap((each) => each.keys);
  expect(new Set(keys).size).toBe(keys.length);
});
