import { describe, expect, it } from "vitest";
import type { Attention } from "../payload";
import type { Head } from "../store";
import { extremes, matrix, moved, ranked, type Cell, type Filter } from "./order";
import type { Statistic } from "./statistics";

const LAYERS = [
  { id: "first", layer: 0, heads: 3 },
  { id: "second", layer: 1, heads: 2 },
] as Attention[];

const ENTROPY: Record<string, (number | null)[]> = { first: [0.5, 2, 1], second: [3, null] };

function numbers(attention: Attention, head: Head, _: Statistic): number | null {
  return head === "mean" ? 9 : ENTROPY[attention.id]![head]!;
}

function names(cells: Cell[]): string[] {
  return cells.map((cell) => `${cell.attention.id} ${cell.head}`);
}

const LEAST: Filter = { statistic: "entropy", bound: "least", value: 1 };

describe("by layer and head", () => {
  const found = matrix(LAYERS, null, numbers);

  it("layers go down, heads across, and the mean is the last column whatever a layer's heads", () => {
    expect([found.rows, found.columns]).toEqual([2, 4]);
    expect(found.cells.filter((cell) => cell.head === "mean").map((cell) => [cell.row, cell.column])).toEqual([[0, 3], [1, 3]]);
    expect(found.cells).toHaveLength(7);
  });

  it("heads that the filter leaves out stay where they are and do not pass", () => {
    const cells = matrix(LAYERS, LEAST, numbers).cells.filter((cell) => !cell.passes);
    expect(names(cells)).toEqual(["first 0", "second 1"]);
  });

  it("arrows move along a row, over a gap, and to the nearest cell of another row", () => {
    const cell = (name: string) => found.cells.find((each) => names([each])[0] === name)!;
    expect(names([moved(found, cell("first 0"), "ArrowRight")!])).toEqual(["first 1"]);
    expect(names([moved(found, cell("second 1"), "ArrowRight")!])).toEqual(["second mean"]);
    expect(names([moved(found, cell("first 2"), "ArrowDown")!])).toEqual(["second 1"]);
    expect(names([moved(found, cell("first 2"), "ArrowUp")!])).toEqual(["first 2"]);
    expect(names([moved(found, cell("second 0"), "End")!])).toEqual(["second mean"]);
    expect(names([moved(found, cell("second 1"), "Home")!])).toEqual(["second 0"]);
    expect(moved(found, cell("first 0"), "x")).toBeNull();
  });
});

describe("by a statistic", () => {
  it("the lowest come first where it rises, and what is not known last", () => {
    const { cells, rows } = ranked(LAYERS, { statistic: "entropy", rising: true }, null, 2, numbers);
    expect(names(cells)).toEqual(["first 0", "first 2", "first 1", "second 0", "second 1"]);
    expect(rows).toBe(3);
    expect([cells[3]!.row, cells[3]!.column]).toEqual([1, 1]);
  });

  it("the highest come first where it falls, and what is not known still last", () => {
    const { cells } = ranked(LAYERS, { statistic: "entropy", rising: false }, null, 2, numbers);
    expect(names(cells)).toEqual(["second 0", "first 1", "first 2", "first 0", "second 1"]);
  });

  it("heads that the filter leaves out are gone, those at the bound are not", () => {
    const order = { statistic: "entropy", rising: true } as const;
    expect(names(ranked(LAYERS, order, LEAST, 4, numbers).cells)).toEqual(["first 2", "first 1", "second 0"]);
    expect(names(ranked(LAYERS, order, { ...LEAST, bound: "most" }, 4, numbers).cells)).toEqual(["first 0", "first 2"]);
  });

  it("the lowest and the highest are named, and nobody where nothing is known", () => {
    const found = extremes(LAYERS, "entropy", numbers)!;
    expect([found.low.attention.id, found.low.head, found.high.value]).toEqual(["first", 0, 3]);
    expect(extremes(LAYERS, "entropy", () => null)).toBeNull();
  });
});
