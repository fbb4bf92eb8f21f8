// @vitest-environment jsdom
import { render } from "preact";
import { act } from "preact/test-utils";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { actions } from "../actions";
import { grid } from "../cells";
import { attention, compare, example, head, hideSpecial, key, payload, quantity, query, queryAxis, tableOrder, top, chosenView } from "../store";
import { invent } from "../testing/invent";
import { page, pageSize, pageStart } from "../link/rows";
import { DenseGrid } from "../grids/dense";
import { TableView } from "./table";

const root = document.createElement("div");

async function shown(id: string, at = 0): Promise<void> {
  [example.value, attention.value] = [at, id];
  await vi.waitFor(() => expect(grid.value).not.toBeNull());
  await act(() => render(<TableView />, root));
}

beforeEach(() => {
  document.body.append(root);
  payload.value = invent({ runs: 2 });
  [head.value, query.value, key.value, top.value, quantity.value, compare.value] = ["mean", null, null, 8, "weights", "a"];
  [hideSpecial.value, tableOrder.value] = [false, { column: "place", falling: false }];
});

afterEach(() => render(null, root));

/** Places are counted from 1, but where a number is a place's own name. */
function base(): number {
  return queryAxis.value!.kind === "index" ? 0 : 1;
}

/** Every cell of the table on the page: query, key, value. */
function cells(): [number, number, number][] {
  return [...root.querySelectorAll("tbody tr")].flatMap((line) =>
    [...line.querySelectorAll("td[data-key]")].map((cell): [number, number, number] => [
      Number(line.firstElementChild!.textContent) - base(),
      Number(cell.getAttribute("data-key")),
      Number(cell.querySelector("data")!.value),
    ]),
  );
}

test("with as many keys as there are, the table is the matrix", async () => {
  top.value = 9;
  await shown("decoder.1.cross");
  const matrix = grid.value!;
  expect(cells().length).toBe(7 * 9);
  expect(new Set(cells().map(([row, column]) => `${row} ${column}`)).size).toBe(63);
  for (const [row, column, value] of cells()) expect(value).toBe(matrix.value(row, column)!.value);
});

test("keys sort by the next column, first the way that is asked for most, and the other way round", async () => {
  const run = (id: string) => act(() => actions().find((each) => each.id === id)!.run());
  await shown("decoder.1.cross");
  chosenView.value = "heatmap";
  await run("table.sort");
  expect(tableOrder.value.column).toBe("place");
  chosenView.value = "table";
  const seen: string[] = [];
  for (let round = 0; round < 4; round += 1) {
    await run("table.sort");
    seen.push(`${tableOrder.value.column} ${root.querySelector("th[aria-sort]:not([aria-sort=none])")!.getAttribute("aria-sort")}`);
  }
  expect(seen).toEqual(["label ascending", "largest descending", "shown descending", "place ascending"]);
  await run("table.turn");
  expect(tableOrder.value).toEqual({ column: "place", falling: true });
});

test("turned page by page, the table has every query once", async () => {
  payload.value = invent({ large: [60, 10] });
  top.value = 10;
  await shown("memory.read", 4);
  const seen: number[] = [];
  for (;;) {
    for (const [row, column, value] of cells()) expect(value).toBe(grid.value!.value(row, column)!.value);
    seen.push(...[...root.querySelectorAll("tbody tr")].map((line) => Number(line.firstElementChild!.textContent) - base()));
    const next = root.querySelectorAll<HTMLButtonElement>(".table-pages button")[1]!;
    if (next.disabled) break;
    await act(() => next.click());
  }
  expect(seen).toEqual(Array.from({ length: 60 }, (_, at) => at));
});

test("a masked key is never listed", async () => {
  top.value = 7;
  await shown("decoder.0.self");
  expect(cells().every(([row, column]) => column <= row)).toBe(true);
  expect(cells().length).toBe(28);
});

test("the caption states the finding", async () => {
  await shown("decoder.1.cross");
  const [row, column] = cells().reduce((most, cell) => (cell[2] > most[2] ? cell : most));
  const [targets, sources] = ["汤姆 满 屋子 追逐 杰瑞 。 <eos>".split(" "), "Tom chases Jerry all around the house . <eos>".split(" ")];
  const caption = root.querySelector("caption")!.textContent;
  expect(caption).toContain("The 8 strongest keys of each query, rows 1 to 7 of 7.");
  expect(caption).toContain(`The sharpest of them is “${targets[row]}”: “${sources[column]}” `);
});

test("a header sorts by its column, from the largest weight down and then from the least up", async () => {
  await shown("decoder.1.cross");
  const first = () => [...root.querySelectorAll("tbody tr")].map((line) => Number(line.querySelector("data")!.value));
  const header = root.querySelectorAll<HTMLButtonElement>("thead button")[2]!;
  await act(() => header.click());
  expect(first()).toEqual([...first()].sort((left, right) => right - left));
  expect(header.closest("th")!.getAttribute("aria-sort")).toBe("descending");
  await act(() => header.click());
  expect(first()).toEqual([...first()].sort((left, right) => left - right));
});

test("words are sorted by their text", async () => {
  await shown("encoder.0.self");
  await act(() => root.querySelectorAll<HTMLButtonElement>("thead button")[1]!.click());
  const words = [...root.querySelectorAll("tbody th")].map((cell) => cell.textContent);
  expect(words).toEqual([...words].sort(new Intl.Collator().compare));
});

test("choosing a query marks its row, choosing it again clears it", async () => {
  await shown("decoder.1.cross");
  const button = root.querySelectorAll<HTMLButtonElement>("tbody th button")[4]!;
  await act(() => button.click());
  expect(query.value).toBe(4);
  expect(root.querySelector("tr[aria-current]")!.firstElementChild!.textContent).toBe("5");
  await act(() => button.click());
  expect(query.value).toBe(null);
});

test("differences are listed with their signs", async () => {
  compare.value = "difference";
  await shown("decoder.1.cross");
  await vi.waitFor(() => expect(grid.value!.signed).toBe(true));
  const told = [...root.querySelectorAll("td[data-key] data")].map((cell) => cell.textContent);
  expect(told.some((value) => value.startsWith("+"))).toBe(true);
  expect(told.some((value) => value.startsWith("−"))).toBe(true);
});

test("a page has fifty queries, and fewer where each has many keys", () => {
  expect([pageSize(1), pageSize(8), pageSize(64), pageSize(5000)]).toEqual([50, 50, 25, 1]);
});

test("a large matrix is sorted by weight inside its pages only, and says so", () => {
  const large = new DenseGrid({ rows: 4096, columns: 1025, bytes: new Uint8Array(4096 * 1025) });
  const axis = { kind: "index", length: 4096, labels: null } as const;
  const places = Array.from({ length: 4096 }, (_, at) => at);
  const found = page(large, axis, places, pageStart(places, 60, 2), 2, { column: "largest", falling: true });
  expect([found.first, found.end, found.within]).toEqual([50, 100, true]);
  expect(page(large, axis, places, 50, 2, { column: "place", falling: false }).within).toBe(false);
});
