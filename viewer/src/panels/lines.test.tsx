// @vitest-environment jsdom
import { render } from "preact";
import { act } from "preact/test-utils";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { grid } from "../cells";
import { attention, compare, example, head, key, payload, quantity, query, top, transposed } from "../store";
import { invent } from "../testing/invent";
import { Lines } from "./lines";

const root = document.createElement("div");

async function shown(id: string, at = 0): Promise<void> {
  [example.value, attention.value] = [at, id];
  await vi.waitFor(() => expect(grid.value).not.toBeNull());
  await act(() => render(<Lines />, root));
}

beforeEach(() => {
  document.body.append(root);
  payload.value = invent({ runs: 2 });
  [head.value, query.value, key.value, quantity.value, compare.value] = [0, null, null, "weights", "a"];
  [top.value, transposed.value] = [3, false];
});

afterEach(() => render(null, root));

const strands = () => [...root.querySelectorAll<SVGPathElement>(".strand")];

test("each query is tied to its strongest keys and to no more", async () => {
  await shown("decoder.1.cross");
  expect(strands().length).toBe(7 * 3);
  expect(root.querySelectorAll(".strand-outline").length).toBeGreaterThan(0);
});

test("a stronger link is both wider and less transparent", async () => {
  await shown("decoder.1.cross");
  const told = strands()
    .filter((each) => !each.previousElementSibling?.classList.contains("strand-outline"))
    .map((each) => [Number(each.getAttribute("stroke-width")), Number(each.getAttribute("opacity"))])
    .sort((left, right) => left[0]! - right[0]!);
  for (let at = 1; at < told.length; at += 1) expect(told[at]![1]).toBeGreaterThanOrEqual(told[at - 1]![1]!);
  expect(told.at(-1)![0]).toBeGreaterThan(told[0]![0]!);
});

test("with a query fixed its lines are strong and all others faint", async () => {
  query.value = 4;
  await shown("decoder.1.cross");
  const opacity = strands().map((each) => Number(each.getAttribute("opacity")));
  expect(opacity.filter((value) => value > 0.15).length).toBeLessThanOrEqual(3);
  expect(root.querySelector("svg")!.getAttribute("aria-label")).toMatch(/“杰瑞” reads mostly “Jerry” 0\.\d+, then/);
});

test("a line chooses its query and its key, a token its own side", async () => {
  await shown("decoder.1.cross");
  await act(() => void strands()[0]!.dispatchEvent(new MouseEvent("click", { bubbles: true })));
  expect([query.value, key.value]).toEqual([0, 0]);
  await act(() => root.querySelector<HTMLButtonElement>('.lines-side.keys [data-place="2"]')!.click());
  expect(key.value).toBe(2);
});

test("transposed, the sequences run across the page", async () => {
  transposed.value = true;
  await shown("decoder.1.cross");
  const [first] = root.querySelectorAll<HTMLElement>(".lines-side.keys button");
  expect(first!.style.left).toBe(`${(9 * 76) / 18}px`);
  expect(root.querySelector("svg")!.getAttribute("viewBox")).toBe(`0 0 ${9 * 76} 100`);
});

test("of four thousand tokens only those in sight are there", async () => {
  payload.value = invent({ large: [4096, 60] });
  await shown("memory.read", 4);
  expect(root.querySelectorAll("*").length).toBeLessThan(2000);
  expect(root.querySelectorAll(".lines-side.queries button").length).toBeLessThan(60);
});

test("of a difference, what B reads more is dashed", async () => {
  compare.value = "difference";
  await shown("decoder.1.cross");
  await vi.waitFor(() => expect(grid.value!.signed).toBe(true));
  await act(() => render(<Lines />, root));
  expect(root.querySelectorAll(".strand.less").length).toBeGreaterThan(0);
  expect(root.querySelector(".strand-outline")).toBe(null);
});
