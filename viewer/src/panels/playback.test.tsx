// @vitest-environment jsdom
import { render } from "preact";
import { act } from "preact/test-utils";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { grid } from "../cells";
import { runs, topKeys } from "../playback/branch";
import * as store from "../store";
import { pressed } from "../actions";
import { invent } from "../testing/invent";
import { Playback } from "./playback";

const page = document.createElement("main");
let motion = false;

/** Do something, and let what it sets off come to rest: drawing, loading, and drawing what was loaded. */
async function after(deed: () => void): Promise<void> {
  await act(deed);
  for (let round = 0; round < 3; round += 1) await act(() => new Promise((resolve) => setTimeout(resolve, 1)));
}

async function open(): Promise<void> {
  store.payload.value = invent();
  await after(() => render(<Playback />, page));
}

beforeEach(() => {
  motion = true;
  vi.stubGlobal("matchMedia", () => ({ matches: !motion, addEventListener: () => undefined }));
  vi.spyOn(HTMLCanvasElement.prototype, "getContext").mockReturnValue(null);
  document.body.replaceChildren(page);
});

afterEach(async () => {
  vi.useRealTimers();
  await after(() => render(null, page));
  vi.restoreAllMocks();
  vi.unstubAllGlobals();
  [store.playing.value, store.filming.value, store.frame.value, store.query.value] = [false, false, null, null];
  [store.example.value, store.attention.value, store.visible.value, store.interval.value] = [0, "", null, 1000];
});

function press(key: string): void {
  act(() => pressed(new KeyboardEvent("keydown", { key, cancelable: true })));
}

test("a step shows its token, its probability, the candidates and what it reads", async () => {
  await open();
  await vi.waitFor(() => expect(grid.value).not.toBeNull());
  await after(() => (store.query.value = 4));
  expect(page.querySelector(".playback-now")!.textContent).toBe("Step 5 of 7: wrote “杰瑞” with probability 0.8");
  const [candidates, reads] = [...page.querySelectorAll(".playback-list")];
  expect([...candidates!.querySelectorAll("li")].map((each) => each.textContent)).toEqual(["杰瑞0.8 written", "杰里0.06", "<unk>0.01"]);
  expect(candidates!.querySelector<HTMLElement>(".playback-fill")!.style.inlineSize).toBe("80%");
  expect(reads!.querySelector("li")!.textContent).toMatch(/^Jerry0\.\d+$/);
});

test("Space plays through the steps at the pace that is chosen, and stops at the end", async () => {
  await open();
  vi.useFakeTimers();
  store.interval.value = 200;
  press(" ");
  expect(store.playing.value).toBe(true);
  act(() => void vi.advanceTimersByTime(450));
  expect(store.query.value).toBe(1);
  press(" ");
  act(() => void vi.advanceTimersByTime(1000));
  expect(store.query.value).toBe(1);
  press(" ");
  act(() => void vi.advanceTimersByTime(5000));
  expect([store.query.value, store.playing.value]).toEqual([6, false]);
  press(" ");
  expect([store.query.value, store.playing.value]).toEqual([0, true]);
});

test("with reduced motion Space goes one step on and nothing moves by itself", async () => {
  motion = false;
  await open();
  press(" ");
  press(" ");
  expect([store.query.value, store.playing.value]).toEqual([1, false]);
  expect(page.textContent).toContain("Motion is reduced");
});

test("keys go on and back, and never beyond the ends", async () => {
  await open();
  ["(", ")", ")", "("].forEach(press);
  expect(store.query.value).toBe(0);
  press("(");
  expect(store.query.value).toBe(0);
});

test("an example without steps is walked query by query", async () => {
  await open();
  await after(() => (store.example.value = 2));
  await after(() => [")", ")"].forEach(press));
  expect(page.textContent).toContain("No decoding was recorded");
  expect(page.querySelector(".playback-now")!.textContent).toBe("Query 2 of 5: “the”");
});

