// A payload made up for tests and for looking at the page: every kind of axis, mask, and record, small enough to check by hand.

import { quantise } from "../grid";
import type { Attention, Axis, Beams, Example, Frame, GraphEdge, GraphNode, Payload, Run, Step, Summary } from "../payload";
import { attention, SIZES, weights } from "./attention";
import { balance, ramp } from "./palettes";
import { put, random } from "./tensors";

export { random } from "./tensors";

export interface Options {
  /** How many runs; with two the second is another model on the same sentence. */
  runs?: 1 | 2;
  /** Layers of each kind of attention. */
  layers?: number;
  heads?: number;
  /** A further example: one attention of this many queries and keys. */
  large?: [number, number];
  /** Keep only the strongest keys and small pictures, as a page over its budget does. */
  partial?: boolean;
}

const SOURCE = ["Tom", "chases", "Jerry", "all", "around", "the", "house", ".", "<eos>"];
const TARGET = ["汤姆", "满", "屋子", "追逐", "杰瑞", "。", "<eos>"];
/** Which source token each target token translates. */
const LINKS = [0, 3, 6, 1, 2, 7, 8];
const OTHER_TARGET = ["汤姆", "在", "屋子", "追", "杰瑞", "。", "<eos>"];

export function invent(options: Options = {}): Payload {
  const runs = [run("bahdanau", 1, options)];
  if (options.runs === 2) runs.push(run("luong", 7, options));
  return {
    format: "attn-page",
    version: 1,
    state: "",
    language: "en",
    tiles: null,
    runs,
    palettes: { cividis: ramp("cividis"), viridis: ramp("viridis"), magma: ramp("magma"), greys: ramp("greys"), balance: balance() },
    about: { version: "0.0.0", licences: [{ name: "preact", licence: "MIT", text: "The text of the licence." }] },
  };
}

function run(name: string, seed: number, options: Options): Run {
  const second = seed !== 1;
  const examples = [translation(seed, second, options), picture(seed, options), sound(seed, options), series(seed, options)];
  if (options.large) examples.push(large(options.large, seed));
  return {
    name: `${name}.step 4000`,
    notes: ["recorded through the reference, since no kernel returns weights here"],
    graph: graph(examples[0]!),
    examples,
    training: training(examples[0]!, seed),
    omitted: options.partial ? [{ what: "decoder.0.self", bytes: 1_200_000, call: 'trace.to_html("run.html", budget="64MB")' }] : [],
  };
}

function text(pieces: string[], lang: string, joint: string): Axis {
  const spans: ([number, number] | null)[] = [];
  let all = "";
  for (const piece of pieces) {
    if (piece === "<eos>") {
      spans.push(null);
      continue;
    }
    if (all) all += joint;
    spans.push([all.length, all.length + piece.length]);
    all += piece;
  }
  const special = pieces.flatMap((piece, place) => (piece === "<eos>" ? [place] : []));
  return { kind: "text", length: pieces.length, labels: [...pieces], pieces: [...pieces], text: all, spans, special, lang };
}

function translation(seed: number, second: boolean, options: Options): Example {
  const { layers = 2, heads = 4 } = options;
  const target = second ? OTHER_TARGET : TARGET;
  const axes = { source: text(SOURCE, "en", " "), target: text(target, "zh-Hans", "") };
  const next = random(seed);
  const attentions: Attention[] = [];
  for (let layer = 0; layer < layers; layer += 1) {
    const encoder = weights(heads, 9, 9, next, (head, query) => (head + query) % 9);
    attentions.push(attention(`encoder.${layer}.self`, "source", "source", layer, encoder, { partial: options.partial }));
  }
  for (let layer = 0; layer < layers; layer += 1) {
    const self = weights(heads, 7, 7, next, (head, query) => Math.max(0, query - head), true);
    attentions.push(attention(`decoder.${layer}.self`, "target", "target", layer, self, { mask: "causal", partial: options.partial }));
    const cross = weights(heads, 7, 9, next, (head, query) => (head === heads - 1 ? 8 : LINKS[query]!));
    attentions.push(attention(`decoder.${layer}.cross`, "target", "source", layer, cross, { partial: options.partial, views: true }));
  }
  return { title: "Tom chases Jerry all around the house.", axes, attentions, steps: steps(target), beams: beams(target) };
}

