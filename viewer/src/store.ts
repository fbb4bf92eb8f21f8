// The one state of the page. Every view reads it, nothing else holds any; the URL's fragment is this state (url.ts).

import { computed, signal } from "@preact/signals";
import type { Shrink } from "./grid";
import type { Attention, Axis, Example, Payload, Run, Summary } from "./payload";

export type LinkView = "heatmap" | "lines" | "tokens" | "overlay" | "table";
export type Quantity = "weights" | "scores" | "values" | "rollout" | "flow";
export type Scale = "linear" | "sqrt" | "log";
export type Reach = "one" | "largest" | number;
export type Compare = "a" | "b" | "difference" | "swipe";
export type Language = "en" | "zh";
export type Appearance = "system" | "light" | "dark";
/** First query, first key, one past the last query, one past the last key. */
export type Window = [number, number, number, number];
/** A head's number, or the mean of all. */
export type Head = number | "mean";
/** One matrix that is kept in sight: a head of an attention. */
export interface Pin {
  attention: string;
  head: Head;
}
/** What the heads matrix shows of each head: its picture, or one number of Summary. */
export type HeadsView = "pictures" | keyof Summary;

/** Heads of which a number is at least, or at most, so large. */
export interface HeadsFilter {
  statistic: keyof Summary;
  bound: "least" | "most";
  value: number;
}

/** What the table can be sorted by: the query's place, its text, its largest weight, the sum of what is shown. */
export interface TableOrder {
  column: "place" | "label" | "largest" | "shown";
  falling: boolean;
}

export const payload = signal<Payload>(null as unknown as Payload);

export const compare = signal<Compare>("a");
export const swipe = signal(0.5);
export const example = signal(0);
/** The attention's id: A's, where two runs are compared. */
export const attention = signal("");
/** The id of B's attention that is set against A's; "": the one of the same name, else of the same axes and layer. */
export const attentionB = signal("");
export const head = signal<Head>("mean");
export const pinned = signal<Pin[]>([]);
/** The id of an attention that is being pointed at somewhere, so that its box lights up; or null. */
export const lit = signal<string | null>(null);
/** Boxes of the network that were opened (true) or closed (false) by hand. */
export const folds = signal<Record<string, boolean>>({});
/** How large the network is drawn; null: as wide as its panel, as long as it can be read. */
export const networkZoom = signal<number | null>(null);
export const headsView = signal<HeadsView>("pictures");
/** The number by which heads are sorted; null: by layer and head. */
export const headsOrder = signal<{ statistic: keyof Summary; rising: boolean } | null>(null);
/** Heads whose number is not at least, or at most, this large are left out; null: all are shown. */
export const headsFilter = signal<HeadsFilter | null>(null);
/** The crosshair: places on the two axes, or null. */
export const query = signal<number | null>(null);
export const key = signal<number | null>(null);
/** Queries brushed in a curve: first, and one past the last. */
export const range = signal<[number, number] | null>(null);
/** The way to read the matrix that the reader chose; null: the one that suits what it links. */
export const chosenView = signal<LinkView | null>(null);
export const quantity = signal<Quantity>("weights");
/** What of the matrix is in sight; null: all of it. */
export const visible = signal<Window | null>(null);
export const scale = signal<Scale>("sqrt");
/** How cells are put together where several share a pixel. */
export const shrink = signal<Shrink>("maximum");
/** The weight with the last colour: 1, the largest in sight, or a number; null: whichever suits the matrix. */
export const reach = signal<Reach | null>(null);
export const palette = signal("cividis");
export const top = signal(8);
export const hideSpecial = signal(false);
export const transposed = signal(false);
/** The moment of training that is shown, a place in run.training; null: the model as it was recorded. */
export const frame = signal<number | null>(null);
export const playing = signal(false);
/** Whether the moments of training go by. */
export const filming = signal(false);
/** Milliseconds from one step of playback to the next. */
export const interval = signal(1000);
/** Whether the curves stand once for each head. */
export const multiples = signal(false);
/** The column by which the table is sorted, and whether the largest come first. */
export const tableOrder = signal<TableOrder>({ column: "place", falling: false });
export const language = signal<Language>("en");
/** Light or dark, or as the system has it. */
export const appearance = signal<Appearance>("system");
export const help = signal(false);
/** What lies over the page: how to export, or a search for a token; help has its own signal. */
export const dialog = signal<"export" | "find" | "about" | null>(null);

