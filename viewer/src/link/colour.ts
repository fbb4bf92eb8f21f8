// The colour of a value, the same as its cell has in the heat map, and an ink that can be read on it.

import { computed } from "@preact/signals";
import type { Grid } from "../grid";
import { quantise, quantiseSigned } from "../grid";
import { place, table, TWO_SIDED } from "../palette";
import { factor } from "../range";
import { palette, payload, scale } from "../store";

export type Colour = [number, number, number];

const oneSided = computed(() => table(payload.value, palette.value));
const twoSided = computed(() => table(payload.value, TWO_SIDED));

/** The colour of a cell of this value. */
export function colour(grid: Grid, value: number): Colour {
  const colours = (grid.signed ? twoSided : oneSided).value;
  const byte = grid.signed ? quantiseSigned(value, grid.scale) : quantise(value, grid.scale);
  const at = 3 * place(byte, scale.value, grid.signed, factor(grid));
  return [colours[at]!, colours[at + 1]!, colours[at + 2]!];
}

export function written([red, green, blue]: Colour): string {
  return `rgb(${red} ${green} ${blue})`;
}

/** Black or white, whichever is told better from the ground; one of them always is by 4.5 to 1 and more. */
export function ink(ground: Colour): "#000" | "#fff" {
  return contrast(luminance(ground), 0) >= contrast(luminance(ground), 1) ? "#000" : "#fff";
}

/** Relative luminance, WCAG 2.2. */
export function luminance(of: Colour): number {
  const [red, green, blue] = of.map((part) => {
    const share = part / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red! + 0.7152 * green! + 0.0722 * blue!;
}

export function contrast(one: number, other: number): number {
  return (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
}
