// The same numbers for a moment of training, from the weights that the film kept: 256 steps, so they are "about".

import { restored } from "../grid";
import { labels } from "../labels";
import type { Attention, Axis, Frame } from "../payload";
import { tensor } from "../tensors";
import type { Tables } from "./measures";

const measured = new WeakMap<Frame, Map<string, Promise<Tables>>>();

/** The numbers of an attention at a moment, or null where the film did not keep it. */
export function tablesAt(frame: Frame, attention: Attention, key: Axis): Promise<Tables> | null {
  const ref = frame.weights[attention.id];
  if (!ref) return null;
  const kept = measured.get(frame) ?? new Map<string, Promise<Tables>>();
  measured.set(frame, kept);
  let found = kept.get(attention.id);
  if (!found) {
    found = Promise.all([tensor(ref), tensor(attention.statistics.baseline)]).then(([bytes, baseline]) =>
      measure(bytes as Uint8Array, attention, baseline as Float32Array, sinks(key)),
    );
    kept.set(attention.id, found);
  }
  return found;
}

/** The keys that stand for no content, as in curves.py: special tokens, punctuation, places before a picture's patches. */
export function sinks(key: Axis): number[] {
  if (key.kind === "image") return [...key.prefix.keys()];
  if (key.kind !== "text") return [];
  const marks = [...labels(key).entries()].filter(([, label]) => /^\p{P}+$/u.test(label.trim())).map(([place]) => place);
  return [...new Set([...key.special, ...marks])];
}

/** Every number of every head; shares are |a| / sum |a|, as in Python's strength.py. */
export function measure(bytes: Uint8Array, attention: Attention, baseline: Float32Array, sink: number[]): Tables {
  const { heads, queries, keys } = attention;
  const made = () => new Float32Array(heads * queries);
  const tables: Tables = {
    heads,
    received: new Float32Array(heads * keys),
    largest: made(),
    effective: made(),
    focus: made(),
    spread: made(),
    sink: made(),
  };
  const weights = Float32Array.from({ length: 256 }, (_, byte) => Math.abs(restored(byte, attention.scale, attention.signed ?? false)));
  for (let row = 0; row < heads * queries; row += 1) {
    const cells = bytes.subarray(row * keys, (row + 1) * keys);
    const received = tables.received.subarray(Math.floor(row / queries) * keys);
    readRow(tables, row, cells, weights, received, sink);
  }
  for (let at = 0; at < tables.received.length; at += 1) {
    const even = baseline[at % keys]!;
    tables.received[at] = even > 0 ? tables.received[at]! / even : 0;
  }
  return tables;
}

function readRow(
  tables: Tables,
  row: number,
  cells: Uint8Array,
  weights: Float32Array,
  received: Float32Array,
  sink: number[],
): void {
  let [sum, most, mean, square, logs] = [0, 0, 0, 0, 0];
  for (let key = 0; key < cells.length; key += 1) {
    const weight = weights[cells[key]!]!;
    if (weight === 0) continue;
    received[key] = received[key]! + weight;
    sum += weight;
    most = Math.max(most, weight);
    mean += weight * key;
    square += weight * key * key;
    logs += weight * Math.log(weight);
  }
  tables.largest[row] = most;
  // a query that reads nothing stands nowhere
  const share = sum > 0 ? 1 / sum : NaN;
  tables.sink[row] = sum > 0 ? sink.reduce((mass, key) => mass + weights[cells[key] ?? 0]!, 0) * share : 0;
  const focus = mean * share;
  tables.effective[row] = sum > 0 ? Math.exp(Math.log(sum) - logs * share) : 0;
  tables.focus[row] = focus;
  tables.spread[row] = Math.sqrt(Math.max(0, square * share - focus ** 2));
}
