// Token colouring: each side is coloured by what is chosen on the other. A query fixed shows what it reads; a key fixed
// shows who reads it.

import { readBy, reads } from "../link/finding";
import { Legend, Passage } from "../link/passage";
import { useReading } from "../link/reading";
import { Waiting } from "../link/waiting";
import { key, query } from "../store";
import { say } from "../strings";
import "../styles/tokens.css";

export function Tokens() {
  const found = useReading();
  if (!found) return <Waiting />;
  const { grid, queries, keys, shown, query: read, row, key: place, column } = found;
  return (
    <div class="tokens">
      <p class="quiet">{say("tokensChoose")}</p>
      <Passage axis={queries} side="query" name={shown.query} chosen={query} shown={read} line={column} grid={grid} />
      <Passage axis={keys} side="key" name={shown.key} chosen={key} shown={place} line={row} grid={grid} />
      <Legend grid={grid} />
      {read !== null && row && <p class="tokens-finding">{reads(queries, read, keys, row)}</p>}
      {place !== null && column && <p class="tokens-finding">{readBy(keys, place, queries, column)}</p>}
    </div>
  );
}
