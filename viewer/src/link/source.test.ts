import { afterEach, expect, test } from "vitest";
import { language } from "../store";
import { source } from "../strings/source";
import { sourceTold } from "./source";

afterEach(() => void (language.value = "en"));

test("codes are told in the reader's language, several with a semicolon between them", () => {
  expect(sourceTold("measured:sdpa; rows:float32")).toBe(
    "fused kernel sdpa, statistics from its own pass; rows recomputed in float32 from recorded queries and keys",
  );
  language.value = "zh";
  expect(sourceTold("eight_bits; given")).toBe("近似：以 8 位存储；直接给出");
  expect(sourceTold("instead:sdpa")).toBe("参考实现，因为融合内核 sdpa 不保留权重");
});

test("a code with a name and one without are two", () => {
  expect(sourceTold("measured")).toBe("reference, statistics from its own pass");
  expect(sourceTold("measured:flash")).toBe("fused kernel flash, statistics from its own pass");
});

test("what is no code stands as it is", () => {
  for (const text of ["", "read from a log; by hand", "fused", "given:twice", "rows:", "toString", "constructor:x"]) {
    expect(sourceTold(text)).toBe(text);
  }
});

test("no sentence is the same in both languages", () => {
  const pairs: (readonly [string, string])[] = Object.values(source);
  expect(pairs.filter(([english, chinese]) => english === chinese)).toEqual([]);
});
