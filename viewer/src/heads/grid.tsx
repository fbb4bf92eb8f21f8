// The matrix of heads: a grid for the keyboard over one painted canvas. Only the cells in sight are there at all.

import { useSignal, useSignalEffect } from "@preact/signals";
import type { JSX } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";
import { current, head, headsOrder, headsView, lit } from "../store";
import { say } from "../strings";
import { finding, span } from "./finding";
import { useSignalOf } from "./following";
import { hasPicture } from "./loaded";
import { select } from "./multiples";
import { moved, type Arranged, type Cell } from "./order";
import { isPinned, toggle } from "./pins";
import { headSentence, nameOf, numberOf, statistics } from "./statistics";
import { paintHeads, type Surface } from "./surface";
import { inSight, MARGIN, reveal, useWindow, type Given } from "./window";

export function Grid({ arranged, size }: Given): JSX.Element {
  const scroller = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const window = useWindow(scroller);
  const focused = useSignal<Cell | null>(null);
  const given = useSignalOf({ arranged, size });
  useSignalEffect(() => {
    const surface = inSight(given.value, window.value);
    if (canvas.current) paintHeads(canvas.current, surface, span());
  });
  const selected = arranged.cells.find(chosen);
  const stop = again(arranged, focused.value) ?? selected ?? arranged.cells[0]!;
  const surface = withStop(inSight({ arranged, size }, window.value), stop);
  useLayoutEffect(() => {
    if (selected) reveal(scroller.current, selected, size);
  }, [selected && place(selected), size]);

  // The focus goes with the head that has it, wherever an arrow or another order takes that.
  useLayoutEffect(() => {
    const inside = scroller.current?.contains(document.activeElement) && document.activeElement?.hasAttribute("data-cell");
    if (inside) scroller.current?.querySelector<HTMLElement>(`[data-cell="${place(stop)}"]`)?.focus({ preventScroll: true });
  }, [place(stop)]);

  function entered(event: FocusEvent): void {
    const at = (event.target as HTMLElement).dataset["cell"];
    focused.value = arranged.cells.find((cell) => place(cell) === at) ?? focused.value;
  }

  function keyed(event: KeyboardEvent): void {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      select(stop);
    } else if (event.key === "P") {
      event.preventDefault();
      toggle({ attention: stop.attention.id, head: stop.head });
    } else {
      const next = moved(arranged, stop, event.key);
      if (!next) return;
      event.preventDefault();
      focused.value = next;
      reveal(scroller.current, next, size);
    }
    event.stopPropagation();
  }

  const label = headsOrder.value ? say("headsSorted", { statistic: nameOf(headsOrder.value.statistic) }) : say("headsGrid");
  return (
    <div class="heads-matrix">
      <canvas
        ref={canvas}
        class="heads-canvas"
        role="img"
        aria-label={finding()}
        style={{ left: `${MARGIN.left}px`, top: `${MARGIN.top}px` }}
      />
      <div class="heads-scroll" ref={scroller}>
        <div
          role="grid"
          aria-label={`${label}. ${say("headsHint")}`}
          aria-rowcount={arranged.rows + 1}
          aria-colcount={arranged.columns + 1}
          class="heads-grid"
          style={{ width: `${MARGIN.left + arranged.columns * size}px`, height: `${MARGIN.top + arranged.rows * size}px` }}
          onKeyDown={keyed}
          onFocusIn={entered}
        >
          <Top surface={surface} columns={arranged.columns} scroll={window.value.top} />
          {rowsOf(surface).map((row) => (
            <Row key={row} row={row} surface={surface} stop={stop} scroll={window.value.left} columns={arranged.columns} />
          ))}
        </div>
      </div>
    </div>
  );
}

/** Numbers of heads, which stay above what is scrolled; where heads are ranked a column means nothing. */
function Top({ surface, columns, scroll }: { surface: Surface; columns: number; scroll: number }): JSX.Element {
  const inOrder = headsOrder.value === null;
  const role = inOrder ? "columnheader" : undefined; // a header without a name is none
  const shown = [...new Set(surface.cells.map((cell) => cell.column))].sort((left, right) => left - right);
  return (
    <div role={inOrder ? "row" : undefined} aria-rowindex={inOrder ? 1 : undefined} aria-hidden={!inOrder} class="heads-top" style={{ transform: `translateY(${scroll}px)` }}>
      <span role={role} aria-colindex={inOrder ? 1 : undefined} class="heads-corner">
        {inOrder ? say("headsColumn") : ""}
      </span>
      {shown.map((column) => (
        <span
          role={role}
          aria-colindex={inOrder ? column + 2 : undefined}
          key={column}
          class="heads-column"
          style={{ left: `${MARGIN.left + column * surface.size}px`, width: `${surface.size}px` }}
        >
          {inOrder ? (column === columns - 1 ? say("headsMean") : column) : ""}
        </span>
      ))}
    </div>
  );
}

