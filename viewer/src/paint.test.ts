import { describe, expect, it } from "vitest";
import { DenseGrid } from "./grids/dense";
import { plan, Reader } from "./paint";
import { pixels, place, sequential, table } from "./palette";
import { invent, random } from "./testing/invent";

const grid = (rows: number, columns: number, bytes = new Uint8Array(rows * columns)) => new DenseGrid({ rows, columns, bytes });

describe("what is painted", () => {
  it("is the matrix itself where a cell has a pixel or more", () => {
    expect(plan(grid(7, 9), [0, 0, 7, 9], 300, 400)).toEqual({ level: 0, high: 0, wide: 0, firstRow: 0, firstColumn: 0, rows: 7, columns: 9 });
  });
  it("is the level at which a cell is at least a pixel, and no coarser one", () => {
    const found = plan(grid(4096, 4096), [0, 0, 4096, 4096], 512, 600);
    expect([found.level, found.high, found.wide, found.rows, found.columns]).toEqual([3, 3, 3, 512, 512]);
    const closer = plan(grid(4096, 4096), [1000.5, 2000, 1512.5, 2600], 512, 600);
    expect([closer.level, closer.firstRow, closer.rows, closer.firstColumn, closer.columns]).toEqual([0, 1000, 513, 2000, 600]);
  });
  it("keeps every row of a matrix that is long one way only", () => {
    const found = plan(grid(16, 4096), [0, 0, 16, 4096], 400, 500);
    expect([found.level, found.high, found.wide, found.rows, found.columns]).toEqual([0, 0, 4, 16, 256]);
  });
  it("reads a bounded number of cells however large the matrix", () => {
    const huge = { ...grid(1, 1), rows: 100_000, columns: 100_000, levels: Array.from({ length: 11 }, (_, at) => ({ rows: 100_000 >> at, columns: 100_000 >> at })) };
    for (const window of [[0, 0, 1e5, 1e5], [0, 0, 300, 1e5], [5, 5, 900, 1200]] as [number, number, number, number][]) {
      const found = plan(huge as never, window, 600, 900);
      expect(((window[2] - window[0]) / 2 ** found.level) * ((window[3] - window[1]) / 2 ** found.level)).toBeLessThanOrEqual(1 << 21);
    }
  });
  it("shows a peak of one cell at every zoom, size and place", () => {
    const next = random(9);
    const reader = new Reader();
    for (let trial = 0; trial < 80; trial += 1) {
      const [rows, columns] = [1 + Math.floor(next() * 900), 1 + Math.floor(next() * 900)];
      const [row, column] = [Math.floor(next() * rows), Math.floor(next() * columns)];
      const bytes = new Uint8Array(rows * columns);
      bytes[row * columns + column] = 255;
      const whole = grid(rows, columns, bytes);
      const top = next() * row;
      const left = next() * column;
      const window: [number, number, number, number] = [top, left, row + 1 + next() * (rows - row - 1), column + 1 + next() * (columns - column - 1)];
      const found = plan(whole, window, 20 + Math.floor(next() * 300), 20 + Math.floor(next() * 300));
      const cells = reader.bytes(whole, found).bytes.subarray(0, found.rows * found.columns);
      const at = ((row >> found.high) - found.firstRow) * found.columns + (column >> found.wide) - found.firstColumn;
      expect(cells[at], JSON.stringify({ rows, columns, row, column, window, found })).toBe(255);
    }
  });
  it("keeps the farthest from the middle where cells are signed", () => {
    const bytes = new Uint8Array(4 * 64).fill(128);
    bytes[70] = 3;
    bytes[71] = 140;
    const signed = new DenseGrid({ rows: 4, columns: 64, bytes, signed: true });
    const found = plan(signed, [0, 0, 4, 64], 40, 16);
    expect(found.wide).toBe(2);
    expect(new Reader().bytes(signed, found).bytes[16 + 1]).toBe(3);
  });
});

describe("colours", () => {
  const payload = invent();
  it("are 256 from the payload, the default's where a name is not known", () => {
    expect(table(payload, "greys").length).toBe(768);
    expect(table(payload, "no such palette")).toEqual(table(payload, "cividis"));
    expect(() => table({ ...payload, palettes: {} }, "greys")).toThrow("the page has no palette greys");
  });
  it("leave the two-sided table and the eight categories out of what can be chosen", () => {
    const more = { ...payload, palettes: { ...payload.palettes, okabe_ito: payload.palettes["greys"]! } };
    expect(sequential(more)).toEqual(["cividis", "viridis", "magma", "greys"]);
  });
  it("follow the scale through the table alone", () => {
    expect([0, 128, 255].map((byte) => place(byte, "sqrt", false))).toEqual([0, 128, 255]);
    expect([0, 128, 255].map((byte) => place(byte, "linear", false))).toEqual([0, 64, 255]);
    expect([0, 26, 255].map((byte) => place(byte, "log", false))).toEqual([0, 154, 255]);
    expect([1, 128, 255].map((byte) => place(byte, "linear", true))).toEqual([1, 128, 255]);
    expect(place(192, "linear", true)).toBe(128 + 32);
  });
  it("become pixels byte by byte", () => {
    const words = pixels(Uint8Array.from({ length: 768 }, (_, at) => at % 251), "sqrt", false);
    expect([...new Uint8Array(words.buffer, 4 * 2, 4)]).toEqual([6, 7, 8, 255]);
  });
});
