// What stands in place of a view that has nothing to draw, and why.

import { trouble } from "../cells";
import type { Grid } from "../grid";
import { current } from "../store";
import { say } from "../strings";

export function Waiting({ grid }: { grid: Grid | null }) {
  return (
    <p class="link-waiting" role="status">
      {reason(grid)}
    </p>
  );
}

function reason(grid: Grid | null): string {
  const shown = current.value;
  if (!shown) return say("linkNoAttention");
  if (trouble.value) return trouble.value;
  if (!shown.recorded) return say("linkUnrecorded");
  if (grid?.extent === "thumbnail") return say("linkThumbnail");
  if (grid?.extent === "nothing") return say("linkNothing");
  return say("linkWaiting");
}