function steps(target: string[]): Step[] {
  return target.map((token, query) => ({
    query,
    token,
    logprob: Math.log(0.9 - 0.1 * (query % 3)),
    candidates: [
      [token, Math.log(0.9 - 0.1 * (query % 3))],
      ["杰里", Math.log(0.06)],
      ["<unk>", Math.log(0.01)],
    ],
  }));
}

/** Two rows a step: the answer, and a branch off it that dies at the next step. */
function beams(target: string[]): Beams {
  const length = target.length;
  const values = Float32Array.from({ length: length * 2 * 9 }, (_, at) => {
    const [step, row, key] = [Math.floor(at / 18), Math.floor(at / 9) % 2, at % 9];
    return key === (row === 0 ? LINKS[step] : (LINKS[step]! + 1) % 9) ? 0.6 : 0.05;
  });
  return {
    parents: target.map((_, step) => (step === 0 ? [0, 0] : [0, 0])),
    tokens: target.map((token, step) => [token, step === 0 ? "杰瑞" : "了"]),
    scores: target.map((_, step) => [-0.2 * (step + 1), -0.2 * step - 1.7]),
    ended: target.map((_, step) => [step === length - 1, false]),
    best: [length - 1, 0],
    attention: "decoder.1.cross",
    weights: put(values, [length, 2, 9], "f16"),
  };
}

function picture(seed: number, options: Options): Example {
  const next = random(seed + 1);
  const pixels = new Uint8Array(48 * 64 * 3);
  for (let at = 0; at < pixels.length; at += 1) {
    const [row, column] = [Math.floor(at / 192), Math.floor(at / 3) % 64];
    pixels[at] = row > 16 && row < 36 && column > 20 && column < 44 ? [220, 120, 30][at % 3]! : [70, 110, 170][at % 3]! + row;
  }
  const axes: Example["axes"] = {
    caption: text(["a", "red", "box", "<eos>"], "en", " "),
    patches: { kind: "image", length: 13, labels: null, grid: [3, 4], size: [48, 64], pixels: put(pixels, [48, 64, 3], "u8"), prefix: ["CLS"] },
  };
  const made = weights(2, 4, 13, next, (head, query) => [1, 6, 7, 0][query]! + head * 0);
  return { title: "a red box", axes, attentions: [attention("decoder.cross", "caption", "patches", 0, made, { partial: options.partial })], steps: [], beams: null };
}

function sound(seed: number, options: Options): Example {
  const next = random(seed + 2);
  const wave = Float32Array.from({ length: 8000 }, (_, at) => 0.3 * Math.sin((2 * Math.PI * 220 * at) / 8000));
  const picture = Uint8Array.from({ length: 20 * 80 }, (_, at) => Math.min(255, Math.round(255 * next() * (1 - Math.floor(at / 80) / 20))));
  const axes: Example["axes"] = {
    words: text(["open", "the", "red", "door", "<eos>"], "en", " "),
    frames: { kind: "audio", length: 40, labels: null, seconds_per_step: 0.025, spectrogram: put(picture, [20, 80], "u8"), sound: put(wave, [8000], "f32"), rate: 8000 },
  };
  const made = weights(2, 5, 40, next, (_, query) => 4 + query * 8);
  return { title: "open the red door", axes, attentions: [attention("decoder.cross", "words", "frames", 0, made, { partial: options.partial })], steps: [], beams: null };
}

function series(seed: number, options: Options): Example {
  const next = random(seed + 3);
  const day = (place: number): number => 1_700_000_000 + 3600 * place;
  const values = (length: number, first: number) =>
    put(Float32Array.from({ length }, (_, at) => Math.sin(((first + at) / 24) * 2 * Math.PI) + 0.1 * next()), [length, 1], "f32");
  const axes: Example["axes"] = {
    horizon: { kind: "series", length: 6, labels: null, times: Array.from({ length: 6 }, (_, at) => day(48 + at)), values: values(6, 48), names: ["load"], split: 0, dates: true },
    days: { kind: "series", length: 48, labels: null, times: Array.from({ length: 48 }, (_, at) => day(at)), values: values(48, 0), names: ["load"], split: null, dates: true },
  };
  const made = weights(2, 6, 48, next, (_, query) => 24 + query);
  return { title: "load of two days", axes, attentions: [attention("decoder.cross", "horizon", "days", 0, made, { partial: options.partial })], steps: [], beams: null };
}

