// A curve once for each head, side by side on one scale and on one canvas.

import { useLayoutEffect, useRef } from "preact/hooks";
import { head } from "../store";
import { say } from "../strings";
import { prepare, useWidth } from "./canvas";
import { coloursOf, theme } from "./colours";
import { draw } from "./draw";
import { headsFinding } from "./finding";
import { type Cell, multiplesOf } from "./picture";
import type { Plot } from "./plots";
import type { Scene } from "./scene";

interface Given {
  plot: Plot;
  scene: Scene;
}

export function Multiples({ plot, scene }: Given) {
  const name = `multiples-${plot.name}`;
  const found = headsFinding(scene.tables, plot);
  const { ref, width } = useWidth<HTMLDivElement>();
  const canvas = useRef<HTMLCanvasElement>(null);
  const { heads } = scene.tables;
  const { cells, height, columns } = useCells(canvas, plot, scene, width);
  const chosen = head.value === "mean" ? 0 : Math.min(head.value, heads - 1);
  const take = (event: PointerEvent) => {
    const box = (event.currentTarget as Element).getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    const cell = cells.find((each) => x >= each.x && x < each.x + each.picture.width && y >= each.y && y < each.y + each.picture.height);
    if (cell) head.value = cell.head;
  };
  return (
    <div class="curve">
      <h3 id={name}>{say(plot.title)}</h3>
      <p class="curve-definition">{say(plot.definition)}</p>
      <div
        ref={ref}
        class="curve-drawing curve-multiples"
        role="slider"
        tabIndex={0}
        aria-labelledby={name}
        aria-describedby={`${name}-finding`}
        aria-valuemin={0}
        aria-valuemax={heads - 1}
        aria-valuenow={chosen}
        aria-valuetext={say("time.head", { head: chosen })}
        onKeyDown={(event: KeyboardEvent) => walk(event, chosen, heads, columns)}
        onClick={take as unknown as (event: MouseEvent) => void}
      >
        <canvas ref={canvas} class="curve-canvas" role="img" aria-label={found} style={{ height: `${height}px` }} />
      </div>
      <p class="curve-finding" id={`${name}-finding`}>
        {found}
      </p>
    </div>
  );
}

interface Cells {
  cells: Cell[];
  height: number;
  columns: number;
}

function useCells(canvas: { current: HTMLCanvasElement | null }, plot: Plot, scene: Scene, width: number): Cells {
  const colour = theme.value;
  const made =
    canvas.current && width > 0 ? multiplesOf(scene, plot, width, coloursOf(canvas.current)) : { cells: [], height: 0, columns: 1 };
  useLayoutEffect(() => {
    if (!canvas.current || made.cells.length === 0) return;
    const pen = prepare(canvas.current, width, made.height);
    if (!pen) return;
    const colours = coloursOf(canvas.current);
    for (const cell of made.cells) {
      pen.save();
      pen.translate(cell.x, cell.y);
      draw(pen, cell.picture, colours);
      pen.restore();
    }
  }, [scene, plot, width, colour, made.cells.length]);
  return made;
}

/** Arrows go from head to head as they stand in the grid. */
function walk(event: KeyboardEvent, chosen: number, heads: number, columns: number): void {
  const steps: Record<string, number> = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -columns, ArrowDown: columns };
  const step = steps[event.key];
  if (step === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  const next = head.value === "mean" ? chosen : chosen + step;
  if (next >= 0 && next < heads) head.value = next;
}