interface RowGiven {
  row: number;
  surface: Surface;
  stop: Cell;
  scroll: number;
  columns: number;
}

function Row({ row, surface, stop, scroll, columns }: RowGiven): JSX.Element {
  const cells = surface.cells.filter((cell) => cell.row === row);
  const name = headsOrder.value ? say("headsRank", { rank: row * columns + 1 }) : cells[0]!.attention.layer;
  return (
    <div role="row" aria-rowindex={row + 2}>
      <span
        role="rowheader"
        aria-colindex={1}
        class="heads-layer"
        title={headsOrder.value ? undefined : cells[0]!.attention.id}
        style={{ top: `${MARGIN.top + row * surface.size}px`, height: `${surface.size}px`, transform: `translateX(${scroll}px)` }}
      >
        {name}
      </span>
      {cells.map((cell) => (
        <GridCell key={cell.column} cell={cell} size={surface.size} tab={place(cell) === place(stop)} />
      ))}
    </div>
  );
}

function GridCell({ cell, size, tab }: { cell: Cell; size: number; tab: boolean }): JSX.Element {
  const pin = { attention: cell.attention.id, head: cell.head };
  const unknown = headsView.value === "pictures" ? !hasPicture(cell.attention) : numberOf(cell.attention, cell.head, headsView.value) === null;
  const classes = ["heads-cell", chosen(cell) && "chosen", !cell.passes && "faint", isPinned(pin) && "pinned", unknown && "unknown"];
  return (
    <span
      role="gridcell"
      aria-colindex={cell.column + 2}
      aria-selected={chosen(cell)}
      aria-label={headsOrder.value ? `${shortName(cell)}: ${cellLabel(cell)}` : cellLabel(cell)}
      title={cellLabel(cell)}
      data-cell={place(cell)}
      tabIndex={tab ? 0 : -1}
      class={classes.filter(Boolean).join(" ")}
      style={{
        left: `${MARGIN.left + cell.column * size}px`,
        top: `${MARGIN.top + cell.row * size}px`,
        width: `${size}px`,
        height: `${size}px`,
      }}
      onClick={(event) => (event.shiftKey ? toggle(pin) : select(cell))}
      onPointerEnter={() => (lit.value = cell.attention.id)}
      onPointerLeave={() => (lit.value = null)}
    >
      {headsOrder.value && (
        <span class="heads-name" aria-hidden="true">
          {shortName(cell)}
        </span>
      )}
    </span>
  );
}

/** "L3 H7": the name that a sorted head shows. */
function shortName(cell: Cell): string {
  return say("headsShort", { layer: cell.attention.layer, head: cell.head });
}

/** "layer 3, head 7, entropy 1.2": the statistic in sight, or all of them under a picture. */
function cellLabel(cell: Cell): string {
  const shown = headsView.value === "pictures" ? statistics() : [headsView.value];
  const marks = [!cell.passes && say("headsLeftOut"), isPinned({ attention: cell.attention.id, head: cell.head }) && say("headsPinnedMark")];
  return [headSentence(cell.attention, cell.head, shown), ...marks].filter(Boolean).join(say("headsComma"));
}

function chosen(cell: Cell): boolean {
  return cell.attention === current.value && cell.head === head.value;
}

function place(cell: Cell): string {
  return `${cell.row}.${cell.column}`;
}

/** The same head where it stands now; the order may have changed since it had the focus. */
function again(arranged: Arranged, cell: Cell | null): Cell | undefined {
  return cell ? arranged.cells.find((each) => each.attention === cell.attention && each.head === cell.head) : undefined;
}

function rowsOf(surface: Surface): number[] {
  return [...new Set(surface.cells.map((cell) => cell.row))].sort((left, right) => left - right);
}

/** The cell that Tab reaches is there wherever it is, or the keyboard could not come in. */
function withStop(surface: Surface, stop: Cell): Surface {
  return surface.cells.includes(stop) ? surface : { ...surface, cells: [...surface.cells, stop] };
}
