// Take something away from the page: a picture, numbers, a link to this very view, or the Python that shows it.

import { useSignal } from "@preact/signals";
import { useLayoutEffect, useRef } from "preact/hooks";
import { grid } from "./cells";
import { cellsInSight, MOST_CELLS } from "./export/csv";
import { figure, rasterised } from "./export/figure";
import { Dialog } from "./dialog";
import { inSight } from "./heatmap/window";
import { current, dialog, keyAxis, payload, queryAxis, view } from "./store";
import { say } from "./strings";
import { fragment } from "./url";

export function Export() {
  return (
    <Dialog id="export" title={say("exportTitle")} open={dialog.value === "export"} close={() => (dialog.value = null)}>
      <Ways />
    </Dialog>
  );
}

function Ways() {
  const told = useSignal("");
  const text = useSignal<string | null>(null);
  const copy = (content: string) => {
    text.value = content;
    copied(content).then((done) => (told.value = say(done ? "exportCopied" : "exportByHand")));
  };
  return (
    <>
      <div class="ways">
        <button type="button" onClick={() => void savePicture().then((message) => (told.value = message))}>
          {say("exportPicture")}
        </button>
        <button type="button" onClick={() => (told.value = saveDrawing())}>
          {say("exportDrawing")}
        </button>
        <button type="button" onClick={() => (told.value = saveCells())}>
          {say("exportCells")}
        </button>
        <button type="button" onClick={() => copy(link())}>
          {say("exportLink")}
        </button>
        <button type="button" onClick={() => copy(python())}>
          {say("exportPython")}
        </button>
      </div>
      {text.value !== null && <Text content={text.value} />}
      <p role="status">{told.value}</p>
      <p class="quiet">{say("exportFigures")}</p>
    </>
  );
}

function Text({ content }: { content: string }) {
  const ref = useRef<HTMLTextAreaElement>(null);
  useLayoutEffect(() => ref.current?.select(), [content]);
  return (
    <label>
      {say("exportText")}
      <textarea ref={ref} readOnly rows={3} value={content} />
    </label>
  );
}

async function copied(content: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(content);
    return true;
  } catch {
    return false;
  }
}

/** The page's address with this state; inside a frame that has no address of its own, the state alone. */
export function link(): string {
  const base = window.location.href.split("#")[0]!;
  return /^(https?|file):/.test(base) ? base + (fragment() || "#") : fragment() || "#";
}

/** The call that opens this view. */
export function python(): string {
  const traces = payload.value.runs.length > 1 ? "trace, other" : "trace";
  return `regard.view(${traces}, state=${JSON.stringify(fragment())})`;
}

async function savePicture(): Promise<string> {
  const drawn = figure();
  const blob = drawn && (await rasterised(drawn));
  return blob ? save(blob, `${stem()}.png`) : say("exportNothing");
}

function saveDrawing(): string {
  const drawn = figure();
  return drawn ? save(new Blob([drawn.svg], { type: "image/svg+xml;charset=utf-8" }), `${stem()}.svg`) : say("exportNothing");
}

function saveCells(): string {
  const [shown, matrix, queries, keys, window] = [current.value, grid.value, queryAxis.value, keyAxis.value, inSight.value];
  if (!shown || !matrix || !queries || !keys) return say("exportNothing");
  const count = Math.ceil(window[2] - window[0]) * Math.ceil(window[3] - window[1]);
  if (count > MOST_CELLS) return say("exportMany", { count, most: MOST_CELLS });
  const text = cellsInSight(shown, matrix, queries, keys, window);
  return save(new Blob(["\ufeff", text], { type: "text/csv;charset=utf-8" }), `${stem()}.csv`);
}

/** A file name from the attention's: only letters, digits, dots and dashes. */
function stem(): string {
  const name = (current.value?.id ?? "attention").replace(/[^A-Za-z0-9.-]+/g, "-").slice(0, 60);
  return `${name}-${view.value}`;
}

function save(blob: Blob, name: string): string {
  const address = URL.createObjectURL(blob);
  const anchor = document.createElement("a");
  [anchor.href, anchor.download] = [address, name];
  anchor.click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
  return say("exportSaved", { name });
}
