// The first line of the page: which model, what went in, and what came out.

import { useLayoutEffect, useRef } from "preact/hooks";
import { labels, languageTag } from "./labels";
import { bitmap } from "./overlay/image";
import { useTensor } from "./overlay/tensor";
import type { Axis, Example, ImageAxis, Run, TextAxis } from "./payload";
import { chosen, example, payload } from "./store";
import { say } from "./strings";
import "./styles/headline.css";

/** Characters of a text that the line shows; the rest of a long one is one press away. */
const BRIEF = 160;
const LONGEST = 20_000;
const THUMBNAIL = 40;

/** One end of a model: an axis with its name, or a text of its own. */
export interface End {
  name: string;
  axis: Axis;
  text: string;
}

export function Headline() {
  const runs = payload.value.runs;
  const examples = runs.map((run) => run.examples[example.value] ?? null);
  const inputs = examples.map((each) => each && inputOf(each));
  const outputs = examples.map((each) => each && outputOf(each));
  const same = inputs.length < 2 || (inputs[0]?.text === inputs[1]?.text && inputs[0]?.name === inputs[1]?.name);
  return (
    <div class="headline">
      <span class="headline-part">
        <span class="headline-label">{say("headlineModel")}</span>
        <h1>
          {runs.map((run, at) => (
            <Model key={at} run={run} letter={runs.length > 1 ? LETTERS[at]! : ""} />
          ))}
        </h1>
      </span>
      {(same ? inputs.slice(0, 1) : inputs).map((end, at) => (
        <Part key={`in ${at}`} label={say("headlineIn")} letter={same ? "" : LETTERS[at]!} end={end} />
      ))}
      {outputs.map((end, at) => (
        <Part key={`out ${at}`} label={say("headlineOut")} letter={runs.length > 1 ? LETTERS[at]! : ""} end={end} arrow />
      ))}
    </div>
  );
}

const LETTERS = ["A", "B"];

function Model({ run, letter }: { run: Run; letter: string }) {
  return (
    <span class="headline-model">
      {letter && (
        <>
          <span class={`headline-letter ${letter}`}>{letter}</span>{" "}
        </>
      )}
      <bdi>{run.name || "regard"}</bdi>
    </span>
  );
}

function Part({ label, letter, end, arrow }: { label: string; letter: string; end: End | null; arrow?: boolean }) {
  if (!end) return null;
  const [first, rest] = cut(end.text);
  return (
    <span class="headline-part">
      {arrow && (
        <span class="headline-arrow" aria-hidden="true">
          →
        </span>
      )}
      <span class="headline-label">{label}</span> {letter && <span class={`headline-letter ${letter}`}>{letter}</span>}
      {end.axis.kind === "image" && <Thumbnail axis={end.axis} />}
      <strong class="headline-text">
        <bdi lang={languageTag(end.axis)}>{first}</bdi>
        {rest && (
          <details>
            <summary>{say("headlineMore")}</summary>
            <bdi lang={languageTag(end.axis)}>{end.text.slice(0, LONGEST)}</bdi>
          </details>
        )}
      </strong>
    </span>
  );
}

/** As much as fits, cut between words where there are any. */
export function cut(text: string): [string, string] {
  if (text.length <= BRIEF) return [text, ""];
  const space = text.lastIndexOf(" ", BRIEF);
  const at = space > BRIEF / 2 ? space : BRIEF;
  return [`${text.slice(0, at)} …`, text.slice(at)];
}

/** What the model read: the keys of the attention from the output to the input, or the one axis that there is. */
export function inputOf(of: Example): End | null {
  const shown = chosen(of, "");
  if (!shown) return null;
  const written = shown.query === shown.key ? firstWritten(of) : null;
  return end(of, shown.key, 0, written ?? undefined);
}

/** What it wrote: the queries of that attention; of a model with one axis the part of it that decoding wrote. */
export function outputOf(of: Example): End | null {
  const shown = chosen(of, "");
  if (!shown) return null;
  if (shown.query !== shown.key) return end(of, shown.query);
  const first = firstWritten(of);
  return first === null ? null : end(of, shown.query, first);
}

/** The first place that decoding wrote, in a sequence whose beginning was given. */
function firstWritten(of: Example): number | null {
  const [step] = of.steps;
  const axis = of.axes[chosen(of, "")?.query ?? ""];
  if (!step || !axis) return null;
  // A step names the query of its token, or the one before it, from which the token was predicted.
  const first = labels(axis)[step.query]?.trim() === step.token.trim() ? step.query : step.query + 1;
  return first > 0 && first < axis.length ? first : null;
}

function end(of: Example, name: string, first = 0, last?: number): End | null {
  const axis = of.axes[name];
  return axis ? { name, axis, text: told(axis, name, first, last ?? axis.length) } : null;
}

function told(axis: Axis, name: string, first: number, last: number): string {
  switch (axis.kind) {
    case "text":
      return read(axis, first, last);
    case "image":
      return pictureTold(axis, name);
    case "audio":
      return say("headlineSound", { name, seconds: (axis.length * axis.seconds_per_step).toFixed(1) });
    case "series":
      return say("headlineSeries", { name, names: axis.names.join(", "), count: axis.length });
    case "index":
      return say("headlinePlaces", { name, count: axis.length });
  }
}

function pictureTold(axis: ImageAxis, name: string): string {
  return say("headlinePicture", { name, high: axis.grid[0], wide: axis.grid[1] });
}

/** A text as it was written where that is known, else its tokens; special ones are left out. */
function read(axis: TextAxis, first: number, last: number): string {
  const special = new Set(axis.special);
  const spans = axis.spans.slice(first, last).filter((span) => span !== null);
  const letters = Array.from(axis.text);
  if (axis.text && spans.length > 0) {
    const from = first === 0 ? 0 : Math.min(...spans.map((span) => span[0]));
    const until = last === axis.length ? letters.length : Math.max(...spans.map((span) => span[1]));
    special.forEach((place) => letters.fill("", ...(axis.spans[place] ?? [0, 0])));
    return quotes(letters.slice(from, until).join("").trim());
  }
  const words = labels(axis).slice(first, last).filter((_, at) => !special.has(first + at));
  return quotes(words.join(words.some((word) => /\p{Script=Han}/u.test(word)) ? "" : " ").trim());
}

function quotes(text: string): string {
  return say("linkQuoted", { label: text });
}

function Thumbnail({ axis }: { axis: ImageAxis }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const pixels = useTensor(axis.pixels) as Uint8Array | null;
  const wide = Math.round((THUMBNAIL * axis.size[1]) / Math.max(1, axis.size[0]));
  useLayoutEffect(() => {
    const picture = pixels && bitmap(pixels, axis.pixels!.shape);
    const pen = picture && canvas.current?.getContext("2d");
    if (pen) pen.drawImage(picture, 0, 0, canvas.current!.width, canvas.current!.height);
  }, [pixels]);
  if (!axis.pixels) return null;
  const density = 2;
  return (
    <canvas
      ref={canvas}
      class="headline-picture"
      role="img"
      aria-label={say("headlineThumbnail")}
      width={density * wide}
      height={density * THUMBNAIL}
      style={{ width: `${wide}px`, height: `${THUMBNAIL}px` }}
    />
  );
}
