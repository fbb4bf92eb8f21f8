// What a page is made of: one JSON and the tensors that it names, both inside the page. Python's render.py writes it.

export type Kind = "u8" | "u16" | "u32" | "i32" | "f16" | "f32";

export interface Ref {
  data: string;
  dtype: Kind;
  shape: number[];
}

export interface Payload {
  format: "attn-page";
  version: 1;
  state: string;
  language: "en" | "zh" | null;
  /** Where tiles are fetched; null where everything that there is stands in the page. */
  tiles: string | null;
  /** What kind of input the server records; null or left out: none. */
  takes?: "text" | "picture" | null;
  runs: Run[];
  palettes: Record<string, string>;
  about: { version: string; licences: Licence[] };
}

export interface Licence {
  name: string;
  licence: string;
  text: string;
}

export interface Run {
  name: string;
  notes: string[];
  graph: { nodes: GraphNode[]; edges: GraphEdge[] };
  examples: Example[];
  training: Frame[];
  omitted: Omitted[];
}

export interface GraphNode {
  id: string;
  kind: string;
  parent: string | null;
  inputs: Record<string, number[]>;
  output: number[] | null;
  parameters: number;
  about: Record<string, string | number>;
}

export interface GraphEdge {
  start: string;
  end: string;
  shape: number[];
  role: string;
}

export interface Example {
  title: string;
  axes: Record<string, Axis>;
  attentions: Attention[];
  steps: Step[];
  beams: Beams | null;
}

interface Place {
  length: number;
  /** What each place is shown as; null: made from the axis, see labels.ts. */
  labels: string[] | null;
}

export interface TextAxis extends Place {
  kind: "text";
  pieces: string[];
  text: string;
  spans: ([number, number] | null)[];
  special: number[];
  lang: string | null;
}

export interface AudioAxis extends Place {
  kind: "audio";
  seconds_per_step: number;
  spectrogram: Ref | null;
  sound: Ref | null;
  rate: number | null;
}

export interface ImageAxis extends Place {
  kind: "image";
  grid: [number, number];
  size: [number, number];
  pixels: Ref | null;
  prefix: string[];
}

export interface SeriesAxis extends Place {
  kind: "series";
  times: number[];
  values: Ref;
  names: string[];
  split: number | null;
  dates: boolean;
}

export interface IndexAxis extends Place {
  kind: "index";
}

export type Axis = TextAxis | AudioAxis | ImageAxis | SeriesAxis | IndexAxis;

/** One number for each head; null where what was recorded does not tell. */
export interface Summary {
  entropy: (number | null)[];
  sink: (number | null)[];
  distance: (number | null)[];
  diagonality: (number | null)[];
  /** Against links that people made; null where there are none. */
  alignment: (number | null)[];
}

export interface Statistics {
  received: Ref;
  baseline: Ref;
  largest: Ref;
  effective: Ref;
  focus: Ref;
  spread: Ref;
  sink: Ref;
}

export interface Attention {
  id: string;
  query: string;
  key: string;
  layer: number;
  heads: number;
  queries: number;
  keys: number;
  mask: "full" | "causal" | "given";
  allowed: Ref | null;
  sums_to_one: boolean;
  /** The weight that 255 stands for: 1, or the largest where weights go beyond it. */
  scale: number;
  /** Codes, see link/source.ts. */
  source: string;
  /** Whether weights are negative somewhere: bytes then go either way from 128. Left out: no. */
  signed?: boolean;
  rows: number[] | null;
  recorded: boolean;
  statistics: Statistics;
  summary: Summary;
  thumbnails: Ref | null;
  top: { keys: Ref; weights: Ref; share: number } | null;
  full: Record<string, Ref>;
  exact: Record<string, Ref>;
  views: Record<string, Record<string, Ref>>;
}

export interface Step {
  query: number;
  token: string;
  logprob: number;
  candidates: [string, number][];
}

export interface Beams {
  parents: number[][];
  tokens: string[][];
  scores: number[][];
  ended: boolean[][];
  best: [number, number];
  attention: string | null;
  weights: Ref | null;
}

export interface Frame {
  step: number;
  loss: number | null;
  example: number;
  weights: Record<string, Ref>;
  summary: Record<string, Summary>;
}

export interface Omitted {
  what: string;
  bytes: number;
  call: string;
}

/** The page's own payload. */
export function embedded(page: Document = document): Payload {
  const element = page.getElementById("payload");
  if (!element?.textContent) throw new Error("this page has no payload");
  const payload = JSON.parse(element.textContent) as Payload;
  if (payload.format !== "attn-page" || payload.version !== 1) {
    throw new Error(`this page cannot show a payload of format ${payload.format}, version ${payload.version}`);
  }
  return payload;
}
