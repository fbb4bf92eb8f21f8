// A small picture of all of the matrix with a frame around what is in sight; painted anew only when its cells change.

import { prepare } from "../curves/canvas";
import type { Colours } from "../curves/colours";
import type { Grid } from "../grid";
import { paint, type Shown } from "../paint";
import { inSight, whole } from "./window";

const LONGEST = 112;
const SHORTEST = 24;

export class Minimap {
  private readonly picture = document.createElement("canvas");
  private made: unknown[] = [];

  draw(onto: HTMLCanvasElement, grid: Grid, colours: Uint32Array, shown: Shown, transposed: boolean, ink: Colours): void {
    const [rows, columns] = transposed ? [grid.columns, grid.rows] : [grid.rows, grid.columns];
    const longest = Math.max(rows, columns);
    const width = Math.round(Math.max(SHORTEST, (LONGEST * columns) / longest));
    const height = Math.round(Math.max(SHORTEST, (LONGEST * rows) / longest));
    onto.style.width = `${width}px`;
    onto.style.height = `${height}px`;
    const pen = prepare(onto, width, height);
    if (!pen) return;
    this.renew(grid, colours, shown, transposed, width, height);
    pen.fillStyle = ink.paper;
    pen.fillRect(0, 0, width, height);
    pen.drawImage(this.picture, 0, 0, width, height);
    const [first, left, end, right] = inSight.peek();
    const [down, across] = transposed ? [[left, right], [first, end]] : [[first, end], [left, right]];
    const [high, wide] = [height / rows, width / columns];
    frame(pen, across[0]! * wide, down[0]! * high, (across[1]! - across[0]!) * wide, (down[1]! - down[0]!) * high, ink);
  }

  private renew(grid: Grid, colours: Uint32Array, shown: Shown, transposed: boolean, width: number, height: number): void {
    const wanted = [grid, colours.join(), transposed, width, height];
    if (wanted.every((each, at) => each === this.made[at])) return;
    [this.picture.width, this.picture.height] = [width, height];
    const pen = this.picture.getContext("2d")!;
    const done = paint(grid, whole.peek(), colours, { context: pen, width, height, transposed }, shown);
    this.made = done.complete ? wanted : [];
  }
}

function frame(pen: CanvasRenderingContext2D, x: number, y: number, width: number, height: number, ink: Colours): void {
  for (const [colour, thick] of [[ink.paper, 4], [ink.ink, 2]] as const) {
    pen.strokeStyle = colour;
    pen.lineWidth = thick;
    pen.strokeRect(x, y, Math.max(3, width), Math.max(3, height));
  }
}
