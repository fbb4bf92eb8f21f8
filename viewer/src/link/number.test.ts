import { expect, test } from "vitest";
import { bytes, percent, written } from "./number";

test("an exact weight has three digits, one of 256 steps has two and says that it is about", () => {
  expect(written(0.5)).toBe("0.500");
  expect(written(0.5, false)).toBe("≈0.50");
  expect(written(0.04237)).toBe("0.0424");
  expect(written(0)).toBe("0");
});

test("very small and very large values stay short", () => {
  expect(written(0.0000421)).toBe("4.21e-5");
  expect(written(1234.5)).toBe("1235");
  expect(written(12.34)).toBe("12.3");
});

test("a difference carries its sign, a number that is none is a dash", () => {
  expect(written(0.25, true, true)).toBe("+0.250");
  expect(written(-0.25, false, true)).toBe("≈−0.25");
  expect(written(NaN)).toBe("–");
});

test("shares and sizes are told in round numbers", () => {
  expect(percent(0.834)).toBe("83 %");
  expect(bytes(999)).toBe("999 B");
  expect(bytes(1_200_000)).toBe("1.2 MB");
  expect(bytes(604_000_000)).toBe("604 MB");
});