/** A diagonal with one far stripe, and one cell that must never vanish. */
function large([queries, keys]: [number, number], seed: number): Example {
  const next = random(seed + 4);
  const cells = new Uint8Array(queries * keys);
  for (let query = 0; query < queries; query += 1) {
    for (let key = 0; key < keys; key += 1) cells[query * keys + key] = next() < 0.02 ? 12 : 2;
    cells[query * keys + Math.floor((query * keys) / queries)] = 200;
  }
  cells[3 * keys + keys - 5] = 255;
  SIZES["long"] = queries;
  const small = Float32Array.from({ length: 1 }, () => 1);
  const axes: Example["axes"] = { long: { kind: "index", length: queries, labels: null }, memory: { kind: "index", length: keys, labels: null } };
  const ref = put(cells, [queries, keys], "u8");
  const flat = (length: number) => put(new Float32Array(length).fill(1), [1, length], "f32");
  const statistics = { received: flat(keys), baseline: flat(keys), largest: flat(queries), effective: flat(queries), focus: flat(queries), spread: flat(queries), sink: flat(queries) };
  const made: Attention = {
    ...attention("memory.read", "caption", "patches", 0, [new Float32Array(4).fill(small[0]!)]),
    query: "long",
    key: "memory",
    queries,
    keys,
    statistics,
    thumbnails: null,
    top: null,
    full: { "0": ref, mean: ref },
    exact: {},
  };
  return { title: `${queries} x ${keys}`, axes, attentions: [made], steps: [], beams: null };
}

function training(example: Example, seed: number): Frame[] {
  const filmed = example.attentions.filter((each) => each.id.endsWith("cross"));
  return [0, 500, 1000, 4000].map((step, at) => ({
    step,
    loss: 4 / (1 + at),
    example: 0,
    weights: Object.fromEntries(filmed.map((each) => [each.id, put(early(each, seed, at), [each.heads, each.queries, each.keys], "u8")])),
    summary: Object.fromEntries(filmed.map((each) => [each.id, shifted(each.summary, at / 3)])),
  }));
}

/** From even weights towards links that are sure. */
function early(of: Attention, seed: number, at: number): Uint8Array {
  const next = random(seed + 10);
  const heads = weights(of.heads, of.queries, of.keys, next, (_, query) => LINKS[query] ?? 0);
  const sure = at / 3;
  return Uint8Array.from(heads.flatMap((each) => Array.from(each, (value) => quantise(sure * value + (1 - sure) / of.keys))));
}

function shifted(of: Summary, sure: number): Summary {
  return {
    entropy: of.entropy.map((value) => (value ?? 0) * (2 - sure)),
    sink: of.sink,
    distance: of.distance,
    diagonality: of.diagonality.map((value) => (value ?? 0) * (0.4 + 0.6 * sure)),
    alignment: of.alignment,
  };
}

function graph(example: Example): Run["graph"] {
  const nodes: GraphNode[] = [node("source", "input", null, [1, 9]), node("encoder", "module", null, [1, 9, 16]), node("decoder", "module", null, [1, 7, 16]), node("output", "module", null, [1, 7, 30])];
  const edges: GraphEdge[] = [edge("source", "encoder", [1, 9]), edge("decoder", "output", [1, 7, 16])];
  for (const each of example.attentions) {
    const [parent, layer] = each.id.split(".") as [string, string];
    const layerId = `${parent}.${layer}`;
    if (!nodes.some((known) => known.id === layerId)) nodes.push(node(layerId, "layer", parent, [1, each.queries, 16]));
    nodes.push({
      ...node(each.id, "attention", layerId, [1, each.queries, 16]),
      inputs: { query: [1, each.queries, 16], key: [1, each.keys, 16] },
      parameters: 1024,
      about: { score: "scaled_dot", normalise: "softmax", scope: each.mask === "causal" ? "causal" : "everywhere", heads: each.heads, kernel: "reference" },
    });
    if (each.query !== each.key) edges.push({ ...edge("encoder", each.id, [1, each.keys, 16]), role: "key,value" });
  }
  return { nodes, edges };
}

function node(id: string, kind: string, parent: string | null, output: number[]): GraphNode {
  return { id, kind, parent, inputs: {}, output, parameters: 0, about: {} };
}

function edge(start: string, end: string, shape: number[]): GraphEdge {
  return { start, end, shape, role: "" };
}