test("an attention of another axis is walked by its own queries", async () => {
  await open();
  await after(() => {
    store.attention.value = "encoder.0.self";
    store.query.value = 8;
  });
  expect(page.querySelector(".playback-now")!.textContent).toBe("Query 9 of 9: “<eos>”");
});

test("the tree grows with playback, and a branch that is focused says what it attended", async () => {
  await open();
  await after(() => (store.query.value = 1));
  const nodes = () => [...page.querySelectorAll<SVGGElement>("[role=treeitem]")];
  expect(nodes()).toHaveLength(4);
  expect(page.querySelector(".beams")!.textContent).toContain("At step 2: 2 alive, 0 finished, 1 given up.");
  const dead = nodes().find((each) => each.classList.contains("beams-pruned"))!;
  expect(dead.getAttribute("aria-label")).toBe("step 1, row 2: “杰瑞”, score -1.7, given up");
  await after(() => dead.dispatchEvent(new FocusEvent("focus")));
  expect(page.querySelector(".beams-branch")!.textContent).toContain("Looked at “chases” 0.6, “Tom” 0.05, “Jerry” 0.05");
  expect(page.querySelector(".beams-strip canvas")!.getAttribute("aria-label")).toContain("What “杰瑞” looked at: “chases” 0.6");
});

test("arrows go through the tree, one box has the focus, and Enter takes playback to its step", async () => {
  await open();
  await after(() => (store.query.value = 3));
  const focused = () => [...page.querySelectorAll<SVGGElement>('[role=treeitem][tabindex="0"]')];
  expect(focused().map((each) => each.id)).toEqual(["beam-3-0"]);
  for (const key of ["ArrowLeft", "ArrowDown"]) {
    await after(() => focused()[0]!.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true })));
  }
  expect(focused().map((each) => each.id)).toEqual(["beam-2-1"]);
  act(() => void focused()[0]!.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", bubbles: true })));
  expect(store.query.value).toBe(2);
});

test("the film names its probe, and its slider shows a moment on the example it was taken of", async () => {
  await open();
  await after(() => (store.example.value = 1));
  expect(page.querySelector(".film")!.textContent).toContain("Probe: Tom chases Jerry");
  const slider = page.querySelector<HTMLInputElement>(".film input")!;
  slider.value = "1";
  await after(() => slider.dispatchEvent(new Event("input", { bubbles: true })));
  expect([store.frame.value, store.example.value]).toEqual([1, 0]);
  expect(page.querySelector(".film .playback-now")!.textContent).toBe("Step 500, frame 2 of 4, loss 2");
  expect(page.querySelectorAll(".film-strip button")).toHaveLength(4);
  expect([...page.querySelectorAll(".film-curve canvas")].map((each) => each.getAttribute("aria-label")!.split(":")[0])).toEqual([
    "Loss",
    "Entropy (nats)",
    "Sink mass",
    "Distance (keys)",
    "Diagonality",
  ]);
});

test("another example drops the moment of training, and the film goes by its keys", async () => {
  await open();
  ["}", "}", "{", "}"].forEach(press);
  expect(store.frame.value).toBe(1);
  press("F");
  expect(store.frame.value).toBeNull();
  vi.useFakeTimers();
  press("f");
  act(() => void vi.advanceTimersByTime(1500));
  expect([store.frame.value, store.filming.value]).toEqual([1, true]);
  act(() => void (store.example.value = 3));
  expect([store.frame.value, store.filming.value]).toEqual([null, false]);
});

test("keys of a branch come by weight, and a strip keeps the largest of what shares a pixel", () => {
  expect(topKeys([0.1, 0, 0.5, 0.1], 3)).toEqual([2, 0, 3]);
  expect(runs([0.1, 0.9, 0.2, 0.3], 2)).toEqual([
    { from: 0, to: 1, weight: 0.9 },
    { from: 1, to: 2, weight: 0.3 },
  ]);
  expect(runs([1], 10)).toEqual([{ from: 0, to: 10, weight: 1 }]);
});
