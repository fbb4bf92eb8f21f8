import { describe, expect, it } from "vitest";
import { quantise, quantiseSigned, restore, restoreSigned } from "../grid";
import { random } from "../testing/invent";
import { DenseGrid, halve, sizes } from "./dense";
import { difference, moved } from "./difference";
import { block, nothing, sparse, thumbnail } from "./sparse";
import { TILE, TiledGrid } from "./tiled";

const all = (length: number) => ({ left: [...Array(length).keys()], right: [...Array(length).keys()] });

describe("bytes of weights", () => {
  it("are the root of the weight, so that 0.25 is half of 255", () => {
    expect(quantise(0.25)).toBe(128);
    expect(restore(255)).toBe(1);
    expect(restore(255, 3)).toBe(3);
  });
  it("come back within the error of one step", () => {
    for (let weight = 0; weight <= 1; weight += 0.01) {
      expect(Math.abs(restore(quantise(weight)) - weight)).toBeLessThanOrEqual(Math.sqrt(weight) / 255 + 1 / 255 ** 2);
    }
  });
  it("go both ways from 128 where they are signed", () => {
    expect(quantiseSigned(0)).toBe(128);
    expect(quantiseSigned(1)).toBe(255);
    expect(quantiseSigned(-0.25)).toBe(128 - 64 + 1);
    expect(restoreSigned(1)).toBe(-1);
  });
});

describe("a pyramid", () => {
  it("halves until both sides are 128 at most, an odd last line alone", () => {
    expect(sizes(300, 5)).toEqual([
      { rows: 300, columns: 5 },
      { rows: 150, columns: 3 },
      { rows: 75, columns: 2 },
    ]);
  });
  it("keeps the largest of four cells", () => {
    const half = halve(Uint8Array.from([1, 2, 9, 3, 4, 0, 5, 6, 7]), { rows: 3, columns: 3 }, { rows: 2, columns: 2 }, false);
    expect([...half]).toEqual([4, 9, 6, 7]);
  });
  it("keeps the cell farthest from the middle where cells are signed", () => {
    const half = halve(Uint8Array.from([128, 130, 100, 129]), { rows: 2, columns: 2 }, { rows: 1, columns: 1 }, true);
    expect([...half]).toEqual([100]);
  });
  it("never loses a peak, wherever it is and whatever the size", () => {
    const next = random(5);
    for (let trial = 0; trial < 60; trial += 1) {
      const [rows, columns] = [1 + Math.floor(next() * 700), 1 + Math.floor(next() * 700)];
      const bytes = new Uint8Array(rows * columns);
      const [row, column] = [Math.floor(next() * rows), Math.floor(next() * columns)];
      bytes[row * columns + column] = 255;
      const grid = new DenseGrid({ rows, columns, bytes });
      grid.levels.forEach((level, number) => {
        const cell = new Uint8Array(1);
        grid.fill(number, row >> number, column >> number, 1, 1, cell);
        expect(cell[0], `${rows} x ${columns}, level ${number}`).toBe(255);
        expect(grid.pyramid[number]!.filter((byte) => byte > 0).length).toBe(1);
        expect(grid.pyramid[number]!.length).toBe(level.rows * level.columns);
      });
    }
  });
});

describe("what a page keeps of a matrix", () => {
  it("says exact values where it has them and 256 steps where not", () => {
    const exact = new DenseGrid({ rows: 1, columns: 2, bytes: Uint8Array.from([0, 128]), exact: Float32Array.from([0, 0.25]) });
    expect(exact.value(0, 1)).toEqual({ value: 0.25, exact: true });
    const about = new DenseGrid({ rows: 1, columns: 2, bytes: Uint8Array.from([0, 255]), scale: 2 });
    expect(about.value(0, 1)).toEqual({ value: 2, exact: false });
  });
  it("knows nothing of rows that were not recorded", () => {
    const grid = new DenseGrid({ rows: 2, columns: 1, bytes: Uint8Array.from([0, 9]), recorded: Uint8Array.from([0, 1]) });
    expect([grid.value(0, 0), grid.rowKnown(0), grid.rowKnown(1)]).toEqual([null, false, true]);
  });
  it("knows the strongest keys alone where only these were kept", () => {
    const grid = sparse(2, 4, [1, 3, 0, 2], [255, 51, 128, 10]);
    expect(grid.value(0, 3)?.value).toBeCloseTo(0.04);
    expect(grid.value(0, 0)).toBeNull();
    expect(grid.extent).toBe("top");
  });
  it("is cut into blocks as Python cuts it: five rows in three begin at 0, 1 and 3", () => {
    expect([0, 1, 2, 3, 4].map((row) => block(row, 5, 3))).toEqual([0, 1, 1, 2, 2]);
  });
  it("stretches a small picture without claiming values", () => {
    const grid = thumbnail(4, 4, Uint8Array.from([1, 2, 3, 4]), 2, 2);
    const cells = new Uint8Array(16);
    grid.fill(0, 0, 0, 4, 4, cells);
    expect([...cells]).toEqual([1, 1, 2, 2, 1, 1, 2, 2, 3, 3, 4, 4, 3, 3, 4, 4]);
    expect(grid.value(0, 0)).toBeNull();
    expect(nothing(2, 2).value(1, 1)).toBeNull();
  });
});

