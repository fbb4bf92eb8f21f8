// What the matrix of heads shows, in what order, and which heads it keeps.

import type { JSX } from "preact";
import { action } from "../actions";
import { headsFilter, headsOrder, headsView, layers, type HeadsView } from "../store";
import { say } from "../strings";
import { extremes, type Filter, type Order } from "./order";
import { nameOf, numberOf, shown, statistics, type Statistic } from "./statistics";

/** Every statistic that these heads have, and any that the page was asked for: that it is not known is then said. */
function offered(): readonly Statistic[] {
  const asked = [headsView.value, headsOrder.value?.statistic, headsFilter.value?.statistic];
  return asked.includes("alignment") && !statistics().includes("alignment") ? [...statistics(), "alignment"] : statistics();
}

const views = (): HeadsView[] => ["pictures", ...offered()];
/** Ways to sort and to filter, as the selects have them: nothing for by layer and head, and for all. */
const orders = (): string[] => ["", ...offered().flatMap((each) => [`${each} rising`, `${each} falling`])];
const filters = (): string[] => ["", ...offered().flatMap((each) => [`${each} least`, `${each} most`])];

/** Steps from the lowest bound of a filter to the highest. */
const STEPS = 20;

action({ id: "heads.view", keys: ["d"], label: "headsNextView", run: () => (headsView.value = after(views(), headsView.value)) });
action({ id: "heads.order", keys: ["D"], label: "headsNextOrder", run: () => (headsOrder.value = order(after(orders(), orderName(headsOrder.value)))) });
action({ id: "heads.filter", keys: ["i"], label: "headsNextFilter", run: () => choose(after(filters(), filterName(headsFilter.value))) });
action({ id: "heads.lower", keys: ["r"], label: "headsLower", run: () => moveBound(-1) });
action({ id: "heads.raise", keys: ["R"], label: "headsRaise", run: () => moveBound(1) });

function after<Value>(all: readonly Value[], now: Value): Value {
  return all[(all.indexOf(now) + 1) % all.length]!;
}

export function orderName(of: Order | null): string {
  return of ? `${of.statistic} ${of.rising ? "rising" : "falling"}` : "";
}

export function order(name: string): Order | null {
  const [statistic, direction] = name.split(" ");
  return name === "" ? null : { statistic: statistic as Statistic, rising: direction === "rising" };
}

export function Controls(): JSX.Element {
  return (
    <div class="heads-controls">
      <Choice label={`${say("headsShow")} (d)`} value={headsView.value} options={views().map((each) => [each, viewName(each)])} choose={(name) => (headsView.value = name as HeadsView)} />
      <Choice label={`${say("headsSort")} (D)`} value={orderName(headsOrder.value)} options={orders().map((each) => [each, orderLabel(each)])} choose={(name) => (headsOrder.value = order(name))} />
      <Choice label={`${say("headsFilter")} (i)`} value={filterName(headsFilter.value)} options={filters().map((each) => [each, filterLabel(each)])} choose={choose} />
      {headsFilter.value && <Bound filter={headsFilter.value} />}
    </div>
  );
}

interface ChoiceGiven {
  label: string;
  value: string;
  options: (readonly [string, string])[];
  choose(name: string): void;
}

function Choice({ label, value, options, choose }: ChoiceGiven): JSX.Element {
  return (
    <label>
      {label}
      <select value={value} onChange={(event) => choose(event.currentTarget.value)}>
        {options.map(([name, text]) => (
          <option key={name} value={name}>
            {text}
          </option>
        ))}
      </select>
    </label>
  );
}

function viewName(view: HeadsView): string {
  return view === "pictures" ? say("headsPictures") : nameOf(view);
}

function orderLabel(name: string): string {
  const wanted = order(name);
  if (!wanted) return say("headsInOrder");
  return say(wanted.rising ? "headsRising" : "headsFalling", { statistic: nameOf(wanted.statistic) });
}

function filterName(filter: Filter | null): string {
  return filter ? `${filter.statistic} ${filter.bound}` : "";
}

function filterLabel(name: string): string {
  const [statistic, bound] = name.split(" ") as [Statistic, Filter["bound"]];
  return name === "" ? say("headsAll") : say(bound === "least" ? "headsLeast" : "headsMost", { statistic: nameOf(statistic) });
}

/** A new filter starts in the middle, so that its effect is seen at once. */
function choose(name: string): void {
  const [statistic, bound] = name.split(" ") as [Statistic, Filter["bound"]];
  const [low, high] = name === "" ? [0, 0] : ends(statistic);
  headsFilter.value = name === "" ? null : { statistic, bound, value: (low + high) / 2 };
}

/** One step of the bound, never beyond the lowest and the highest head. */
function moveBound(by: number): void {
  const filter = headsFilter.value;
  if (!filter) return;
  const [low, high] = ends(filter.statistic);
  headsFilter.value = { ...filter, value: Math.min(high, Math.max(low, filter.value + (by * (high - low)) / STEPS)) };
}

function ends(statistic: Statistic): [number, number] {
  const found = extremes(layers.value, statistic, numberOf);
  return found ? [found.low.value, found.high.value] : [0, 1];
}

function Bound({ filter }: { filter: Filter }): JSX.Element {
  const [low, high] = ends(filter.statistic);
  const told = say("headsBound", { value: shown(filter.value) });
  return (
    <label class="heads-bound">
      {say("withKey", { label: told, key: "r R" })}
      <input
        type="range"
        min={low}
        max={high}
        step={(high - low) / 100 || 0.01}
        value={filter.value}
        aria-valuetext={shown(filter.value)}
        aria-keyshortcuts="r R"
        onInput={(event) => (headsFilter.value = { ...filter, value: event.currentTarget.valueAsNumber })}
      />
    </label>
  );
}
