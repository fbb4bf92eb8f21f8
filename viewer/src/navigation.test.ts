import { beforeEach, describe, expect, it, vi } from "vitest";
import { pressed } from "./actions";
import { guard } from "./guard";
import { fitted, inSight, pan, reveal, show, zoom, zoomed } from "./heatmap/window";
import "./navigation";
import * as store from "./store";
import { invent } from "./testing/invent";
import { adopt } from "./url";

// A page is not needed for this, and starting one takes longer than all that follows.
vi.stubGlobal("Element", class {});
const key = (name: string, shiftKey = false) => pressed({ key: name, shiftKey, target: null, preventDefault: () => undefined } as unknown as KeyboardEvent);
const cross = () => [store.query.value, store.key.value];

const made = invent({ large: [300, 400] });

beforeEach(() => {
  store.payload.value = made;
  adopt("");
});

describe("keys", () => {
  it("show the crosshair first and then move it, within the matrix", () => {
    key("ArrowDown");
    expect(cross()).toEqual([0, 0]);
    key("ArrowDown");
    key("ArrowRight");
    expect(cross()).toEqual([1, 1]);
    key("ArrowRight", true);
    expect(cross()).toEqual([1, 8]);
    key("ArrowUp", true);
    expect(cross()).toEqual([0, 8]);
  });
  it("show the crosshair where the reader has zoomed to, and leave the window where it is", () => {
    store.example.value = 4;
    store.visible.value = [100.5, 200.5, 150.5, 250.5];
    key("ArrowDown");
    expect(cross()).toEqual([101, 201]);
    expect(store.visible.value).toEqual([100.5, 200.5, 150.5, 250.5]);
  });
  it("move what the eye sees where the picture is turned", () => {
    store.transposed.value = true;
    key("ArrowDown");
    key("ArrowDown");
    expect(cross()).toEqual([0, 1]);
  });
  it("go through examples, stop at the ends, and leave behind what was chosen in another", () => {
    [store.query.value, store.key.value, store.visible.value] = [1, 1, [0, 0, 2, 2]];
    key("N");
    expect([store.example.value, ...cross()]).toEqual([0, 1, 1]);
    key("n");
    expect([store.example.value, ...cross(), store.visible.value]).toEqual([1, null, null, null]);
    for (let at = 0; at < 99; at += 1) key("n");
    expect(store.example.value).toBe(made.runs[0]!.examples.length - 1);
  });
  it("go through layers and heads and stop at the ends", () => {
    key("[");
    expect(store.current.value!.id).toBe("decoder.0.cross");
    key("[");
    key("]");
    key("]");
    expect(store.current.value!.id).toBe("decoder.1.cross");
    key(",");
    expect(store.head.value).toBe("mean");
    for (let at = 0; at < 9; at += 1) key(".");
    expect(store.head.value).toBe(3);
  });
  it("zoom in at the crosshair, out, and back to all", () => {
    store.example.value = 4;
    [store.query.value, store.key.value] = [0, 0];
    key("+");
    expect(inSight.value.map(Math.round)).toEqual([0, 0, 200, 267]);
    key("-");
    expect(store.visible.value).toBeNull();
    key("+");
    key("0");
    expect(zoomed.value).toBe(false);
  });
  it("close what is open, then clear the selection, then the zoom", () => {
    [store.query.value, store.visible.value] = [1, [0, 0, 4, 4]];
    key("?");
    expect(store.help.value).toBe(true);
    key("Escape");
    expect([store.help.value, store.query.value]).toEqual([false, 1]);
    key("Escape");
    expect([store.query.value, store.visible.value]).toEqual([null, [0, 0, 4, 4]]);
    key("Escape");
    expect(store.visible.value).toBeNull();
  });
  it("open the search, the export and what is known about the page", () => {
    key("/");
    expect(store.dialog.value).toBe("find");
    key("e");
    expect(store.dialog.value).toBe("export");
    key("a");
    expect(store.dialog.value).toBe("about");
    key("Escape");
    expect(store.dialog.value).toBeNull();
  });
});

describe("the window", () => {
  it("stays within the matrix and keeps its size where it can", () => {
    expect(fitted([-5, 2, 5, 4], [0, 0, 20, 30])).toEqual([0, 2, 10, 4]);
    expect(fitted([15, 0, 25, 99], [0, 0, 20, 30])).toEqual([10, 0, 20, 30]);
  });
  it("zooms about a place that stays where it is", () => {
    store.example.value = 4;
    zoom(2, 0.25, 0.75);
    expect(inSight.value).toEqual([37.5, 150, 187.5, 350]);
    pan(-100, 10);
    expect(inSight.value).toEqual([0, 160, 150, 360]);
    zoom(1000);
    expect([inSight.value[2] - inSight.value[0], inSight.value[3] - inSight.value[1]]).toEqual([4, 4]);
  });
  it("moves no farther than it must to bring a cell into sight", () => {
    store.example.value = 4;
    show([10, 10, 20, 20]);
    reveal(15, 25);
    expect(store.visible.value).toEqual([10, 16, 20, 26]);
    reveal(3, null);
    expect(store.visible.value).toEqual([3, 16, 13, 26]);
  });
  it("shows the rows that were brushed, and lets go of them when it is moved", () => {
    store.range.value = [2, 5];
    expect(inSight.value).toEqual([2, 0, 5, 9]);
    pan(1, 0);
    expect([store.range.value, store.visible.value]).toEqual([null, [3, 0, 6, 9]]);
  });
});

describe("a selection that another attention has no place for", () => {
  it("is dropped", () => {
    const stop = guard();
    [store.query.value, store.key.value] = [6, 8];
    store.attention.value = "decoder.0.self";
    expect(cross()).toEqual([6, null]);
    store.frame.value = 99;
    expect(store.frame.value).toBeNull();
    stop();
  });
});
