// What the reader looks at, how it came about, and what of it this page does not hold.

import { current, run } from "../store";
import { say } from "../strings";
import type { Attention, Omitted } from "../payload";
import type { Grid } from "../grid";
import { bytes, percent } from "./number";
import { sourceTold } from "./source";

/** Lines of the list of what is missing; a page over its budget can miss a thousand heads. */
const LISTED = 40;

export function About({ grid }: { grid: Grid | null }) {
  const shown = current.value;
  if (!shown) return null;
  return (
    <div class="link-about">
      <p>
        <bdi class="link-name">{shown.id}</bdi> <span class="quiet">{say("linkSize", sizes(shown))}</span>{" "}
        <span class="quiet">{say("linkSource", { source: sourceTold(shown.source) })}</span>
      </p>
      {missing(shown, grid).map((sentence) => (
        <p key={sentence} class="link-missing">
          {sentence}
        </p>
      ))}
      <Left omitted={run.value.omitted} />
    </div>
  );
}

function sizes(shown: Attention): { queries: number; keys: number; heads: number } {
  return { queries: shown.queries, keys: shown.keys, heads: shown.heads };
}

/** What the picture does not show, in sentences. */
export function missing(shown: Attention, grid: Grid | null): string[] {
  const told: string[] = [];
  if (!shown.recorded) return [say("linkUnrecorded")];
  if (shown.rows) told.push(say("linkRows", { count: shown.rows.length, queries: shown.queries }));
  if (grid?.extent === "top" && shown.top) told.push(say("linkShare", { share: percent(shown.top.share) }));
  if (grid?.extent === "thumbnail") told.push(say("linkThumbnail"));
  if (grid?.extent === "nothing") told.push(say("linkNothing"));
  return told;
}

function Left({ omitted }: { omitted: Omitted[] }) {
  if (omitted.length === 0) return null;
  return (
    <details>
      <summary>{say("linkOmitted", { count: omitted.length })}</summary>
      <ul>
        {omitted.slice(0, LISTED).map((each, at) => (
          <li key={at}>
            <bdi>{each.what}</bdi>
            {each.bytes > 0 && <span class="quiet"> {bytes(each.bytes)}</span>} <span class="quiet">{say("linkBringsBack")}</span>{" "}
            <code>{each.call}</code>
          </li>
        ))}
        {omitted.length > LISTED && <li>{say("linkOmittedMore", { count: omitted.length - LISTED })}</li>}
      </ul>
    </details>
  );
}
