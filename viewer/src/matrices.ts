// One matrix of an attention, from wherever the page has it: whole, from the server, in part, or at a moment of training.

import type { Grid } from "./grid";
import { quantise, quantiseSigned, restored } from "./grid";
import { DenseGrid } from "./grids/dense";
import { nothing, sparse, thumbnail } from "./grids/sparse";
import { TiledGrid } from "./grids/tiled";
import { prepareMask } from "./mask";
import type { Attention, Ref } from "./payload";
import { payload } from "./store";
import type { Head, Quantity } from "./store";
import { tensor } from "./tensors";

/** Which matrix is wanted. */
export interface Wanted {
  run: number;
  example: number;
  attention: Attention;
  head: Head;
  quantity: Quantity;
  frame: number | null;
}

/** Find a matrix; what the page does not have comes as a grid that knows nothing. */
export async function find({ run, example, attention, head, quantity, frame }: Wanted): Promise<Grid> {
  await prepareMask(attention);
  const moment = frame === null ? null : payload.peek().runs[run]!.training[frame];
  const filmed = moment?.weights[attention.id];
  if (quantity !== "weights") return (await viewed(attention, head, quantity)) ?? empty(attention);
  if (filmed) return dense(attention, await slice(filmed, head, attention), null);
  if (!attention.recorded) return empty(attention);
  return (await whole(attention, head)) ?? served(run, example, attention, head) ?? (await partial(attention, head)) ?? empty(attention);
}

function empty(attention: Attention): Grid {
  return nothing(attention.queries, attention.keys);
}

/** A matrix that lies in the page; the mean of heads also where only the heads do. */
async function whole(attention: Attention, head: Head): Promise<Grid | null> {
  const ref = attention.full[head];
  const exact = attention.exact[head];
  if (ref?.data) {
    return dense(attention, (await tensor(ref)) as Uint8Array, exact?.data ? ((await tensor(exact)) as Float32Array) : null);
  }
  const heads = Array.from({ length: attention.heads }, (_, each) => attention.full[each]);
  if (head !== "mean" || !heads.every((each) => each?.data)) return null;
  const all = await Promise.all(heads.map((each) => tensor(each!)));
  return dense(attention, mean(all as Uint8Array[], attention), null);
}

/** The mean of heads from their bytes. */
function mean(heads: Uint8Array[], { signed = false }: Attention): Uint8Array {
  const values = Float32Array.from({ length: 256 }, (_, byte) => restored(byte, 1, signed));
  const back = signed ? quantiseSigned : quantise;
  const bytes = new Uint8Array(heads[0]!.length);
  for (let at = 0; at < bytes.length; at += 1) {
    let sum = 0;
    for (const each of heads) sum += values[each[at]!]!;
    bytes[at] = back(sum / heads.length);
  }
  return bytes;
}

/** One head of a (heads, queries, keys) tensor, or their mean. */
async function slice(ref: Ref, head: Head, attention: Attention): Promise<Uint8Array> {
  const all = (await tensor(ref)) as Uint8Array;
  const [heads, size] = [ref.shape[0]!, ref.shape[1]! * ref.shape[2]!];
  const each = Array.from({ length: heads }, (_, at) => all.subarray(at * size, (at + 1) * size));
  return head === "mean" || head >= heads ? mean(each, attention) : each[head]!;
}

function dense(attention: Attention, bytes: Uint8Array, exact: Float32Array | null): Grid {
  return new DenseGrid({
    rows: attention.queries,
    columns: attention.keys,
    bytes: spread(attention, bytes, new Uint8Array(0)),
    exact: exact && spread(attention, exact, new Float32Array(0)),
    scale: attention.scale,
    signed: attention.signed ?? false,
    recorded: recorded(attention),
  });
}

/** Rows where they belong, if only some queries were recorded and only these were kept. */
function spread<Kind extends Uint8Array | Float32Array>(attention: Attention, numbers: Kind, kind: Kind): Kind {
  const { rows, keys, queries } = attention;
  if (!rows || numbers.length === queries * keys) return numbers;
  const wide = new (kind.constructor as new (length: number) => Kind)(queries * keys);
  if (attention.signed && wide instanceof Uint8Array) wide.fill(128);
  rows.forEach((row, at) => wide.set(numbers.subarray(at * keys, (at + 1) * keys), row * keys));
  return wide;
}

function recorded(attention: Attention): Uint8Array | null {
  if (!attention.rows) return null;
  const some = new Uint8Array(attention.queries);
  attention.rows.forEach((row) => (some[row] = 1));
  return some;
}

function served(run: number, example: number, attention: Attention, head: Head): Grid | null {
  const { tiles, runs } = payload.peek();
  if (tiles === null) return null;
  const number = runs[run]!.examples[example]!.attentions.indexOf(attention);
  return new TiledGrid({
    address: `${tiles}?r=${run}&x=${example}&a=${number}&h=${head === "mean" ? -1 : head}`,
    rows: attention.queries,
    columns: attention.keys,
    scale: attention.scale,
    signed: attention.signed ?? false,
    recorded: recorded(attention),
  });
}

/** What a page keeps of a matrix for which it had no room. */
async function partial(attention: Attention, head: Head): Promise<Grid | null> {
  const { top, thumbnails, queries, keys, heads, scale, signed } = attention;
  const at = head === "mean" ? heads : head;
  if (top) {
    const size = top.keys.shape[1]! * top.keys.shape[2]!;
    const [places, weights] = await Promise.all([tensor(top.keys), tensor(top.weights)]);
    return sparse(queries, keys, places.subarray(at * size, (at + 1) * size), weights.subarray(at * size, (at + 1) * size), scale, signed);
  }
  if (!thumbnails) return null;
  const [, height, width] = thumbnails.shape as [number, number, number];
  const all = (await tensor(thumbnails)) as Uint8Array;
  return thumbnail(queries, keys, all.subarray(at * height * width, (at + 1) * height * width), height, width, scale, signed);
}

/** Scores, value-weighted weights, rollout or flow, where they were kept; scores go below zero, so they are signed. */
async function viewed(attention: Attention, head: Head, quantity: Quantity): Promise<Grid | null> {
  const kept = attention.views[quantity];
  const ref = kept?.[head] ?? kept?.["mean"];
  if (!ref?.data) return null;
  const numbers = await tensor(ref);
  if (numbers instanceof Uint8Array) return new DenseGrid({ ...shape(attention), bytes: spread({ ...attention, signed: false }, numbers, numbers) });
  return scored(attention, spread(attention, numbers as Float32Array, new Float32Array(0)));
}

function shape(attention: Attention): { rows: number; columns: number; recorded: Uint8Array | null } {
  return { rows: attention.queries, columns: attention.keys, recorded: recorded(attention) };
}

/** float16's lowest number stands where a query may not look: there is no score. */
const NO_SCORE = -65504;

function scored(attention: Attention, exact: Float32Array): Grid {
  const there = Uint8Array.from(exact, (value) => (Number.isFinite(value) && value > NO_SCORE ? 1 : 0));
  let scale = 0;
  exact.forEach((value, at) => (scale = there[at] ? Math.max(scale, Math.abs(value)) : scale));
  scale ||= 1;
  const bytes = new Uint8Array(exact.length).fill(128);
  exact.forEach((value, at) => (bytes[at] = there[at] ? quantiseSigned(value, scale) : 128));
  return new DenseGrid({ ...shape(attention), bytes, exact, there, scale, signed: true });
}