/** The run that the panels show: B only where B alone is compared. */
export const run = computed<Run>(() => {
  const runs = payload.value.runs;
  return (compare.value === "b" ? (runs[1] ?? runs[0]) : runs[0])!;
});
export const runIndex = computed(() => (compare.value === "b" && payload.value.runs.length > 1 ? 1 : 0));
export const currentExample = computed<Example>(() => run.value.examples[example.value] ?? run.value.examples[0]!);

/** The attention in sight: the one that is named, or else the last that looks at another axis; of B the one set against A's. */
export const current = computed<Attention | null>(() => {
  if (runIndex.value === 1) return other.value?.attention ?? chosen(currentExample.value, attention.value);
  return chosen(currentExample.value, attention.value);
});

/** Show an attention of the run in sight. While B is in sight A's stays as it is, and the chosen one is set against it. */
export function choose(id: string): void {
  if (runIndex.value === 0) attention.value = id;
  else attentionB.value = id === counterpartId() ? "" : id;
}

/** B's attention that goes with A's by itself. */
export function counterpartId(): string {
  const [first, second] = [0, 1].map((run) => payload.value.runs[run]?.examples[example.value]);
  return (first && second && counterpart(second, first, attention.value)?.id) ?? "";
}

export const queryAxis = computed<Axis | null>(() => axisOf(current.value?.query));
export const keyAxis = computed<Axis | null>(() => axisOf(current.value?.key));

/** The attentions between the same two axes, in the order in which they ran: the layers. */
export const layers = computed<Attention[]>(() => {
  const shown = current.value;
  if (!shown) return [];
  return currentExample.value.attentions.filter((each) => each.query === shown.query && each.key === shown.key);
});

/** The other run's example and attention, where two are compared. */
export const other = computed<{ example: Example; attention: Attention } | null>(() => {
  const second = payload.value.runs[1]?.examples[example.value];
  const named = second?.attentions.find((each) => each.id === attentionB.value);
  const found = named ?? (second && counterpart(second, payload.value.runs[0]!.examples[example.value]!, attention.value));
  return second && found ? { example: second, attention: found } : null;
});

export function chosen(among: Example, id: string): Attention | null {
  const named = among.attentions.find((each) => each.id === id);
  return named ?? among.attentions.findLast((each) => each.query !== each.key) ?? among.attentions.at(-1) ?? null;
}

/** B's attention for A's: the one of the same name, else of the same axes and layer. */
function counterpart(second: Example, first: Example, id: string): Attention | null {
  const wanted = chosen(first, id);
  if (!wanted) return null;
  const same = second.attentions.find((each) => each.id === wanted.id);
  const alike = second.attentions.filter((each) => each.query === wanted.query && each.key === wanted.key);
  return same ?? alike.find((each) => each.layer === wanted.layer) ?? alike.at(-1) ?? chosen(second, "");
}

/** The way that is open: pictures, sounds and series open on themselves, texts on the heat map. */
export const view = computed<LinkView>(() => chosenView.value ?? fittingView());

function fittingView(): LinkView {
  const drawn = [queryAxis.value, keyAxis.value].some((axis) => axis && ["image", "audio", "series"].includes(axis.kind));
  return drawn ? "overlay" : "heatmap";
}

/** Heads whose lines are drawn together; none: the head of the page. */
export const lineHeads = signal<number[]>([]);
/** The sentences between which lines are drawn, by number, from queries to keys; null: all. */
export const sentencePair = signal<[number, number] | null>(null);
/** How much of the shade lies over a picture: 0 shows the picture alone, 1 as much as there is. */
export const opacity = signal(0.85);
/** Whether the plain picture stands beside the shaded one. */
export const plain = signal(true);

function axisOf(name: string | undefined): Axis | null {
  return name === undefined ? null : (currentExample.value.axes[name] ?? null);
}
