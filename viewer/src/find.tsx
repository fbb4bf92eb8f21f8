// Find a token among the queries and keys in sight, and go to it.

import { useComputed, useSignal } from "@preact/signals";
import { Dialog } from "./dialog";
import { reveal } from "./heatmap/window";
import { labels, languageTag, numberOf } from "./labels";
import type { Axis } from "./payload";
import { dialog, key, keyAxis, query, queryAxis } from "./store";
import { say } from "./strings";

/** More are not listed: who gets so many types another letter. */
const LISTED = 50;

/** The places whose name, or whose piece, holds a text, however its letters are written. */
export function matches(axis: Axis | null, wanted: string): number[] {
  const part = wanted.trim().normalize("NFKC").toLocaleLowerCase();
  if (!axis || !part) return [];
  const holds = (text: string | undefined) => text !== undefined && text.normalize("NFKC").toLocaleLowerCase().includes(part);
  const pieces = axis.kind === "text" ? axis.pieces : [];
  return labels(axis).flatMap((name, place) => (holds(name) || holds(pieces[place]) ? [place] : []));
}

export function Find() {
  const close = () => (dialog.value = null);
  return (
    <Dialog id="find" title={say("findTitle")} open={dialog.value === "find"} close={close}>
      <Search />
    </Dialog>
  );
}

function Search() {
  const wanted = useSignal("");
  const queries = useComputed(() => matches(queryAxis.value, wanted.value));
  const keys = useComputed(() => matches(keyAxis.value, wanted.value));
  const count = queries.value.length + keys.value.length;
  const submit = (event: Event) => {
    event.preventDefault();
    if (keys.value.length > 0) go("key", keys.value[0]!);
    else if (queries.value.length > 0) go("query", queries.value[0]!);
  };
  const told = Math.min(LISTED, queries.value.length) + Math.min(LISTED, keys.value.length);
  return (
    <form onSubmit={submit}>
      <label>
        {say("findLabel")}
        <input type="search" autoFocus value={wanted.value} onInput={(event) => (wanted.value = event.currentTarget.value)} />
      </label>
      <p role="status">{wanted.value.trim() && say(told < count ? "findMore" : "findCount", { count, shown: told })}</p>
      <div class="found">
        <Found title={say("findKeys")} side="key" axis={keyAxis.value} places={keys.value} />
        <Found title={say("findQueries")} side="query" axis={queryAxis.value} places={queries.value} />
      </div>
    </form>
  );
}

function go(side: "query" | "key", place: number): void {
  if (side === "query") query.value = place;
  else key.value = place;
  reveal(side === "query" ? place : null, side === "key" ? place : null);
  dialog.value = null;
}

function Found({ title, side, axis, places }: { title: string; side: "query" | "key"; axis: Axis | null; places: number[] }) {
  if (!axis || places.length === 0) return null;
  return (
    <div>
      <h3>{title}</h3>
      <ul>
        {places.slice(0, LISTED).map((place) => (
          <li key={place}>
            <button type="button" onClick={() => go(side, place)}>
              <span class="quiet">{numberOf(axis, place)}</span> <bdi lang={languageTag(axis)}>{labels(axis)[place]!.slice(0, 80)}</bdi>
            </button>
          </li>
        ))}
      </ul>
    </div>
  );
}
