// An attention made up from weights: bytes, exact values, small pictures, strongest keys, and every statistic by its definition.

import { quantise } from "../grid";
import { SMALLEST } from "../grids/dense";
import { block } from "../grids/sparse";
import type { Attention, Ref, Summary } from "../payload";
import { put } from "./tensors";

/** Rows that sum to one, most of each on one key. */
export function weights(
  heads: number,
  queries: number,
  keys: number,
  next: () => number,
  peak: (head: number, query: number) => number,
  causal = false,
): Float32Array[] {
  return Array.from({ length: heads }, (_, head) => {
    const matrix = new Float32Array(queries * keys);
    for (let query = 0; query < queries; query += 1) {
      const visible = causal ? query + 1 : keys;
      const row = Float32Array.from({ length: visible }, (_, key) => next() ** 3 + (key === peak(head, query) ? 3 : 0.02));
      const sum = row.reduce((left, right) => left + right, 0);
      row.forEach((value, key) => (matrix[query * keys + key] = value / sum));
    }
    return matrix;
  });
}

interface Extra {
  mask?: Attention["mask"];
  allowed?: Uint8Array;
  partial?: boolean | undefined;
  views?: boolean;
}

export function attention(id: string, query: string, key: string, layer: number, heads: Float32Array[], extra: Extra = {}): Attention {
  const queries = Number(SIZES[query]);
  const keys = heads[0]!.length / queries;
  const average = heads[0]!.map((_, at) => heads.reduce((sum, each) => sum + each[at]!, 0) / heads.length);
  const all = [...heads, Float32Array.from(average)];
  const matrices = extra.partial ? [] : all.map((each, at) => [at === heads.length ? "mean" : String(at), each] as const);
  return {
    id,
    query,
    key,
    layer,
    heads: heads.length,
    queries,
    keys,
    mask: extra.mask ?? "full",
    allowed: extra.allowed ? put(extra.allowed, [queries, keys], "u8") : null,
    sums_to_one: true,
    scale: 1,
    source: "recomputed in float32 from recorded queries and keys",
    rows: null,
    recorded: true,
    ...measured(heads, queries, keys, extra.mask ?? "full"),
    thumbnails: thumbnails(all, queries, keys),
    top: strongestOf(all, queries, keys),
    full: Object.fromEntries(matrices.map(([name, each]) => [name, put(bytes(each), [queries, keys], "u8")])),
    exact: Object.fromEntries(matrices.map(([name, each]) => [name, put(Float32Array.from(each), [queries, keys], "f16")])),
    views: extra.views && !extra.partial ? views(all, queries, keys) : {},
  };
}

/** How many places each axis has, by name. */
export const SIZES: Record<string, number> = { source: 9, target: 7, caption: 4, patches: 13, words: 5, frames: 40, horizon: 6, days: 48 };

function bytes(values: Float32Array): Uint8Array {
  return Uint8Array.from(values, (value) => quantise(value));
}

function views(all: Float32Array[], queries: number, keys: number): Attention["views"] {
  const named = (make: (values: Float32Array) => Ref) =>
    Object.fromEntries(all.map((each, at) => [at === all.length - 1 ? "mean" : String(at), make(each)]));
  return {
    scores: named((each) => put(each.map((value) => Math.log(value + 1e-4)), [queries, keys], "f16")),
    values: named((each) => put(bytes(each.map((value, at) => value * (0.4 + 0.6 * ((at % keys) / keys)))), [queries, keys], "u8")),
  };
}

function thumbnails(all: Float32Array[], queries: number, keys: number): Ref {
  const [height, width] = [Math.min(queries, SMALLEST), Math.min(keys, SMALLEST)];
  const small = new Uint8Array(all.length * height * width);
  all.forEach((matrix, head) => {
    for (let at = 0; at < matrix.length; at += 1) {
      const [row, column] = [block(Math.floor(at / keys), queries, height), block(at % keys, keys, width)];
      const cell = (head * height + row) * width + column;
      small[cell] = Math.max(small[cell]!, quantise(matrix[at]!));
    }
  });
  return put(small, [all.length, height, width], "u8");
}

