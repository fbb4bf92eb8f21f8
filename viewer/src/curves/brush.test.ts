import { beforeEach, expect, test } from "vitest";
import * as store from "../store";
import { invent } from "../testing/invent";
import { brush, clear, keyed, led } from "./brush";

beforeEach(() => {
  store.payload.value = invent();
  [store.query.value, store.key.value, store.range.value, store.visible.value] = [null, null, null, null];
});

function press(key: string, shiftKey: boolean, anchor: { current: number | null }, along: "query" | "key" = "query"): boolean {
  return keyed({ key, shiftKey } as KeyboardEvent, along, 7, anchor);
}

test("arrows move the crosshair of their own axis, and keys that lead nowhere are left alone", () => {
  const anchor = { current: null };
  expect(press("ArrowRight", false, anchor)).toBe(true);
  expect(press("ArrowRight", false, anchor)).toBe(true);
  expect(store.query.value).toBe(1);
  expect(store.key.value).toBeNull();
  expect(press("q", false, anchor)).toBe(false);
  expect(press("ArrowLeft", false, anchor, "key")).toBe(true);
  expect(store.key.value).toBe(6);
});

test("Shift and arrows select from where the crosshair was, either way, and Escape clears", () => {
  const anchor = { current: null };
  store.query.value = 3;
  press("ArrowRight", true, anchor);
  press("ArrowRight", true, anchor);
  expect(store.range.value).toEqual([3, 6]);
  press("Home", true, anchor);
  expect(store.range.value).toEqual([0, 4]);
  expect(press("Escape", false, anchor)).toBe(true);
  expect(store.range.value).toBeNull();
  expect(press("Escape", false, anchor)).toBe(false);
});

test("brushed keys come into sight and brushed queries are selected", () => {
  brush("key", 2, 5);
  expect(store.visible.value).toEqual([0, 2, 7, 5]);
  brush("query", 1, 3);
  expect(store.range.value).toEqual([1, 3]);
  clear("query");
  clear("key");
  expect(store.range.value).toBeNull();
  expect(store.visible.value).toEqual([0, 0, 7, 9]);
});

test("no key leads beyond the ends", () => {
  expect(["ArrowLeft", "ArrowRight", "PageUp", "PageDown", "Home", "End", "x"].map((key) => led(key, 5, 7))).toEqual([4, 6, 0, 6, 0, 6, null]);
});
