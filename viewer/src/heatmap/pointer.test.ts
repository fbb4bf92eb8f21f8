import { beforeEach, describe, expect, it } from "vitest";
import * as store from "../store";
import { invent } from "../testing/invent";
import { adopt } from "../url";
import { pointed } from "./pointed";
import { Pointer } from "./pointer";
import { inSight, show } from "./window";

const made = invent({ large: [100, 200] });
/** An element of 200 x 100 pixels. */
const element = Object.assign(new EventTarget(), { getBoundingClientRect: () => ({ left: 0, top: 0, width: 200, height: 100 }) });
new Pointer(element as unknown as HTMLElement);

function send(type: string, clientX: number, clientY: number, more: object = {}): Event {
  const event = Object.assign(new Event(type, { cancelable: true }), { clientX, clientY, button: 0, pointerId: 1, ...more });
  element.dispatchEvent(event);
  return event;
}

beforeEach(() => {
  store.payload.value = made;
  adopt("#x=4");
});

describe("the pointer", () => {
  it("points at a cell and lets go of it when it leaves", () => {
    send("pointermove", 10, 3);
    expect(pointed.value).toEqual({ query: 3, key: 10 });
    send("pointerleave", 300, 3);
    expect(pointed.value).toBeNull();
  });
  it("selects by a click, the other way round where the picture is turned", () => {
    send("pointerdown", 10, 3);
    send("pointerup", 10, 3);
    expect([store.query.value, store.key.value]).toEqual([3, 10]);
    store.transposed.value = true;
    send("pointerdown", 10, 3);
    send("pointerup", 10, 3);
    expect([store.query.value, store.key.value]).toEqual([5, 6]);
  });
  it("drags the window and selects nothing by it", () => {
    show([10, 10, 60, 110]);
    send("pointerdown", 100, 50);
    send("pointermove", 80, 40);
    send("pointerup", 80, 40);
    expect(inSight.value).toEqual([15, 20, 65, 120]);
    expect(store.query.value).toBeNull();
  });
  it("zooms with the wheel about the place where it is, and leaves the page to scroll beyond all", () => {
    expect(send("wheel", 0, 0, { deltaY: 100, deltaMode: 0 }).defaultPrevented).toBe(false);
    expect(send("wheel", 0, 0, { deltaY: -Math.log(2) / 0.0015, deltaMode: 0 }).defaultPrevented).toBe(true);
    expect(inSight.value.map((edge) => Math.round(edge * 1000) / 1000)).toEqual([0, 0, 50, 100]);
  });
  it("zooms with two fingers as they part", () => {
    send("pointerdown", 90, 50, { pointerId: 1 });
    send("pointerdown", 110, 50, { pointerId: 2 });
    send("pointermove", 130, 50, { pointerId: 2 });
    expect(inSight.value[3] - inSight.value[1]).toBe(100);
    send("pointercancel", 0, 0, { pointerId: 1 });
    send("pointercancel", 0, 0, { pointerId: 2 });
  });
});
