// Slanting lines under cells that have no weight, not even zero.

import type { Colours } from "../curves/colours";

let pattern: { made: CanvasPattern | null; colour: string } | null = null;

/** Fill a canvas with them. */
export function hatch(pen: CanvasRenderingContext2D, width: number, height: number, ink: Colours): void {
  const colour = getComputedStyle(document.documentElement).getPropertyValue("--hatch").trim() || ink.quiet;
  if (pattern?.colour !== colour) {
    const tile = document.createElement("canvas");
    tile.width = tile.height = 8;
    const inner = tile.getContext("2d")!;
    inner.strokeStyle = colour;
    inner.lineWidth = 1;
    for (const start of [-8, 0, 8]) {
      inner.moveTo(start, 8);
      inner.lineTo(start + 8, 0);
    }
    inner.stroke();
    pattern = { made: pen.createPattern(tile, "repeat"), colour };
  }
  if (!pattern.made) return;
  pen.fillStyle = pattern.made;
  pen.fillRect(0, 0, width, height);
}
