// A matrix that stays with the server: tiles of it are fetched when they come into sight, and the latest are kept.

import type { Grid, Level, Shrink } from "../grid";
import { restored } from "../grid";
import { sizes } from "./dense";

/** Cells along a side of a tile, as in Python's server.py. */
export const TILE = 256;
const KEPT = 1024;
const KEPT_EXACT = 64;

export type Fetch = (address: string) => Promise<ArrayBuffer>;

export interface Source {
  /** Where tiles are asked for, with everything that names the matrix: "tile?r=0&x=0&a=3&h=-1". */
  address: string;
  rows: number;
  columns: number;
  scale: number;
  signed?: boolean;
  /** 1 for rows that were recorded; null: all. */
  recorded: Uint8Array | null;
  fetch?: Fetch;
}

export class TiledGrid implements Grid {
  readonly rows: number;
  readonly columns: number;
  readonly scale: number;
  readonly signed: boolean;
  readonly known = null;
  readonly extent = "all";
  readonly levels: Level[];
  private readonly tiles = new Latest<Uint8Array>(KEPT);
  private readonly exact = new Latest<Float32Array>(KEPT_EXACT);
  private readonly asked = new Set<string>();
  private readonly listeners = new Set<() => void>();

  constructor(private readonly source: Source) {
    this.rows = source.rows;
    this.columns = source.columns;
    this.scale = source.scale;
    this.signed = source.signed ?? false;
    this.levels = sizes(source.rows, source.columns);
  }

  fill(level: number, firstRow: number, firstColumn: number, rows: number, columns: number, out: Uint8Array, by: Shrink = "maximum"): boolean {
    const mean = by === "mean" && level > 0;
    let complete = true;
    for (let i = Math.floor(firstRow / TILE); i * TILE < firstRow + rows; i += 1) {
      for (let j = Math.floor(firstColumn / TILE); j * TILE < firstColumn + columns; j += 1) {
        const part = overlap([i, j], [firstRow, firstColumn, rows, columns], this.levels[level]!);
        const tile = this.tile(level, i, j, mean);
        if (tile) copy(tile, part, out, columns);
        else this.standIn(level, part, out, columns, mean);
        complete &&= tile !== undefined;
      }
    }
    return complete;
  }

  value(row: number, column: number): { value: number; exact: boolean } | null {
    if (!this.rowKnown(row)) return null;
    const [i, j] = [Math.floor(row / TILE), Math.floor(column / TILE)];
    const width = Math.min(TILE, this.columns - j * TILE);
    const at = (row - i * TILE) * width + column - j * TILE;
    const name = `e${i},${j}`;
    const exact = this.exact.find(name);
    if (exact) return { value: exact[at]!, exact: true };
    this.ask(name, `&l=0&i=${i}&j=${j}&e=1`, (buffer) => this.exact.keep(name, new Float32Array(buffer)));
    const tile = this.tiles.find(nameOf(0, i, j, false));
    return tile ? { value: restored(tile[at]!, this.scale, this.signed), exact: false } : null;
  }

  rowKnown(row: number): boolean {
    return this.source.recorded?.[row] !== 0;
  }

  columnKnown(): boolean {
    return true;
  }

  changed(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  private tile(level: number, i: number, j: number, mean: boolean): Uint8Array | undefined {
    const name = nameOf(level, i, j, mean);
    const found = this.tiles.find(name);
    if (!found) this.ask(name, `&l=${level}&i=${i}&j=${j}${mean ? "&m=1" : ""}`, (buffer) => this.tiles.keep(name, new Uint8Array(buffer)));
    return found;
  }

  /** Until a tile has come, what is known at a coarser level stands in for it; a tile lies within one tile of each. */
  private standIn(level: number, part: Part, out: Uint8Array, columns: number, mean: boolean): void {
    const found = this.coarser(level, part, mean);
    for (let row = 0; row < part.rows; row += 1) {
      const start = (part.outRow + row) * columns + part.outColumn;
      if (!found) out.fill(this.signed ? 128 : 0, start, start + part.columns);
      const line = found && ((part.firstRow + row) >> found.down) * found.width - found.first;
      for (let column = 0; found && column < part.columns; column += 1) {
        out[start + column] = found.tile[line! + ((part.firstColumn + column) >> found.down)]!;
      }
    }
  }

  private coarser(level: number, part: Part, mean: boolean): { tile: Uint8Array; down: number; width: number; first: number } | null {
    for (let down = 1; level + down < this.levels.length; down += 1) {
      const [i, j] = [Math.floor((part.firstRow >> down) / TILE), Math.floor((part.firstColumn >> down) / TILE)];
      const tile = this.tiles.find(nameOf(level + down, i, j, mean));
      const width = Math.min(TILE, this.levels[level + down]!.columns - j * TILE);
      if (tile) return { tile, down, width, first: i * TILE * width + j * TILE };
    }
    return null;
  }

  private ask(name: string, place: string, keep: (buffer: ArrayBuffer) => void): void {
    if (this.asked.has(name)) return;
    this.asked.add(name);
    const fetching = (this.source.fetch ?? fetched)(this.source.address + place);
    fetching
      .then(keep)
      .then(() => this.listeners.forEach((listener) => listener()))
      // A server that has gone away is told by the tiles that stay empty; the next time they are in sight they are asked for anew.
      .catch(() => undefined)
      .finally(() => this.asked.delete(name));
  }
}

function nameOf(level: number, i: number, j: number, mean: boolean): string {
  return `${mean ? "m" : ""}${level}/${i},${j}`;
}

async function fetched(address: string): Promise<ArrayBuffer> {
  const answer = await fetch(address);
  if (!answer.ok) throw new Error(`the server answered ${answer.status}`);
  return answer.arrayBuffer();
}

/** What a tile and the cells that are wanted have in common: where in the level, where in the tile, where in the output. */
interface Part {
  firstRow: number;
  firstColumn: number;
  tileRow: number;
  tileColumn: number;
  tileWidth: number;
  outRow: number;
  outColumn: number;
  rows: number;
  columns: number;
}

function overlap([i, j]: [number, number], [row, column, rows, columns]: [number, number, number, number], level: Level): Part {
  const firstRow = Math.max(row, i * TILE);
  const firstColumn = Math.max(column, j * TILE);
  return {
    firstRow,
    firstColumn,
    tileRow: firstRow - i * TILE,
    tileColumn: firstColumn - j * TILE,
    tileWidth: Math.min(TILE, level.columns - j * TILE),
    outRow: firstRow - row,
    outColumn: firstColumn - column,
    rows: Math.min(row + rows, (i + 1) * TILE) - firstRow,
    columns: Math.min(column + columns, (j + 1) * TILE) - firstColumn,
  };
}

function copy(tile: Uint8Array, part: Part, out: Uint8Array, columns: number): void {
  for (let row = 0; row < part.rows; row += 1) {
    const start = (part.tileRow + row) * part.tileWidth + part.tileColumn;
    out.set(tile.subarray(start, start + part.columns), (part.outRow + row) * columns + part.outColumn);
  }
}

/** The values that were wanted last, so many of them. */
class Latest<Value> {
  private readonly values = new Map<string, Value>();

  constructor(private readonly most: number) {}

  find(name: string): Value | undefined {
    const found = this.values.get(name);
    if (found !== undefined) {
      this.values.delete(name);
      this.values.set(name, found);
    }
    return found;
  }

  keep(name: string, value: Value): void {
    this.values.set(name, value);
    if (this.values.size > this.most) this.values.delete(this.values.keys().next().value!);
  }
}
