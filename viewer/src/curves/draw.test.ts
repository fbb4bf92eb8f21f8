import { expect, test } from "vitest";
import type { Colours } from "./colours";
import { cells, draw, type Pen, type Picture, placeAt, yOf } from "./draw";
import { line, span } from "./marks";
import { plainScale } from "./scale";

const colours = { paper: "p", ink: "i", quiet: "q", line: "l", accent: "a", focus: "f", runs: ["A", "B"], font: "x" } as Colours;

/** A pen that writes down where it went. */
function pen(): Pen & { lines: [string, number, number][]; texts: [string, number][] } {
  const kept = { lines: [] as [string, number, number][], texts: [] as [string, number][] };
  return {
    ...kept,
    strokeStyle: "",
    setLineDash: () => undefined,
    beginPath: () => undefined,
    stroke: () => undefined,
    fill: () => undefined,
    arc: () => undefined,
    moveTo(this: { strokeStyle: string }, x: number, y: number) {
      kept.lines.push([`${this.strokeStyle} from`, x, y]);
    },
    lineTo(this: { strokeStyle: string }, x: number, y: number) {
      kept.lines.push([`${this.strokeStyle} to`, x, y]);
    },
    fillText: (text: string, x: number) => void kept.texts.push([text, x]),
    measureText: (text: string) => ({ width: 6 * text.length }),
  } as unknown as ReturnType<typeof pen>;
}

function picture(values: ArrayLike<number>, change: Partial<Picture> = {}): Picture {
  return {
    width: 100,
    height: 50,
    margin: { left: 0, right: 0, top: 0, bottom: 0 },
    count: values.length,
    across: cells(values.length),
    scale: { ...plainScale(Array.from(values)), ticks: [] },
    shade: null,
    rules: [],
    areas: [],
    lines: [{ values, colour: "A", width: 1, dash: [] }],
    ticks: [],
    title: "",
    ...change,
  };
}

test("a short curve goes through its values and lifts the pen at a gap", () => {
  const drawn = pen();
  draw(drawn, picture([0, 1, NaN, 1]), colours);
  expect(drawn.lines).toEqual([
    ["A from", 12.5, 50],
    ["A to", 37.5, 0],
    ["A from", 87.5, 0],
  ]);
});

test("a curve of 4,096 places is drawn in as many columns as there are pixels, and its one peak reaches the top", () => {
  const values = new Float32Array(4096);
  values[2048] = 1;
  const drawn = pen();
  draw(drawn, picture(values), colours);
  expect(drawn.lines).toHaveLength(200);
  expect(drawn.lines.filter(([, , y]) => y === 0)).toEqual([["A to", 50.5, 0]]);
});

test("ticks at the ends are moved into the picture, and one that would lie over another is left out", () => {
  const drawn = pen();
  const ticks = [0, 1, 2, 3].map((place) => ({ place, text: "12345" }));
  draw(drawn, picture([0, 1, 2, 3], { ticks }), colours);
  expect(drawn.texts).toEqual([
    ["12345", 12.5],
    ["12345", 62.5],
  ]);
});

test("values along the side have room, and the one with a rule comes first", () => {
  const ticks = [0, 1, 1.1, 2, 3].map((value) => ({ value, text: String(value) }));
  const drawn = pen();
  draw(drawn, picture([0, 3], { scale: { ...plainScale([0, 3]), ticks }, rules: [1.1], lines: [] }), colours);
  expect(drawn.texts.map(([text]) => text)).toEqual(["1.1", "0", "3", "2"]);
});

test("the crosshair stands in the middle of its cell, and a brush covers whole cells that can be seen", () => {
  const shown = picture([0, 1, 2, 3]);
  expect(line(shown, 1)).toEqual({ left: 38, width: 0 });
  expect(span(shown, [1, 3])).toEqual({ left: 25, width: 50 });
  expect(span({ ...shown, count: 4096 }, [0, 1]).width).toBe(2);
});

test("a pointer is over the cell it is in, also beyond the ends", () => {
  const shown = picture([0, 1, 2, 3]);
  expect([-5, 0, 24, 26, 99, 300].map((x) => placeAt(shown, x))).toEqual([0, 0, 0, 1, 3, 3]);
  expect(yOf(shown, 1.5)).toBe(25);
});
