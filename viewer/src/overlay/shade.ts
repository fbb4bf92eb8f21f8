// How deeply each place of a line is shaded: its weight as a share of the largest, on the chosen scale, in the palette.

import { palette, payload } from "../store";
import { table, TWO_SIDED } from "../palette";
import { bothWays, type Line, reach } from "../link/reading";
import { strength } from "../link/strength";

export interface Shade {
  /** 0 to 1: how much of the shade a place gets; 0 where nothing is known. */
  share(place: number): number;
  /** The colour of a place without its opacity. */
  colour(place: number): string;
  /** The value of the deepest shade. */
  most: number;
}

export function shadeOf(line: Line): Shade {
  const [low, most] = reach(line);
  const colours = table(payload.value, bothWays() ? TWO_SIDED : palette.value);
  const share = (place: number): number => {
    const cell = line.cell(place);
    return cell && Number.isFinite(cell.value) ? strength(cell.value, low, most) : 0;
  };
  const colour = (place: number): string => {
    const sign = Math.sign(line.cell(place)?.value ?? 0);
    const at = 3 * (bothWays() ? 128 + Math.round(127 * sign * share(place)) : Math.round(255 * share(place)));
    return `rgb(${colours[at]} ${colours[at + 1]} ${colours[at + 2]})`;
  };
  return { share, colour, most };
}
