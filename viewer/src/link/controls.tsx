// How the matrix is shown: quantity, scale, palette, how many keys, special tokens, which way round.

import { compare, current, hideSpecial, keyAxis, palette, quantity, queryAxis, reach, scale, top, transposed, view } from "../store";
import type { Quantity, Scale } from "../store";
import { here, range, upper } from "../range";
import { say } from "../strings";
import { written } from "./number";
import { KEYS, MOST, SCALES, palettes, quantities, setTop } from "./choices";

/** Only what changes something in the view that is open. */
export function Controls() {
  const open = view.value;
  const coloured = open === "heatmap" || open === "tokens" || open === "overlay";
  return (
    <div class="link-controls" role="group" aria-label={say("linkControls")}>
      <QuantityChoice />
      {(coloured || open === "lines") && <ScaleChoice />}
      {(open === "heatmap" || open === "tokens") && <RangeChoice />}
      {coloured && compare.value !== "difference" && <PaletteChoice />}
      {(open === "lines" || open === "table") && <TopChoice />}
      {hasSpecial() && (
        <Toggle label={say("linkHideSpecial")} letter={KEYS.special} on={hideSpecial.value} set={(on) => (hideSpecial.value = on)} />
      )}
      {(open === "heatmap" || open === "lines") && (
        <Toggle label={say("linkTranspose")} letter={KEYS.transpose} on={transposed.value} set={(on) => (transposed.value = on)} />
      )}
    </div>
  );
}

function hasSpecial(): boolean {
  return [queryAxis.value, keyAxis.value].some((axis) => axis?.kind === "text" && axis.special.length > 0);
}

interface PickProps {
  label: string;
  letter: string;
  value: string;
  options: { value: string; label: string }[];
  set(value: string): void;
}

function Pick({ label, letter, value, options, set }: PickProps) {
  return (
    <label title={say("linkKeyHint", { label, key: letter })}>
      <span>{label}</span>
      <select aria-keyshortcuts={letter} value={value} onChange={(event) => set(event.currentTarget.value)}>
        {options.map((each) => (
          <option key={each.value} value={each.value}>
            {each.label}
          </option>
        ))}
      </select>
    </label>
  );
}

function QuantityChoice() {
  const there = quantities(current.value);
  if (there.length < 2) return null;
  const options = there.map((each) => ({ value: each.value, label: say(each.label) }));
  const set = (value: string) => (quantity.value = value as Quantity);
  return <Pick label={say("linkQuantity")} letter={KEYS.quantity} value={quantity.value} options={options} set={set} />;
}

function ScaleChoice() {
  const options = SCALES.map((each) => ({ value: each.value, label: say(each.label) }));
  const set = (value: string) => (scale.value = value as Scale);
  return <Pick label={say("linkScale")} letter={KEYS.scale} value={scale.value} options={options} set={set} />;
}

/** Up to which weight the colours go: 1, the largest here, or a number of the reader's own. */
function RangeChoice() {
  const chosen = range.value;
  const most = here.value;
  const options = [
    { value: "one", label: "1" },
    { value: "largest", label: say("rangeLargest", { value: most === null ? "…" : written(most, false) }) },
    { value: "chosen", label: say("rangeChosen") },
  ];
  const set = (value: string) => (reach.value = value === "chosen" ? rounded(upper.value) : (value as "one" | "largest"));
  return (
    <span class="link-top">
      <Pick label={say("linkRange")} letter={KEYS.range} value={typeof chosen === "number" ? "chosen" : chosen} options={options} set={set} />
      {typeof chosen === "number" && (
        <input
          type="number"
          min={0}
          step="any"
          aria-label={say("linkRange")}
          value={chosen}
          onChange={(event) => {
            const value = event.currentTarget.valueAsNumber;
            if (value > 0 && value < 1e6) reach.value = value;
          }}
        />
      )}
    </span>
  );
}

/** Two digits are what a reader begins from. */
function rounded(value: number): number {
  return Number(value.toPrecision(2));
}

function PaletteChoice() {
  const options = palettes().map((name) => ({ value: name, label: name }));
  const set = (value: string) => (palette.value = value);
  return <Pick label={say("linkPalette")} letter={KEYS.palette} value={palette.value} options={options} set={set} />;
}

function TopChoice() {
  const hint = (label: string, letter: string) => say("linkKeyHint", { label, key: letter });
  return (
    <span class="link-top">
      <label>
        <span>{say("linkTop")}</span>
        <input type="number" min={1} max={MOST} value={top.value} onChange={(event) => setTop(event.currentTarget.valueAsNumber)} />
      </label>
      <button
        type="button"
        aria-label={say("linkFewer")}
        title={hint(say("linkFewer"), KEYS.fewer)}
        aria-keyshortcuts={KEYS.fewer}
        onClick={() => setTop(top.value - 1)}
      >
        −
      </button>
      <button
        type="button"
        aria-label={say("linkMore")}
        title={hint(say("linkMore"), KEYS.more)}
        aria-keyshortcuts={KEYS.more}
        onClick={() => setTop(top.value + 1)}
      >
        +
      </button>
    </span>
  );
}

interface ToggleProps {
  label: string;
  letter: string;
  on: boolean;
  set(on: boolean): void;
}

function Toggle({ label, letter, on, set }: ToggleProps) {
  return (
    <button
      type="button"
      aria-pressed={on}
      aria-keyshortcuts={letter}
      title={say("linkKeyHint", { label, key: letter })}
      onClick={() => set(!on)}
    >
      {label}
    </button>
  );
}
