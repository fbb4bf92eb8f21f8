import { beforeAll, expect, test } from "vitest";
import { DenseGrid } from "../grids/dense";
import { table } from "../palette";
import { palette, payload, scale } from "../store";
import { invent } from "../testing/invent";
import { colour, contrast, ink, luminance, type Colour } from "./colour";

beforeAll(() => {
  payload.value = invent();
});

test("ink is told from every colour that there is by 4.5 to 1", () => {
  for (let at = 0; at < 4096; at += 1) {
    const ground: Colour = [(at & 15) * 17, ((at >> 4) & 15) * 17, (at >> 8) * 17];
    const drawn = ink(ground) === "#000" ? 0 : 1;
    expect(contrast(luminance(ground), drawn)).toBeGreaterThanOrEqual(4.5);
  }
});

test("white has the luminance 1 and a middle grey 0.2158", () => {
  expect(luminance([255, 255, 255])).toBeCloseTo(1, 6);
  expect(luminance([128, 128, 128])).toBeCloseTo(0.2158, 3);
  expect(contrast(1, 0)).toBeCloseTo(21, 6);
});

test("a value has the colour of its cell: a quarter is half way up the square-root scale", () => {
  [palette.value, scale.value] = ["viridis", "sqrt"];
  const grid = new DenseGrid({ rows: 1, columns: 1, bytes: new Uint8Array([128]) });
  const colours = table(payload.value, "viridis");
  expect(colour(grid, 0.25)).toEqual([...colours.subarray(3 * 128, 3 * 129)]);
  expect(colour(grid, 1)).toEqual([...colours.subarray(3 * 255)]);
  scale.value = "linear";
  expect(colour(grid, 0.25)).toEqual([...colours.subarray(3 * 64, 3 * 65)]);
  scale.value = "sqrt";
});

test("a difference takes the two-sided palette, whatever palette was chosen", () => {
  const grid = new DenseGrid({ rows: 1, columns: 1, bytes: new Uint8Array([128]), signed: true });
  const colours = table(payload.value, "balance");
  expect(colour(grid, 0)).toEqual([...colours.subarray(3 * 128, 3 * 129)]);
  expect(colour(grid, -1)).toEqual([...colours.subarray(3, 6)]);
  expect(colour(grid, 1)).toEqual([...colours.subarray(765)]);
});