describe("tiles", () => {
  const [rows, columns] = [300, 520];
  const byte = (row: number, column: number) => (row * 7 + column) % 251;
  const asked: string[] = [];
  const server = async (address: string): Promise<ArrayBuffer> => {
    asked.push(address);
    const find = (name: string) => Number(new URLSearchParams(address.split("?")[1]).get(name));
    const level = sizes(rows, columns)[find("l")]!;
    const [i, j] = [find("i"), find("j")];
    const high = Math.min(TILE, level.rows - i * TILE);
    const wide = Math.min(TILE, level.columns - j * TILE);
    const values = Array.from({ length: high * wide }, (_, at) => byte(i * TILE + Math.floor(at / wide), j * TILE + (at % wide)));
    return find("e") ? Float32Array.from(values, (value) => value / 1000).buffer : Uint8Array.from(values).buffer;
  };
  const grid = new TiledGrid({ address: "tile?r=0&x=1&a=2&h=-1", rows, columns, scale: 1, recorded: null, fetch: server });
  const come = () => new Promise<void>((done) => setTimeout(done, 5));

  it("are asked for once and filled in when they have come, across their edges", async () => {
    const cells = new Uint8Array(60 * 300);
    let told = 0;
    grid.changed(() => (told += 1));
    expect(grid.fill(0, 240, 200, 60, 300, cells)).toBe(false);
    expect(grid.fill(0, 240, 200, 60, 300, cells)).toBe(false);
    expect(asked.length).toBe(4);
    expect(asked[0]).toBe("tile?r=0&x=1&a=2&h=-1&l=0&i=0&j=0");
    await come();
    expect(told).toBe(4);
    expect(grid.fill(0, 240, 200, 60, 300, cells)).toBe(true);
    for (const [row, column] of [[0, 0], [15, 55], [16, 56], [59, 299]] as const) {
      expect(cells[row * 300 + column]).toBe(byte(240 + row, 200 + column));
    }
  });
  it("give about a value at once and the exact one when its tile has come", async () => {
    expect(grid.value(299, 300)).toEqual({ value: restore(byte(299, 300)), exact: false });
    await come();
    expect(grid.value(299, 300)!.exact).toBe(true);
    expect(grid.value(299, 300)!.value).toBeCloseTo(byte(299, 300) / 1000);
  });
  it("are stood in for by a coarser level until they come", async () => {
    const coarse = new Uint8Array(75 * 130);
    grid.fill(2, 0, 0, 75, 130, coarse);
    await come();
    const cells = new Uint8Array(4);
    expect(grid.fill(0, 100, 518, 2, 2, cells)).toBe(false);
    expect([...cells]).toEqual([byte(25, 129), byte(25, 129), byte(25, 129), byte(25, 129)]);
  });
});

describe("A minus B", () => {
  const a = new DenseGrid({ rows: 2, columns: 2, bytes: Uint8Array.from([255, 0, 128, 128]) });
  const b = new DenseGrid({ rows: 2, columns: 2, bytes: Uint8Array.from([0, 255, 128, 0]) });

  it("is 128 plus the signed root of the difference", () => {
    const cells = new Uint8Array(4);
    const grid = difference(a, b, all(2), all(2));
    grid.fill(0, 0, 0, 2, 2, cells);
    expect([...cells]).toEqual([255, 1, 128, 128 + Math.round((127 * 128) / 255)]);
    expect(grid.signed).toBe(true);
    expect(grid.value(0, 1)).toEqual({ value: -1, exact: false });
  });
  it("is taken from exact values where both have them", () => {
    const exact = (values: number[]) => new DenseGrid({ rows: 1, columns: 2, bytes: new Uint8Array(2), exact: Float32Array.from(values) });
    const grid = difference(exact([0.75, 0.25]), exact([0.5, 0.5]), all(1), all(2));
    const cells = new Uint8Array(2);
    grid.fill(0, 0, 0, 1, 2, cells);
    expect([...cells]).toEqual([128 + 64, 128 - 63]);
    expect(grid.value(0, 0)).toEqual({ value: 0.25, exact: true });
  });
  it("leaves out what B has no place for", () => {
    const grid = difference(a, b, { left: [1], right: [0] }, all(2));
    expect([grid.rowKnown(0), grid.rowKnown(1)]).toEqual([false, true]);
    expect(grid.value(0, 0)).toBeNull();
    expect(grid.value(1, 1)!.value).toBeCloseTo((128 / 255) ** 2 - 1);
  });
  it("moves B's cells to A's places for a swipe", () => {
    const cells = new Uint8Array(4);
    const grid = moved(a, b, { left: [1], right: [0] }, { left: [0], right: [1] });
    grid.fill(0, 0, 0, 2, 2, cells);
    expect([...cells]).toEqual([0, 0, 255, 0]);
    expect(grid.value(1, 0)).toEqual({ value: 1, exact: false });
    expect(grid.columnKnown(1)).toBe(false);
  });
});
