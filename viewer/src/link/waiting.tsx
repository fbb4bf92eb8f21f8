// What stands in place of a view that has nothing to draw, and why.

import { grid, trouble } from "../cells";
import { current } from "../store";
import { say } from "../strings";

export function Waiting() {
  return (
    <p class="link-waiting" role="status">
      {reason()}
    </p>
  );
}

function reason(): string {
  const [shown, extent] = [current.value, grid.value?.extent];
  if (!shown) return say("linkNoAttention");
  if (trouble.value) return trouble.value;
  if (!shown.recorded) return say("linkUnrecorded");
  if (extent === "thumbnail") return say("linkThumbnail");
  if (extent === "nothing") return say("linkNothing");
  return say("linkWaiting");
}
