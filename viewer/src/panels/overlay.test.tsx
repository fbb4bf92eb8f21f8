// @vitest-environment jsdom
import { render } from "preact";
import { act } from "preact/test-utils";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { grid } from "../cells";
import { play, silent, sounding, toggleSound } from "../overlay/sound";
import type { AudioAxis } from "../payload";
import { attention, compare, example, head, key, keyAxis, payload, quantity, query } from "../store";
import { invent } from "../testing/invent";
import { Overlay } from "./overlay";

const root = document.createElement("div");

async function shown(at: number, id = "decoder.cross"): Promise<void> {
  [example.value, attention.value] = [at, id];
  await vi.waitFor(() => expect(grid.value).not.toBeNull());
  await act(() => render(<Overlay />, root));
}

beforeEach(() => {
  document.body.append(root);
  // jsdom has no canvas; what is painted is checked in a browser.
  HTMLCanvasElement.prototype.getContext = () => null;
  payload.value = invent();
  [head.value, query.value, key.value, quantity.value, compare.value] = [0, null, null, "weights", "a"];
});

afterEach(() => render(null, root));

test("a picture says which patch the query reads, and its prefix stands beside it with a number", async () => {
  query.value = 1;
  await shown(1);
  expect(root.querySelector(".overlay-side.key canvas")!.getAttribute("aria-label")).toMatch(/shaded patches\. “red” reads mostly “2,2” 0\.\d+/);
  const cls = root.querySelector<HTMLButtonElement>(".overlay-prefix button")!;
  expect(cls.textContent).toBe(`CLS ${grid.value!.value(1, 0)!.value.toPrecision(3)}`);
  await act(() => cls.click());
  expect(key.value).toBe(0);
});

test("a click on the picture chooses the patch under it", async () => {
  await shown(1);
  const canvas = root.querySelector<HTMLCanvasElement>(".overlay-side.key canvas")!;
  canvas.getBoundingClientRect = () => ({ left: 10, top: 10, width: 400, height: 300 }) as DOMRect;
  await act(() => void canvas.dispatchEvent(new MouseEvent("click", { clientX: 10 + 150, clientY: 10 + 150, bubbles: true })));
  expect(key.value).toBe(1 + 4 + 1);
});

test("the slider of queries is the query of the page", async () => {
  await shown(1);
  const slider = root.querySelector<HTMLInputElement>('input[type="range"]')!;
  slider.value = "2";
  await act(() => void slider.dispatchEvent(new Event("input", { bubbles: true })));
  expect(query.value).toBe(2);
  expect(slider.getAttribute("aria-valuetext")).toBe("box · place 3 of 4");
  const [back] = root.querySelectorAll<HTMLButtonElement>(".overlay-places button");
  await act(() => back!.click());
  expect(query.value).toBe(1);
});

test("a series over a series shows both, each by what is chosen on the other", async () => {
  [query.value, key.value] = [2, 24];
  await shown(3);
  const told = [...root.querySelectorAll("canvas")].map((each) => each.getAttribute("aria-label")!);
  expect(told[0]).toMatch(/“2023-11-15 22:13:20” is read most by/);
  expect(told[1]).toMatch(/reads mostly “2023-11-16 00:13:20”/);
});

test("text alone is coloured in place", async () => {
  await shown(0, "decoder.1.cross");
  expect(root.querySelector("canvas")).toBe(null);
  expect(root.querySelectorAll(".passage").length).toBe(2);
});

/** As much of the browser's sound as is used. */
class Source {
  onended: (() => void) | null = null;
  started: number[] = [];
  connect = vi.fn();
  stop = vi.fn();
  start(...at: number[]): void {
    this.started = at;
  }
}

function hear(): { sources: Source[]; closed: () => number } {
  const sources: Source[] = [];
  const close = vi.fn();
  vi.stubGlobal("AudioContext", class {
    currentTime = 0;
    destination = {};
    close = close;
    createBuffer = (_: number, length: number, rate: number) => ({ duration: length / rate, copyToChannel: vi.fn() });
  });
  vi.stubGlobal("AudioBufferSourceNode", function () {
    sources.push(new Source());
    return sources.at(-1)!;
  });
  return { sources, closed: () => close.mock.calls.length };
}

test("a sound begins when it is asked for, at the chosen frame, and stops at its end", async () => {
  const { sources, closed } = hear();
  await shown(2);
  expect(sources.length).toBe(0);
  key.value = 8;
  toggleSound();
  await vi.waitFor(() => expect(sounding.value).not.toBeNull());
  expect(sources[0]!.started).toEqual([0, 0.2]);
  expect(root.querySelector(".overlay-playhead")).not.toBe(null);
  await act(() => sources[0]!.onended!());
  expect([sounding.value, closed()]).toEqual([null, 1]);
  expect(root.querySelector(".overlay-playhead")).toBe(null);
});

test("another example silences the sound", async () => {
  const { sources } = hear();
  await shown(2);
  await play(keyAxis.value as AudioAxis, 0);
  example.value = 0;
  expect(sounding.value).toBe(null);
  expect(sources[0]!.stop).toHaveBeenCalled();
});

test("a sound that the browser cannot play says why", async () => {
  vi.stubGlobal("AudioContext", class {
    createBuffer() {
      throw new Error("the sample rate is out of range");
    }
  });
  await shown(2);
  await act(() => play(keyAxis.value as AudioAxis, 0));
  expect(silent.value).toBe("the sample rate is out of range");
  expect(root.querySelector('[role="alert"]')!.textContent).toContain("the sample rate is out of range");
});
