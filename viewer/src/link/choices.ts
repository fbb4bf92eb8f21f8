// What a reader can choose about the matrix, and the keys for it.

import { action } from "../actions";
import { sequential } from "../palette";
import type { Attention } from "../payload";
import type { LinkView, Quantity, Scale } from "../store";
import { range } from "../range";
import { chosenView, current, hideSpecial, palette, payload, quantity, reach, scale, top, transposed } from "../store";
import type { Sentence } from "../strings";

interface Choice<Value extends string> {
  value: Value;
  label: Sentence;
  key?: string;
}

export const VIEWS: readonly (Choice<LinkView> & { key: string })[] = [
  { value: "heatmap", label: "linkHeatmap", key: "h" },
  { value: "lines", label: "linkLines", key: "l" },
  { value: "tokens", label: "linkTokens", key: "k" },
  { value: "overlay", label: "linkOverlay", key: "o" },
  { value: "table", label: "linkTable", key: "t" },
];

export const SCALES: readonly Choice<Scale>[] = [
  { value: "linear", label: "scaleLinear" },
  { value: "sqrt", label: "scaleSqrt" },
  { value: "log", label: "scaleLog" },
];

const QUANTITIES: readonly Choice<Quantity>[] = [
  { value: "weights", label: "quantityWeights" },
  { value: "scores", label: "quantityScores" },
  { value: "values", label: "quantityValues" },
  { value: "rollout", label: "quantityRollout" },
  { value: "flow", label: "quantityFlow" },
];

/** More than this many keys of a query nobody reads. */
export const MOST = 128;

/** Weights, and whatever else was kept of an attention. */
export function quantities(shown: Attention | null): readonly Choice<Quantity>[] {
  return QUANTITIES.filter((each) => each.value === "weights" || Object.keys(shown?.views[each.value] ?? {}).length > 0);
}

export function quantityLabel(value: Quantity): Sentence {
  return QUANTITIES.find((each) => each.value === value)!.label;
}

export function palettes(): string[] {
  return sequential(payload.value);
}

export function setTop(count: number): void {
  if (Number.isFinite(count)) top.value = Math.min(MOST, Math.max(1, Math.round(count)));
}

function next<Value>(among: readonly Value[], now: Value): Value {
  return among[(among.indexOf(now) + 1) % among.length] ?? now;
}

function each<Value extends string>(choices: readonly Choice<Value>[]): Value[] {
  return choices.map((choice) => choice.value);
}

export const KEYS = { quantity: "v", scale: "s", palette: "p", range: "C", more: ">", fewer: "<", special: "m", transpose: "x" } as const;

for (const choice of VIEWS) {
  action({ id: `view.${choice.value}`, keys: [choice.key], label: choice.label, run: () => (chosenView.value = choice.value) });
}
action({
  id: "quantity",
  keys: [KEYS.quantity],
  label: "linkQuantity",
  run: () => (quantity.value = next(each(quantities(current.value)), quantity.value)),
});
action({ id: "scale", keys: [KEYS.scale], label: "linkScale", run: () => (scale.value = next(each(SCALES), scale.value)) });
action({ id: "range", keys: [KEYS.range], label: "linkRangeNext", run: () => (reach.value = range.value === "one" ? "largest" : "one") });
action({ id: "palette", keys: [KEYS.palette], label: "linkPalette", run: () => (palette.value = next(palettes(), palette.value)) });
action({ id: "top.more", keys: [KEYS.more], label: "linkMore", run: () => setTop(top.value + 1) });
action({ id: "top.fewer", keys: [KEYS.fewer], label: "linkFewer", run: () => setTop(top.value - 1) });
action({
  id: "special",
  keys: [KEYS.special],
  label: "linkHideSpecial",
  run: () => (hideSpecial.value = !hideSpecial.value),
});
action({ id: "transpose", keys: [KEYS.transpose], label: "linkTranspose", run: () => (transposed.value = !transposed.value) });
