// Step 2: how strong the attention in sight was along time.

import "../styles/time.css";
import { action } from "../actions";
import { Button } from "../button";
import { Curve } from "../curves/curve";
import { useLater } from "../curves/later";
import { Multiples } from "../curves/multiples";
import { PLOTS } from "../curves/plots";
import { type Scene, scene } from "../curves/scene";
import { current, frame, multiples, quantity, range, run } from "../store";
import { say } from "../strings";

action({
  id: "multiples",
  keys: ["u"],
  label: "time.multiples",
  run: () => (multiples.value = !multiples.value),
});

export function Time() {
  const found = useLater(scene);
  const shown = current.value;
  return (
    <section class="time" aria-labelledby="time-title">
      <h2 id="time-title">{say("time.title")}</h2>
      {!shown && <p>{say("time.nothing")}</p>}
      {shown && !found && <p>{say("time.loading")}</p>}
      {shown && found && <Curves found={found} />}
    </section>
  );
}

function Curves({ found }: { found: Scene }) {
  const apart = multiples.value && found.tables.heads > 1;
  return (
    <>
      <div class="time-controls">
        {found.tables.heads > 1 && <Button of="multiples" pressed={apart} />}
        {found.letters && !apart && <Legend letters={found.letters} />}
        <Chosen />
      </div>
      <p class="time-about">{about(found, apart).join(" ")}</p>
      <p class="visually-hidden" id="time-keys">
        {say("time.keys")}
      </p>
      <div class="time-curves">
        {PLOTS.map((plot) =>
          apart ? <Multiples key={plot.name} plot={plot} scene={found} /> : <Curve key={plot.name} plot={plot} scene={found} />,
        )}
      </div>
    </>
  );
}

/** Whose numbers these are. */
function about(found: Scene, apart: boolean): string[] {
  const heads = found.tables.heads;
  const told: string[] = [];
  if (found.head !== "mean") told.push(say("time.head", { head: found.head }));
  else if (heads > 1) told.push(say("time.mean", { heads }));
  if (found.layers.length > 1 && !apart) told.push(say("time.band", { count: found.layers.length }));
  if (found.about && frame.value !== null) told.push(say("time.about", { step: run.value.training[frame.value]?.step ?? "" }));
  if (found.unfilmed) told.push(say("time.unfilmed"));
  if (quantity.value !== "weights") told.push(say("time.quantity"));
  return told;
}

function Legend({ letters }: { letters: [string, string] }) {
  return (
    <ul class="time-legend">
      {[...letters].sort().map((letter) => (
        <li key={letter} class={letter === "A" ? "time-a" : "time-b"}>
          {say("time.run", { letter })}
        </li>
      ))}
    </ul>
  );
}

/** The rows that were brushed, and the way back to all of them. */
function Chosen() {
  const brushed = range.value;
  if (!brushed) return null;
  return (
    <p class="time-range">
      {say("time.range", { first: brushed[0] + 1, last: brushed[1] })}{" "}
      <button type="button" aria-keyshortcuts="Escape" onClick={() => (range.value = null)}>
        {say("time.clear")}
      </button>
    </p>
  );
}
