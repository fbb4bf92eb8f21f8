// What the attention linked: one matrix, five ways to read it.

import { useEffect } from "preact/hooks";
import { About } from "../link/about";
import { quantities } from "../link/choices";
import { Controls } from "../link/controls";
import { useGrid } from "../link/reading";
import { Tabs } from "../link/tabs";
import { current, type LinkView, quantity, view } from "../store";
import { say } from "../strings";
import { Heatmap } from "./heatmap";
import { Lines } from "./lines";
import { Overlay } from "./overlay";
import { TableView } from "./table";
import { Tokens } from "./tokens";
import "../styles/link.css";

const VIEW: Record<LinkView, () => preact.JSX.Element | null> = {
  heatmap: Heatmap,
  lines: Lines,
  tokens: Tokens,
  overlay: Overlay,
  table: TableView,
};

export function Link() {
  const grid = useGrid();
  const View = VIEW[view.value];
  useQuantityThatIsThere();
  return (
    <section id="link" class="panel link" aria-labelledby="link-title">
      <h2 id="link-title">{say("linkTitle")}</h2>
      <Tabs />
      <Controls />
      <div id="link-view" class="link-view" role="tabpanel" aria-labelledby={`link-tab-${view.value}`}>
        <View />
      </div>
      <About grid={grid} />
    </section>
  );
}

/** Not every attention has scores: where the chosen quantity was not kept, its weights are shown. */
function useQuantityThatIsThere(): void {
  const [shown, wanted] = [current.value, quantity.value];
  useEffect(() => {
    if (shown && !quantities(shown).some((each) => each.value === wanted)) quantity.value = "weights";
  }, [shown, wanted]);
}
