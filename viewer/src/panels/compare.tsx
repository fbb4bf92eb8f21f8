// Two runs against one another: A, B, their difference, or one beside the other under a line that can be moved.

import type { JSX } from "preact";
import { action } from "../actions";
import { names } from "../compare/names";
import { report } from "../compare/report";
import { DifferenceTable } from "../compare/table";
import type { Attention } from "../payload";
import { chosen, attention, compare, example, head, other, payload, swipe, type Compare as Mode } from "../store";
import { say, type Sentence } from "../strings";
import "../styles/compare.css";

const MODES: readonly { mode: Mode; name: Sentence }[] = [
  { mode: "a", name: "compareA" },
  { mode: "b", name: "compareB" },
  { mode: "difference", name: "compareDifference" },
  { mode: "swipe", name: "compareSwipe" },
];

/** How far a key moves the line, as a share of the width. */
const STEP = 0.05;

action({ id: "compare", keys: ["c"], label: "compareAction", run: next });
action({ id: "swipe.left", keys: ["j"], label: "compareLineLeft", run: () => moveLine(-STEP) });
action({ id: "swipe.right", keys: ["J"], label: "compareLineRight", run: () => moveLine(STEP) });

/** The next way to compare; with one run there is nothing to compare with. */
export function next(): void {
  if (payload.value.runs.length < 2) return;
  const at = MODES.findIndex((each) => each.mode === compare.value);
  compare.value = MODES[(at + 1) % MODES.length]!.mode;
}

/** Move the line; the first press only shows it, where something else is in sight. */
function moveLine(by: number): void {
  if (payload.value.runs.length < 2) return;
  if (compare.value === "swipe") swipe.value = Math.min(1, Math.max(0, Math.round((swipe.value + by) * 100) / 100));
  else compare.value = "swipe";
}

export function Compare(): JSX.Element | null {
  if (payload.value.runs.length < 2) return null;
  const name = names();
  return (
    <div class="compare" role="group" aria-label={`${say("compareTitle")} (c)`}>
      {MODES.map(({ mode, name: word }) => (
        <button
          key={mode}
          type="button"
          class={`compare-${mode}`}
          aria-pressed={compare.value === mode}
          title={explained(mode, name.a, name.b)}
          onClick={() => (compare.value = mode)}
        >
          {say(word)}
          {mode === "a" || mode === "b" ? <bdi class="compare-name">{name[mode]}</bdi> : null}
        </button>
      ))}
      {compare.value === "swipe" && <Line />}
      <details class="compare-details" onKeyDown={closed}>
        <summary>{say("compareDetails")}</summary>
        <div class="compare-report">
          <p>{say("compareRuns", name)}</p>
          <Report />
        </div>
      </details>
    </div>
  );
}

/** Escape closes what lies over the page, and does nothing else then. */
function closed(event: KeyboardEvent): void {
  const details = event.currentTarget as HTMLDetailsElement;
  if (event.key !== "Escape" || !details.open) return;
  event.stopPropagation();
  details.open = false;
  details.querySelector("summary")?.focus();
}

function explained(mode: Mode, a: string, b: string): string {
  if (mode === "difference") return say("compareShowDifference");
  if (mode === "swipe") return say("compareShowSwipe");
  return say("compareShow", { name: mode === "a" ? a : b });
}

/** A is left of the line, B right of it. */
function Line(): JSX.Element {
  const share = Math.round(swipe.value * 100);
  return (
    <label class="compare-line">
      {say("withKey", { label: say("compareLineLabel"), key: "j J" })}
      <input
        type="range"
        min={0}
        max={100}
        step={1}
        value={share}
        aria-valuetext={say("compareLine", { share })}
        aria-keyshortcuts="j J"
        onInput={(event) => (swipe.value = event.currentTarget.valueAsNumber / 100)}
      />
    </label>
  );
}

function Report(): JSX.Element {
  const first = payload.value.runs[0]!.examples[example.value] ?? payload.value.runs[0]!.examples[0]!;
  const mine = chosen(first, attention.value);
  if (!payload.value.runs[1]!.examples[example.value]) return <p>{say("compareNoExample", { number: example.value + 1 })}</p>;
  const second = other.value;
  if (!mine || !second) return <p>{say("compareNoAttention")}</p>;
  const told = [...report({ example: first, attention: mine }, second), ...missing("A", mine), ...missing("B", second.attention)];
  return (
    <>
      {told.map((sentence) => (
        <p key={sentence} dir="auto">
          {sentence}
        </p>
      ))}
      <DifferenceTable a={mine} b={second.attention} />
    </>
  );
}

function missing(run: string, of: Attention): string[] {
  return head.value !== "mean" && head.value >= of.heads ? [say("compareHeadMissing", { run, head: head.value })] : [];
}
