// Where in the network attention happened: boxes with the shapes of this run, every attention to be selected.

import { computed, signal, useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";
import { action } from "../actions";
import { Boxes, fold, Lines } from "../network/draw";
import { every, sight as inSight } from "../network/fold";
import { type Drawn, key, layout } from "../network/layout";
import { stepped, stops } from "../network/stops";
import { complete, tree } from "../network/tree";
import { effective } from "../network/words";
import { current, currentExample, folds, networkZoom, run } from "../store";
import { say } from "../strings";
import { useWidth } from "../width";
import "../styles/network.css";

const network = computed(() => complete(run.value.graph, currentExample.value));
const roots = computed(() => tree(network.value, currentExample.value.attentions));
const sight = computed(() => inSight(roots.value, network.value.edges, folds.value, current.value?.id ?? ""));

/** The width that there is, in steps, so that a scroll bar that comes and goes changes no layout. */
const width = signal(Infinity);
const STEP = 8;

let kept: { key: string; drawn: Drawn } | null = null;

/** The layout of what is in sight; it is kept, since another selection mostly leaves it as it is. */
const drawn = computed(() => {
  const { boxes, lines } = sight.value;
  const wanted = `${key(boxes, lines)} ${width.value}`;
  if (kept?.key !== wanted) kept = { key: wanted, drawn: layout(boxes, lines, width.value) };
  return kept.drawn;
});

/** Words have 11 pixels and more, so nothing is drawn smaller by itself; where there is room it is drawn larger. */
const [SMALLEST, LARGEST] = [1, 1.35];

action({ id: "network.fold", keys: ["g"], label: "networkFoldAction", run: toggleLayers });
action({ id: "network.default", keys: ["G"], label: "networkDefault", run: () => (folds.value = {}) });

/** Unfold the stack around the selected attention, or fold the outermost one that is unfolded. */
function toggleLayers(): void {
  const slot = sight.value.slots.get(current.value?.id ?? "");
  if (slot === undefined) return;
  const around = every(sight.value.boxes).filter((box) => slot === box.slot || slot.startsWith(`${box.slot}/`));
  const folded = around.find((box) => box.stack !== null);
  const unfolded = around.find((box) => box.sort === "stack");
  if (unfolded) fold(unfolded.slot, false);
  else if (folded) fold(folded.stack!, true);
}

export function Network(): JSX.Element {
  const empty = roots.value.length === 0;
  return (
    <section class="network" aria-labelledby="network-title">
      <div class="network-top">
        <h2 id="network-title">{say("networkTitle")}</h2>
        {!empty && <Controls />}
      </div>
      <p class="network-finding">{finding()}</p>
      {!empty && <Sheet />}
    </section>
  );
}

function Controls(): JSX.Element {
  const zoom = (factor: number) => () => zoomBy(factor);
  return (
    <div class="network-controls" role="group" aria-label={say("networkTitle")}>
      <Control label={say("networkSmaller")} shown="−" press={zoom(1 / 1.25)} />
      <Control label={say("networkLarger")} shown="+" press={zoom(1.25)} />
      <Control label={say("networkFit")} shown="↔" press={fit} />
      <Control label={`${say("networkFoldAction")} (g)`} shown="⇕" press={toggleLayers} />
      <Control label={`${say("networkDefault")} (G)`} shown="⟲" press={() => (folds.value = {})} />
    </div>
  );
}

function Control({ label, shown, press }: { label: string; shown: string; press(): void }): JSX.Element {
  return (
    <button type="button" aria-label={label} title={label} onClick={press}>
      {shown}
    </button>
  );
}

function zoomBy(factor: number): void {
  networkZoom.value = Math.min(3, Math.max(0.2, (networkZoom.value ?? legible(room())) * factor));
}

/** All of it in the panel's width, however small that makes the words. */
function fit(): void {
  networkZoom.value = Math.min(1, Math.max(0.2, room() / drawn.value.width));
}

/** As wide as its panel, within what can be read well. */
function legible(width: number): number {
  return Number.isFinite(width) ? Math.min(LARGEST, Math.max(SMALLEST, width / drawn.value.width)) : 1;
}

function room(): number {
  return document.querySelector(".network-window")?.clientWidth || Infinity;
}

/** The panel's one sentence: what there is, and what is selected. */
function finding(): string {
  const nodes = run.value.graph.nodes;
  const counts = { modules: nodes.length, attentions: currentExample.value.attentions.length };
  const shown = current.value;
  if (!shown) return say(nodes.length > 0 ? "networkNoAttention" : "networkEmpty", counts);
  const selected = { name: shown.id, heads: shown.heads, queries: shown.queries, keys: shown.keys };
  if (nodes.length === 0) return say("networkFindingArrays", { ...counts, ...selected });
  const heads = shown.heads === 1 ? say("networkOneHead") : say("networkHeads", { count: shown.heads });
  const where = { path: pathOf(shown.id), query: shown.query, key: shown.key, heads };
  return [say("networkFinding", { ...counts, ...selected, ...where }), ends()].filter(Boolean).join(" ");
}

/** "decoder › layers.1 › cross": the way to a module from the outside in. */
function pathOf(id: string): string {
  const byId = new Map(run.value.graph.nodes.map((node) => [node.id, node]));
  const names: string[] = [];
  for (let at = byId.get(id), inner = id; at && names.length < 32; at = at.parent === null ? undefined : byId.get(at.parent)) {
    const outer = at.parent ?? "";
    names.unshift(outer && inner.startsWith(`${outer}.`) ? inner.slice(outer.length + 1) : inner);
    inner = outer;
  }
  return names.join(" › ") || id;
}

/** Where in the network attention is decided, and where it is spread out. */
function ends(): string {
  const known = currentExample.value.attentions.flatMap((each) => {
    const keys = effective(each);
    return keys === null ? [] : [{ name: each.id, keys }];
  });
  if (known.length < 2) return "";
  known.sort((one, other) => one.keys - other.keys);
  const [first, last] = [known[0]!, known.at(-1)!];
  return say("networkEnds", { sharp: first.name, few: first.keys.toFixed(1), diffuse: last.name, many: last.keys.toFixed(1) });
}

/** Pixels that a scroll bar may take from the width. */
const SCROLLBAR = 4;

function Sheet(): JSX.Element {
  const window = useRef<HTMLDivElement>(null);
  const measured = useWidth(window, Infinity);
  useLayoutEffect(() => {
    width.value = Number.isFinite(measured) ? Math.floor((measured - SCROLLBAR) / STEP) * STEP : Infinity;
  }, [measured]);
  const focused = useSignal<string | null>(null);
  const { boxes, lines, slots } = sight.value;
  const all = stops(boxes, drawn.value);
  const selected = slots.get(current.value?.id ?? "");
  const stop = [focused.value, selected].find((id) => all.some((each) => each.id === id)) ?? all[0]!.id;
  const zoom = networkZoom.value ?? legible(measured);
  const names = new Map(every(boxes).map((box) => [box.slot, box.name]));
  useReveal(window, selected, zoom);

  function keyed(event: KeyboardEvent): void {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    // The box has the key for itself: Space presses it, and must not play as well.
    if (event.key === "Enter" || event.key === " ") return event.stopPropagation();
    if (sized(event.key)) return event.preventDefault();
    const next = stepped(all, stop, event.key);
    if (next === null) return;
    event.preventDefault();
    window.current?.querySelector<HTMLElement>(`[data-stop="${next}"]`)?.focus();
  }

  return (
    <div class="network-window" ref={window} role="group" aria-label={say("networkHint")} onKeyDown={keyed}>
      <div class="network-room" style={{ width: `${drawn.value.width * zoom}px`, height: `${drawn.value.height * zoom}px` }}>
        <div
          class="network-sheet"
          style={{ width: `${drawn.value.width}px`, height: `${drawn.value.height}px`, transform: `scale(${zoom})` }}
          onFocusIn={(event) => (focused.value = (event.target as HTMLElement).dataset.stop ?? null)}
        >
          <Lines drawn={drawn.value} marked={new Set(selected === undefined ? [] : [selected])} />
          <Boxes boxes={boxes} scene={{ sight: { boxes, lines, slots }, drawn: drawn.value, names, stop }} />
        </div>
      </div>
    </div>
  );
}

/** Within the network its own size is meant by the keys of size. */
function sized(pressed: string): boolean {
  if (pressed === "+" || pressed === "=") zoomBy(1.25);
  else if (pressed === "-") zoomBy(1 / 1.25);
  else if (pressed === "0") fit();
  else return false;
  return true;
}

/** Bring the selected box into the panel, and never move the page for it. */
function useReveal(window: { current: HTMLElement | null }, slot: string | undefined, zoom: number): void {
  useLayoutEffect(() => {
    const [element, place] = [window.current, slot === undefined ? undefined : drawn.value.places.get(slot)];
    if (!element || !place) return;
    element.scrollTop = shifted(element.scrollTop, element.clientHeight, place.top * zoom, place.height * zoom);
    element.scrollLeft = shifted(element.scrollLeft, element.clientWidth, place.left * zoom, place.width * zoom);
  }, [slot, zoom, drawn.value]);
}

/** Some of what is around the selected box is shown as well. */
const AROUND = 12;

/** The nearest scroll position at which a stretch is in sight: the same one where it already is. */
export function shifted(scroll: number, room: number, start: number, length: number): number {
  return Math.max(0, Math.min(Math.max(scroll, start + length + AROUND - room), start - AROUND));
}
