// The pointer over the matrix: point, click to select, drag to move, wheel or two fingers to zoom.

import { batch } from "@preact/signals";
import * as store from "../store";
import { pointed } from "./pointed";
import { inSight, pan, whole, zoom, zoomed } from "./window";

/** A press that moved no farther is a click. */
const STILL = 4;

export class Pointer {
  private readonly down = new Map<number, { x: number; y: number }>();
  private travelled = 0;
  /** Where the pointer was when it last moved; browsers also tell of a move when the page moves under a resting pointer. */
  private last = { x: NaN, y: NaN };

  constructor(private readonly element: HTMLElement) {
    element.addEventListener("pointerdown", (event) => this.press(event));
    element.addEventListener("pointermove", (event) => this.move(event));
    element.addEventListener("pointerup", (event) => this.release(event, true));
    element.addEventListener("pointercancel", (event) => this.release(event, false));
    element.addEventListener("pointerleave", () => (pointed.value = null));
    element.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    element.addEventListener("dblclick", (event) => zoom(2, ...this.shares(event)));
  }

  /** Where in the window an event is: shares of it along queries and along keys. */
  private shares(event: MouseEvent): [number, number] {
    const box = this.element.getBoundingClientRect();
    const across = (event.clientX - box.left) / Math.max(1, box.width);
    const down = (event.clientY - box.top) / Math.max(1, box.height);
    return store.transposed.peek() ? [across, down] : [down, across];
  }

  /** The cell under an event. */
  private cell(event: MouseEvent): { query: number; key: number } | null {
    const [down, across] = this.shares(event);
    if (down < 0 || down >= 1 || across < 0 || across >= 1) return null;
    const [first, left, end, right] = inSight.peek();
    return { query: Math.floor(first + down * (end - first)), key: Math.floor(left + across * (right - left)) };
  }

  private press(event: PointerEvent): void {
    if (event.button !== 0) return;
    this.down.set(event.pointerId, { x: event.clientX, y: event.clientY });
    this.travelled = 0;
    this.element.setPointerCapture?.(event.pointerId);
  }

  private move(event: PointerEvent): void {
    const before = this.down.get(event.pointerId);
    if (!before) return this.point(event);
    const others = [...this.down].filter(([id]) => id !== event.pointerId).map(([, point]) => point);
    this.travelled += Math.abs(event.clientX - before.x) + Math.abs(event.clientY - before.y);
    if (others[0]) this.pinch(event, before, others[0]);
    else if (!zoomed.peek() && event.pointerType === "touch") this.point(event);
    else if (zoomed.peek()) this.drag(event.clientX - before.x, event.clientY - before.y);
    this.down.set(event.pointerId, { x: event.clientX, y: event.clientY });
  }

  private point(event: PointerEvent): void {
    if (event.clientX === this.last.x && event.clientY === this.last.y) return;
    this.last = { x: event.clientX, y: event.clientY };
    const cell = this.cell(event);
    const now = pointed.peek();
    if (cell?.query !== now?.query || cell?.key !== now?.key) pointed.value = cell;
  }

  private drag(x: number, y: number): void {
    const box = this.element.getBoundingClientRect();
    const [first, left, end, right] = inSight.peek();
    const [across, down] = [x / Math.max(1, box.width), y / Math.max(1, box.height)];
    const [rows, columns] = store.transposed.peek() ? [across, down] : [down, across];
    if (this.travelled > STILL) pan(-rows * (end - first), -columns * (right - left));
  }

  private pinch(event: PointerEvent, before: { x: number; y: number }, other: { x: number; y: number }): void {
    const was = Math.hypot(before.x - other.x, before.y - other.y);
    const is = Math.hypot(event.clientX - other.x, event.clientY - other.y);
    if (was > 1) zoom(is / was, ...this.shares(event));
  }

  private release(event: PointerEvent, clicked: boolean): void {
    const pressed = this.down.delete(event.pointerId);
    if (!pressed || !clicked || this.travelled > STILL) return;
    const cell = this.cell(event);
    if (!cell) return;
    batch(() => ([store.query.value, store.key.value] = [cell.query, cell.key]));
    if (event.pointerType === "touch") pointed.value = null;
  }

  /** Zooming out beyond all of the matrix is left to the page, which then scrolls. */
  private wheel(event: WheelEvent): void {
    const all = inSight.peek().every((edge, at) => edge === whole.peek()[at]);
    if (all && event.deltaY > 0) return;
    event.preventDefault();
    zoom(Math.exp(-event.deltaY * (event.deltaMode === 1 ? 0.05 : 0.0015)), ...this.shares(event));
  }
}
