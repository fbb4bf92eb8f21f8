// The keys that move through a trace: cells, layers, heads, zoom, panels. Each is also a button somewhere.

import { batch } from "@preact/signals";
import { action } from "./actions";
import { reveal, showAll, zoom } from "./heatmap/window";
import type { Sentence } from "./strings";
import * as store from "./store";
import type { Head } from "./store";

const STEP = 1.5;
const JUMP = 10;

/** Move the crosshair by rows and columns of the picture, whichever way round it is. */
function move(down: number, across: number, event?: KeyboardEvent): void {
  const shown = store.current.value;
  if (!shown) return;
  const far = event?.shiftKey ? JUMP : 1;
  const [rows, columns] = store.transposed.value ? [across * far, down * far] : [down * far, across * far];
  batch(() => {
    // The first press only shows where the crosshair is: at the first cell of those in sight.
    const fresh = store.query.value === null && store.key.value === null;
    const [top, left] = (store.visible.value ?? [0, 0]).map(Math.ceil) as [number, number];
    store.query.value = moved(store.query.value ?? top, fresh ? 0 : rows, shown.queries);
    store.key.value = moved(store.key.value ?? left, fresh ? 0 : columns, shown.keys);
  });
  reveal(store.query.value, store.key.value);
}

function moved(place: number, by: number, length: number): number {
  return Math.min(length - 1, Math.max(0, place + by));
}

/** Go to another layer of the same two axes. */
export function layer(by: number): void {
  const among = store.layers.value;
  const at = among.findIndex((each) => each === store.current.value);
  const next = among[Math.min(among.length - 1, Math.max(0, at + by))];
  if (next) store.choose(next.id);
}

/** Go to another head; the mean comes before the first. */
export function otherHead(by: number): void {
  const count = store.current.value?.heads ?? 0;
  const order: Head[] = ["mean", ...Array.from({ length: count }, (_, head) => head)];
  const at = Math.max(0, order.indexOf(store.head.value));
  store.head.value = order[Math.min(count, Math.max(0, at + by))]!;
}

/** Go to an example. Another has other places, so the selection and the window do not carry over. */
export function toExample(number: number): void {
  const next = Math.min(store.run.value.examples.length - 1, Math.max(0, number));
  if (next === store.example.value) return;
  batch(() => {
    store.example.value = next;
    [store.query.value, store.key.value, store.range.value, store.visible.value] = [null, null, null, null];
  });
}

/** Close what lies over the page; else take back the selection; else the zoom. */
export function clear(): void {
  batch(() => {
    if (store.help.value || store.dialog.value) {
      store.help.value = false;
      store.dialog.value = null;
    } else if (store.query.value !== null || store.key.value !== null || store.range.value) {
      [store.query.value, store.key.value, store.range.value] = [null, null, null];
    } else store.visible.value = null;
  });
}

function panel(id: string): void {
  const found = document.getElementById(id);
  found?.focus({ preventScroll: true });
  found?.scrollIntoView?.({ block: "nearest" });
}

function add(id: string, keys: string[], label: Sentence, run: (event?: KeyboardEvent) => void): void {
  action({ id, keys, label, run });
}

add("up", ["ArrowUp"], "actionUp", (event) => move(-1, 0, event));
add("down", ["ArrowDown"], "actionDown", (event) => move(1, 0, event));
add("left", ["ArrowLeft"], "actionLeft", (event) => move(0, -1, event));
add("right", ["ArrowRight"], "actionRight", (event) => move(0, 1, event));
add("example.back", ["N"], "actionExampleBack", () => toExample(store.example.value - 1));
add("example.on", ["n"], "actionExampleOn", () => toExample(store.example.value + 1));
add("layer.back", ["["], "actionLayerBack", () => layer(-1));
add("layer.on", ["]"], "actionLayerOn", () => layer(1));
add("head.back", [","], "actionHeadBack", () => otherHead(-1));
add("head.on", ["."], "actionHeadOn", () => otherHead(1));
add("zoom.in", ["+", "="], "actionZoomIn", () => zoom(STEP, ...centre()));
add("zoom.out", ["-", "_"], "actionZoomOut", () => zoom(1 / STEP, ...centre()));
add("zoom.all", ["0"], "actionZoomAll", showAll);
add("panel.network", ["1"], "actionPanelNetwork", () => panel("panel-network"));
add("panel.time", ["2"], "actionPanelTime", () => panel("panel-time"));
add("panel.link", ["3"], "actionPanelLink", () => panel("panel-link"));
add("export", ["e"], "actionExport", () => (store.dialog.value = "export"));
add("find", ["/"], "actionFind", () => (store.dialog.value = "find"));
add("about", ["a"], "actionAbout", () => (store.dialog.value = "about"));
add("help", ["?"], "actionHelp", () => (store.help.value = !store.help.value));
add("clear", ["Escape"], "actionClear", clear);

/** Zooming by key holds the crosshair in place, or the middle where there is none. */
function centre(): [number, number] {
  const window = store.visible.value ?? [0, 0, store.current.value?.queries ?? 1, store.current.value?.keys ?? 1];
  return [share(store.query.value, window[0], window[2]), share(store.key.value, window[1], window[3])];
}

function share(place: number | null, first: number, end: number): number {
  return place === null || place < first || place >= end ? 0.5 : (place + 0.5 - first) / (end - first);
}
