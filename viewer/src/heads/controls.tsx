// What the matrix of heads shows, in what order, and which heads it keeps.

import type { JSX } from "preact";
import { action } from "../actions";
import { headsFilter, headsOrder, headsView, layers, type HeadsView } from "../store";
import { say } from "../strings";
import { extremes, type Filter, type Order } from "./order";
import { nameOf, numberOf, shown, STATISTICS, type Statistic } from "./statistics";

const VIEWS: readonly HeadsView[] = ["pictures", ...STATISTICS];
/** Ways to sort, as the select has them: nothing for by layer and head. */
const ORDERS: readonly string[] = ["", ...STATISTICS.flatMap((each) => [`${each} rising`, `${each} falling`])];

action({ id: "heads.view", keys: ["d"], label: "headsNextView", run: () => (headsView.value = after(VIEWS, headsView.value)) });
action({ id: "heads.order", keys: ["D"], label: "headsNextOrder", run: () => (headsOrder.value = order(after(ORDERS, orderName(headsOrder.value)))) });

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
      <Choice label={`${say("headsShow")} (d)`} value={headsView.value} options={VIEWS.map((each) => [each, viewName(each)])} choose={(name) => (headsView.value = name as HeadsView)} />
      <Choice label={`${say("headsSort")} (D)`} value={orderName(headsOrder.value)} options={ORDERS.map((each) => [each, orderLabel(each)])} choose={(name) => (headsOrder.value = order(name))} />
      <Choice label={say("headsFilter")} value={filterName(headsFilter.value)} options={filters()} choose={choose} />
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

function filters(): [string, string][] {
  const bounds = STATISTICS.flatMap((each): [string, string][] => [
    [`${each} least`, say("headsLeast", { statistic: nameOf(each) })],
    [`${each} most`, say("headsMost", { statistic: nameOf(each) })],
  ]);
  return [["", say("headsAll")], ...bounds];
}

/** A new filter starts in the middle, so that its effect is seen at once. */
function choose(name: string): void {
  const [statistic, bound] = name.split(" ") as [Statistic, Filter["bound"]];
  const [low, high] = name === "" ? [0, 0] : ends(statistic);
  headsFilter.value = name === "" ? null : { statistic, bound, value: (low + high) / 2 };
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
      {told}
      <input
        type="range"
        min={low}
        max={high}
        step={(high - low) / 100 || 0.01}
        value={filter.value}
        aria-valuetext={shown(filter.value)}
        onInput={(event) => (headsFilter.value = { ...filter, value: event.currentTarget.valueAsNumber })}
      />
    </label>
  );
}
