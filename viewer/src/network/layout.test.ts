import { expect, it } from "vitest";
import type { Box, Line } from "./fold";
import { HEADER, key, labelled, layout, type Rectangle } from "./layout";
import { path } from "./draw";
import { badge, stepped, stops, unfoldId } from "./stops";

function box(slot: string, inside: Box[] = [], times = 1): Box {
  return { slot, name: slot, sort: "module", node: null, attention: null, inside, opens: inside.length > 0, times, stack: times > 1 ? "s" : null, holds: false };
}

function line(start: string, end: string, shape = [1, 9]): Line {
  return { start, end, shapes: [shape], roles: [] };
}

const BOXES = [box("0"), box("1", [box("1/0"), box("1/1")]), box("2")];
const LINES = [line("0", "1/0"), line("1/0", "1/1"), line("1/1", "2")];

function apart(left: Rectangle, right: Rectangle): boolean {
  return (
    left.left + left.width <= right.left ||
    right.left + right.width <= left.left ||
    left.top + left.height <= right.top ||
    right.top + right.height <= left.top
  );
}

it("a chain runs from top to bottom and no two boxes overlap", () => {
  const { places } = layout(BOXES, LINES);
  const chain = ["0", "1/0", "1/1", "2"].map((slot) => places.get(slot)!);
  chain.slice(1).forEach((place, at) => expect(place.top).toBeGreaterThan(chain[at]!.top + chain[at]!.height));
  for (const one of chain) for (const other of chain) if (one !== other) expect(apart(one, other)).toBe(true);
});

it("a frame holds its boxes and has room for its header above them", () => {
  const { places, width, height } = layout(BOXES, LINES);
  const frame = places.get("1")!;
  for (const slot of ["1/0", "1/1"]) {
    const inner = places.get(slot)!;
    expect(inner.top).toBeGreaterThanOrEqual(frame.top + HEADER);
    expect(inner.top + inner.height).toBeLessThanOrEqual(frame.top + frame.height);
    expect(inner.left).toBeGreaterThanOrEqual(frame.left);
    expect(inner.left + inner.width).toBeLessThanOrEqual(frame.left + frame.width);
  }
  expect(frame.left + frame.width).toBeLessThanOrEqual(width);
  expect(places.get("2")!.top + places.get("2")!.height).toBeLessThanOrEqual(height);
});

it("a line begins at the border of one box and ends at that of the other", () => {
  const { places, lines } = layout(BOXES, LINES);
  for (const { line: each, points } of lines) {
    const [start, end] = [places.get(each.start)!, places.get(each.end)!];
    expect(points[0]!.y).toBe(start.top + start.height);
    expect(points.at(-1)!.y).toBe(end.top);
  }
});

it("a shape that a box sends to several is named once", () => {
  expect(labelled([line("a", "b"), line("a", "c"), line("a", "d", [1, 3]), line("e", "f")])).toEqual(["1 × 9", "", "1 × 3", "1 × 9"]);
});

it("no more than forty shapes are named", () => {
  const many = Array.from({ length: 60 }, (_, at) => line(`a${at}`, "b"));
  expect(labelled(many).filter(Boolean)).toHaveLength(40);
});

it("the layout depends on slots and lines, and on nothing that a selection changes", () => {
  const other = structuredClone(BOXES);
  other[0]!.name = "another layer";
  expect(key(other, LINES)).toBe(key(BOXES, LINES));
  expect(key(BOXES, LINES.slice(1))).not.toBe(key(BOXES, LINES));
});

it("arrows go to the nearest box in their direction and stay at the border", () => {
  const place = (left: number, top: number) => ({ left, top, width: 10, height: 10 });
  const all = [
    { id: "a", place: place(0, 0) },
    { id: "b", place: place(100, 0) },
    { id: "c", place: place(0, 40) },
    { id: "d", place: place(100, 45) },
  ];
  expect(stepped(all, "a", "ArrowRight")).toBe("b");
  expect(stepped(all, "a", "ArrowDown")).toBe("c");
  expect(stepped(all, "d", "ArrowLeft")).toBe("c");
  expect(stepped(all, "d", "ArrowUp")).toBe("b");
  expect(stepped(all, "a", "ArrowUp")).toBe("a");
  expect(stepped(all, "c", "Home")).toBe("a");
  expect(stepped(all, "a", "End")).toBe("d");
  expect(stepped(all, "a", "x")).toBeNull();
});

it("a box that stands for several has a second button, large enough to be hit", () => {
  const boxes = [box("0", [], 6)];
  const drawn = layout(boxes, []);
  expect(stops(boxes, drawn).map((stop) => stop.id)).toEqual(["0", unfoldId("0")]);
  const { width, height } = badge(drawn.places.get("0")!);
  expect(Math.min(width, height)).toBeGreaterThanOrEqual(24);
});

it("a line is drawn through its points and ends at the last", () => {
  expect(path([{ x: 0, y: 0 }, { x: 5, y: 10 }])).toBe("M0.0 0.0L5.0 10.0");
  expect(path([{ x: 0, y: 0 }, { x: 4, y: 4 }, { x: 8, y: 8 }])).toBe("M0.0 0.0Q4.0 4.0 8.0 8.0");
  expect(path([])).toBe("");
});