function strongestOf(all: Float32Array[], queries: number, keys: number): Attention["top"] {
  const number = Math.min(3, keys);
  const places = new Uint32Array(all.length * queries * number);
  const strengths = new Uint8Array(places.length);
  let sum = 0;
  all.forEach((matrix, head) => {
    for (let query = 0; query < queries; query += 1) {
      const row = matrix.subarray(query * keys, (query + 1) * keys);
      const order = Array.from(row.keys()).sort((left, right) => row[right]! - row[left]!);
      for (let at = 0; at < number; at += 1) {
        const cell = (head * queries + query) * number + at;
        places[cell] = order[at]!;
        strengths[cell] = quantise(row[order[at]!]!);
        sum += row[order[at]!]!;
      }
    }
  });
  const shape = [all.length, queries, number];
  return { keys: put(places, shape, "u32"), weights: put(strengths, shape, "u8"), share: sum / (all.length * queries) };
}

/** Every statistic by its definition in viewer.md. */
function measured(heads: Float32Array[], queries: number, keys: number, mask: Attention["mask"]): Pick<Attention, "statistics" | "summary"> {
  const baseline = new Float32Array(keys);
  for (let query = 0; query < queries; query += 1) {
    const visible = mask === "causal" ? query + 1 : keys;
    for (let key = 0; key < visible; key += 1) baseline[key]! += 1 / visible;
  }
  const each = heads.map((matrix) => rows(matrix, queries, keys));
  const joined = (name: keyof Row) => put(Float32Array.from(each.flatMap((head) => head.map((row) => row[name]))), [heads.length, queries], "f32");
  const received = heads.flatMap((matrix) =>
    Array.from({ length: keys }, (_, key) => {
      let sum = 0;
      for (let query = 0; query < queries; query += 1) sum += matrix[query * keys + key]!;
      return sum / baseline[key]!;
    }),
  );
  return {
    statistics: {
      received: put(Float32Array.from(received), [heads.length, keys], "f32"),
      baseline: put(baseline, [keys], "f32"),
      largest: joined("largest"),
      effective: joined("effective"),
      focus: joined("focus"),
      spread: joined("spread"),
      sink: joined("sink"),
    },
    summary: summary(each, queries, keys),
  };
}

interface Row {
  largest: number;
  effective: number;
  focus: number;
  spread: number;
  sink: number;
}

function rows(matrix: Float32Array, queries: number, keys: number): Row[] {
  return Array.from({ length: queries }, (_, query) => {
    const row = Array.from(matrix.subarray(query * keys, (query + 1) * keys));
    const focus = row.reduce((sum, weight, key) => sum + weight * key, 0);
    return {
      largest: Math.max(...row),
      effective: Math.exp(-row.reduce((sum, weight) => sum + (weight > 0 ? weight * Math.log(weight) : 0), 0)),
      focus,
      spread: Math.sqrt(Math.max(0, row.reduce((sum, weight, key) => sum + weight * (key - focus) ** 2, 0))),
      sink: row[0]! + (keys > 1 ? row[keys - 1]! : 0),
    };
  });
}

function summary(heads: Row[][], queries: number, keys: number): Summary {
  const average = (read: (row: Row, query: number) => number) =>
    heads.map((head) => head.reduce((sum, row, query) => sum + read(row, query), 0) / head.length);
  const slope = (keys - 1) / Math.max(1, queries - 1);
  return {
    entropy: average((row) => Math.log(row.effective)),
    sink: average((row) => row.sink),
    distance: average((row, query) => Math.abs(row.focus - query)),
    diagonality: average((row, query) => Math.max(0, 1 - Math.abs(row.focus - query * slope) / Math.max(1, keys - 1))),
    alignment: heads.map(() => null),
  };
}
