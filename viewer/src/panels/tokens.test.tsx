// @vitest-environment jsdom
import { render } from "preact";
import { act } from "preact/test-utils";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { grid } from "../cells";
import type { TextAxis } from "../payload";
import { attention, compare, example, head, hideSpecial, key, payload, quantity, query, scale } from "../store";
import { invent } from "../testing/invent";
import { Tokens } from "./tokens";

const root = document.createElement("div");

async function shown(id: string, at = 0): Promise<void> {
  [example.value, attention.value] = [at, id];
  await vi.waitFor(() => expect(grid.value).not.toBeNull());
  await act(() => render(<Tokens />, root));
}

beforeEach(() => {
  document.body.append(root);
  payload.value = invent();
  [head.value, query.value, key.value, quantity.value, compare.value] = [0, null, null, "weights", "a"];
  [hideSpecial.value, scale.value] = [false, "sqrt"];
});

afterEach(() => render(null, root));

const passage = (side: "query" | "key") => root.querySelector(`.passage.${side} .passage-text`)!;
const tokens = (side: "query" | "key") => [...passage(side).querySelectorAll<HTMLElement>(".token")];

test("the text reads as the text it is, with its language", async () => {
  await shown("decoder.1.cross");
  expect(passage("key").textContent).toBe("Tom chases Jerry all around the house .<eos>");
  expect(passage("query").textContent).toBe("汤姆满屋子追逐杰瑞。<eos>");
  expect(passage("query").getAttribute("lang")).toBe("zh-Hans");
  expect(passage("key").getAttribute("dir")).toBe("auto");
});

test("a query fixed colours the keys; each says its weight to those who do not see colours", async () => {
  query.value = 4;
  await shown("decoder.1.cross");
  const value = grid.value!.value(4, 2)!.value;
  expect(tokens("key")[2]!.getAttribute("aria-label")).toBe(`Jerry, ${value.toPrecision(3)}`);
  expect(tokens("key")[2]!.style.background).not.toBe(tokens("key")[5]!.style.background);
  expect(tokens("query").every((each) => each.style.background === "")).toBe(true);
  expect(tokens("query")[4]!.getAttribute("aria-pressed")).toBe("true");
});

test("a key fixed shows who reads it", async () => {
  key.value = 2;
  await shown("decoder.1.cross");
  expect(tokens("query").every((each) => each.style.background !== "")).toBe(true);
  expect(tokens("key").every((each) => each.style.background === "")).toBe(true);
  expect(root.querySelector(".tokens-finding")!.textContent).toMatch(/^“Jerry” is read most by “杰瑞” /);
});

test("a click chooses, arrows go on from there and take the focus along", async () => {
  await shown("decoder.1.cross");
  await act(() => tokens("key")[2]!.click());
  expect(key.value).toBe(2);
  tokens("key")[2]!.focus();
  await act(() => void tokens("key")[2]!.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowRight", bubbles: true, cancelable: true })));
  expect(key.value).toBe(3);
  expect(document.activeElement).toBe(tokens("key")[3]);
  const far = new KeyboardEvent("keydown", { key: "ArrowRight", shiftKey: true, bubbles: true, cancelable: true });
  await act(() => void tokens("key")[3]!.dispatchEvent(far));
  expect(key.value).toBe(8);
  await act(() => void tokens("key")[8]!.dispatchEvent(new KeyboardEvent("keydown", { key: "Home", bubbles: true, cancelable: true })));
  expect(key.value).toBe(0);
  await act(() => void tokens("key")[0]!.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", bubbles: true, cancelable: true })));
  expect(key.value).toBe(null);
});

test("only one token of a side is a stop for Tab", async () => {
  await shown("decoder.1.cross");
  expect(tokens("key").filter((each) => each.tabIndex === 0).length).toBe(1);
});

test("masked tokens are hatched and have no number", async () => {
  query.value = 1;
  await shown("decoder.0.self");
  expect(tokens("key").map((each) => each.classList.contains("masked"))).toEqual([false, false, true, true, true, true, true]);
  expect(tokens("key")[3]!.getAttribute("aria-label")).toBe("追逐");
});

test("a text that holds a script shows it", async () => {
  const axis = payload.value.runs[0]!.examples[0]!.axes["source"] as TextAxis;
  const hostile = "</script><img src=x onerror=alert(1)>";
  [axis.text, axis.spans[0]] = [hostile + axis.text.slice(3), [0, hostile.length]];
  axis.spans = axis.spans.map((span, at) => (span && at > 0 ? [span[0] + hostile.length - 3, span[1] + hostile.length - 3] : span));
  axis.labels![0] = axis.pieces[0] = hostile;
  await shown("decoder.1.cross");
  expect(tokens("key")[0]!.textContent).toBe(hostile);
  expect(root.querySelector("img, script")).toBe(null);
});

test("a long sequence goes by pages, and the page follows what is chosen", async () => {
  payload.value = invent({ large: [1000, 900] });
  query.value = 999;
  await shown("memory.read", 4);
  expect(root.querySelectorAll("*").length).toBeLessThan(2000);
  expect(tokens("query").at(-1)!.textContent).toBe("999");
  const [back] = root.querySelectorAll<HTMLButtonElement>(".passage.query .passage-pages button");
  await act(() => back!.click());
  expect(query.value).toBe(500);
});
