// Every query with its own small picture: what each word of a caption read, none of them left out.

import { brief } from "../link/finding";
import { rowLine } from "../link/reading";
import type { Grid } from "../grid";
import { languageTag } from "../labels";
import { toggle } from "../link/roving";
import type { Axis, ImageAxis } from "../payload";
import { query } from "../store";
import { say } from "../strings";
import { Canvas, type Paint } from "./canvas";
import { shadePatches, usePicture } from "./image";
import { shadeOf } from "./shade";

/** Pictures at once; a longer sequence goes by pages, and says so. */
const PAGE = 60;

interface Props {
  queries: Axis;
  keys: ImageAxis;
  grid: Grid;
  shown: number | null;
}

export function EveryQuery({ queries, keys, grid, shown }: Props) {
  const picture = usePicture(keys);
  const first = Math.floor((shown ?? 0) / PAGE) * PAGE;
  const end = Math.min(queries.length, first + PAGE);
  const [high, wide] = keys.size;
  const places = Array.from({ length: end - first }, (_, at) => first + at);
  return (
    <section class="overlay-every" aria-labelledby="overlay-every">
      <h3 id="overlay-every">{say("overlayEvery", { count: queries.length })}</h3>
      {queries.length > PAGE && (
        <p class="passage-pages">
          <button type="button" disabled={first === 0} onClick={() => (query.value = first - PAGE)}>
            {say("tokensEarlier")}
          </button>
          <span>{say("tokensPage", { first: first + 1, last: end, count: queries.length })}</span>
          <button type="button" disabled={end === queries.length} onClick={() => (query.value = end)}>
            {say("tokensLater")}
          </button>
        </p>
      )}
      <ul>
        {places.map((place) => {
          const row = rowLine(grid, place);
          const paint: Paint = (context, width, height, theme) => {
            if (picture) context.drawImage(picture, 0, 0, width, height);
            shadePatches(context, keys, row.known ? shadeOf(row) : null, width, height, picture ? null : theme.line);
          };
          const name = brief(queries, place);
          return (
            <li key={place}>
              <button type="button" aria-pressed={shown === place} onClick={() => toggle(query, place)}>
                <Canvas label={say("overlayOf", { name })} height={(width) => (width * high) / wide} paint={paint} />
                <bdi lang={languageTag(queries)}>{row.known ? name : say("linkNoRow", { place: name })}</bdi>
              </button>
            </li>
          );
        })}
      </ul>
    </section>
  );
}
