// How strongly a value is drawn, on the scale that the reader chose.

import { LOWEST } from "../palette";
import { scale } from "../store";

/** 0 to 1: where between nothing (`low`) and all (`high`) a value lies; its size alone counts where nothing is 0. */
export function strength(value: number, low: number, high: number): number {
  if (!(high > low)) return 0;
  const size = low < 0 ? value : Math.abs(value);
  const share = Math.min(1, Math.max(0, (size - low) / (high - low)));
  if (scale.value === "sqrt") return Math.sqrt(share);
  if (scale.value === "log") return share <= LOWEST ? 0 : 1 - Math.log(share) / Math.log(LOWEST);
  return share;
}
