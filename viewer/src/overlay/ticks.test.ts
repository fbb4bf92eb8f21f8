import { expect, test } from "vitest";
import { dates, numbers } from "./ticks";

test("numbers are labelled in steps of 1, 2 or 5", () => {
  expect(numbers(0, 1, 5).map((tick) => tick.label)).toEqual(["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]);
  expect(numbers(-3, 12, 4).map((tick) => tick.label)).toEqual(["0", "5", "10"]);
  expect(numbers(-0.5, 0.5, 2).map((tick) => tick.label)).toEqual(["−0.5", "0.0", "0.5"]);
});

test("where there is nothing between, the one number is the label", () => {
  expect(numbers(2, 2, 5)).toEqual([{ at: 2, label: "2.00" }]);
});

const NOON = Date.UTC(2026, 0, 31, 12) / 1000;

test("hours are named with their day once a day, in universal time", () => {
  expect(dates(NOON, NOON + 86400, 4).map((tick) => tick.label)).toEqual(["2026-01-31 12:00", "18:00", "2026-02-01 00:00", "06:00", "12:00"]);
});

test("over weeks only the day is named", () => {
  expect(dates(NOON, NOON + 4 * 86400, 4).map((tick) => tick.label)).toEqual(["2026-02-01", "2026-02-02", "2026-02-03", "2026-02-04"]);
  expect(dates(NOON, NOON, 4)).toEqual([{ at: NOON, label: "2026-01-31" }]);
});

test("a time that no calendar has is told as a number", () => {
  expect(dates(1e15, 1e15, 4)[0]!.label).toBe("1000000000000000");
});
