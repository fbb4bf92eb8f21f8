// The page's state in its address, short and readable: #a=decoder.cross&h=7&q=12&win=0,0,128,96&s=sqrt
//
// A value that says the same as the default is left out; one that makes no sense is passed over.

import { batch, effect, type Signal } from "@preact/signals";
import { sequential } from "./palette";
import * as store from "./store";
import { among, brief, cells, escaped, folded, head, heads, headsFilter, headsOrder, number, oneOf, ordered, pair, pins, reach, span, STATISTICS, whole } from "./values";

/** How one signal is written and read. `undefined` from `read` means: no such value, leave the signal alone. */
interface Part<Value> {
  name: string;
  signal: Signal<Value>;
  otherwise: Value;
  write(value: Value): string;
  read(text: string): Value | undefined;
}

type Erased = { name: string; signal: Signal<unknown>; otherwise: unknown; write(value: never): string; read(text: string): unknown };

function part<Value>(name: string, signal: Signal<Value>, write: (value: Value) => string, read: (text: string) => Value | undefined): Erased {
  const made: Part<Value> = { name, signal, otherwise: signal.peek(), write, read };
  return made as unknown as Erased;
}

const place = (name: string, signal: Signal<number | null>): Erased => part<number | null>(name, signal, String, whole);
const flag = (name: string, signal: Signal<boolean>): Erased =>
  part(name, signal, (on) => (on ? "1" : "0"), (text) => (text === "1" ? true : text === "0" ? false : undefined));

const PARTS: Erased[] = [
  part("c", store.compare, String, oneOf("a", "b", "difference", "swipe")),
  part("sw", store.swipe, brief, (text) => number(text, 0, 1)),
  part("x", store.example, String, (text) => among(whole(text), store.payload.peek()?.runs[0]?.examples.length ?? 0)),
  part("a", store.attention, (id) => id, (text) => (text.length <= 1000 ? text : undefined)),
  part("ab", store.attentionB, (id) => id, (text) => (text.length <= 1000 ? text : undefined)),
  part("h", store.head, String, head),
  part("pin", store.pinned, (list) => list.map((each) => `${escaped(each.attention)}:${each.head}`).join(","), pins),
  place("q", store.query),
  place("k", store.key),
  part("r", store.range, (range) => range!.join(","), span),
  part("v", store.chosenView, String, oneOf("heatmap", "lines", "tokens", "overlay", "table")),
  part("of", store.quantity, String, oneOf("weights", "scores", "values", "rollout", "flow")),
  part("win", store.visible, (window) => window!.map(brief).join(","), cells),
  part("s", store.scale, String, oneOf("linear", "sqrt", "log")),
  part("lh", store.lineHeads, (heads) => heads.join(","), heads),
  part("se", store.sentencePair, (pair) => pair!.join(","), pair),
  part("op", store.opacity, brief, (text) => number(text, 0, 1)),
  flag("plain", store.plain),
  part("by", store.shrink, String, oneOf("maximum", "mean")),
  part("up", store.reach, (value) => (typeof value === "number" ? String(value) : value!), reach),
  part("p", store.palette, String, (text) => sequential(store.payload.peek()).find((each) => each === text)),
  part("top", store.top, String, (text) => number(text, 1, 128)),
  flag("hide", store.hideSpecial),
  flag("tr", store.transposed),
  place("f", store.frame),
  part("m", store.headsView, String, oneOf("pictures", ...STATISTICS)),
  part("o", store.headsOrder, (order) => `${order!.statistic}.${order!.rising ? "up" : "down"}`, headsOrder),
  part("hf", store.headsFilter, (filter) => `${filter!.statistic}.${filter!.bound}.${brief(filter!.value)}`, headsFilter),
  part("nz", store.networkZoom, (zoom) => brief(zoom!), (text) => number(text, 0.05, 20)),
  part("fold", store.folds, (folds) => Object.entries(folds).map(([id, open]) => `${escaped(id)}:${open ? 1 : 0}`).join(","), folded),
  flag("each", store.multiples),
  part("ms", store.interval, String, (text) => number(text, 50, 60_000)),
  part("ord", store.tableOrder, (order) => `${order.column}:${order.falling ? 1 : 0}`, ordered),
  part("lang", store.language, String, oneOf("en", "zh")),
  part("as", store.appearance, String, oneOf("system", "light", "dark")),
];

/** The state as a fragment, "" where everything is as at first. */
export function fragment(): string {
  const told = PARTS.map((each) => [each.name, text(each, each.signal.value), text(each, each.otherwise)] as const);
  const changed = told.filter(([, now, first]) => now !== first && now !== "");
  return changed.length > 0 ? `#${changed.map(([name, now]) => `${name}=${quoted(now)}`).join("&")}` : "";
}

function text(of: Erased, value: unknown): string {
  return value === null ? "" : of.write(value as never);
}

/** As little escaped as an address allows, so that it can be read. */
function quoted(text: string): string {
  return encodeURIComponent(text).replace(/%(2C|3A|2F|40)/g, (code) => decodeURIComponent(code));
}

/** Take over what a fragment says; what it leaves out goes back to how it was at first. */
export function adopt(text: string): void {
  const told = new Map(text.replace(/^#/, "").split("&").map(named));
  batch(() => {
    for (const each of PARTS) {
      const value = told.has(each.name) ? each.read(told.get(each.name)!) : undefined;
      each.signal.value = value === undefined ? each.otherwise : value;
    }
  });
}

function named(text: string): [string, string] {
  const at = text.indexOf("=");
  try {
    return at < 0 ? ["", ""] : [text.slice(0, at), decodeURIComponent(text.slice(at + 1))];
  } catch {
    return ["", ""];
  }
}

/** Write the address. Inside a sandboxed frame the history may not be touched but the fragment may. */
export function write(window: Window, text: string): void {
  try {
    window.history.replaceState(null, "", text || window.location.pathname + window.location.search);
  } catch {
    try {
      if (window.location.hash !== text) window.location.hash = text;
    } catch {
      // A frame that lets nothing be written: the state is still on the page, under "copy link".
    }
  }
}

/** Read the address now and whenever somebody changes it, and write it whenever the state changes. */
export function follow(window: Window, opening: string): void {
  const language = PARTS.find((each) => each.name === "lang")!;
  language.otherwise = store.language.peek();
  adopt(window.location.hash || opening);
  let written = window.location.hash;
  window.addEventListener("hashchange", () => {
    if (window.location.hash === written) return;
    written = window.location.hash;
    adopt(written);
  });
  let waiting: ReturnType<typeof setTimeout> | undefined;
  effect(() => {
    const text = fragment();
    // Browsers allow so many changes of the address in so many seconds; a pan has more.
    clearTimeout(waiting);
    waiting = setTimeout(() => {
      if (text === written) return;
      written = text;
      write(window, text);
    }, 150);
  });
}
