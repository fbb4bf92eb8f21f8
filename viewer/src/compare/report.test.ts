import { beforeEach, describe, expect, it } from "vitest";
import type { Attention, Axis, Summary } from "../payload";
import { language, payload } from "../store";
import { invent } from "../testing/invent";
import { difference, largest, pairs, report, type Side } from "./report";

beforeEach(() => {
  payload.value = invent({ runs: 2 });
  language.value = "en";
});

function side(query: Axis, key: Axis, heads = 2, id = "cross"): Side {
  const attention = { id, query: "q", key: "k", heads } as Attention;
  return { attention, example: { title: "", axes: { q: query, k: key }, attentions: [attention], steps: [], beams: null } };
}

function text(...words: string[]): Axis {
  return { kind: "text", length: words.length, labels: words, pieces: words, text: "", spans: words.map(() => null), special: [], lang: null };
}

function index(length: number): Axis {
  return { kind: "index", length, labels: null };
}

describe("what is said of two runs", () => {
  it("names what only one of them has", () => {
    expect(report(side(text("a", "b"), index(2)), side(text("a", "x", "y"), index(2)))).toEqual([
      "Queries: 1 stand side by side, of 2 in A and 3 in B.",
      "Only in A: b.",
      "Only in B: x, y.",
      "Keys: 2 stand side by side, of 2 in A and 2 in B.",
    ]);
  });

  it("says plainly that words and numbers cannot stand side by side", () => {
    expect(report(side(text("a"), index(1)), side(index(1), index(1)))[0]).toBe(
      "Queries: A's are text, B's are numbered places, so they cannot stand side by side.",
    );
  });

  it("says plainly that nothing is shared", () => {
    expect(report(side(text("a"), index(1)), side(text("b"), index(1)))[0]).toBe("Queries: A and B share none, so A − B is empty.");
  });

  it("says which attentions are compared where their names differ, and that heads differ in number", () => {
    const told = report(side(index(1), index(1), 2, "old"), side(index(1), index(1), 4, "new"));
    expect(told[0]).toBe("A's old is set against B's new.");
    expect(told.at(-1)).toBe("A has 2 heads, B has 4; they are matched by number.");
  });

  it("says that sound was matched by time", () => {
    const sound: Axis = { kind: "audio", length: 3, labels: null, seconds_per_step: 0.1, spectrogram: null, sound: null, rate: null };
    expect(report(side(index(1), sound), side(index(1), sound))).toContain("Matched by time.");
  });

  it("counts what would be too long to list", () => {
    const words = Array.from({ length: 20 }, (_, at) => `w${at}`);
    const told = report(side(text("a", ...words), index(1)), side(text("a"), index(1)));
    expect(told[1]).toMatch(/^Only in A: w0, .*w11 and 8 more\.$/);
  });

  it("speaks Chinese", () => {
    language.value = "zh";
    expect(report(side(text("a"), index(1)), side(text("b"), index(1)))[0]).toBe("查询：A 与 B 没有共同部分，A − B 为空。");
  });
});

describe("statistics of two runs", () => {
  const summary = (...entropy: number[]): Summary => ({ entropy, sink: entropy.map(() => 0.1), distance: [], diagonality: [], alignment: [] });
  const [a, b] = [{ heads: 2, summary: summary(1, 3) }, { heads: 3, summary: summary(1.5, 1, 2) }] as Attention[];

  it("are set head against head, and what one run lacks is null", () => {
    const all = pairs(a!, b!, ["entropy"]);
    expect(all.map((pair) => [pair.a, pair.b])).toEqual([[1, 1.5], [3, 1], [null, 2]]);
    expect(all.map(difference)).toEqual([-0.5, 2, null]);
  });

  it("name the largest difference", () => {
    expect(largest(pairs(a!, b!, ["entropy", "sink"]))).toEqual({ head: 1, statistic: "entropy", a: 3, b: 1 });
  });

  it("name none where nothing differs", () => {
    expect(largest(pairs(a!, a!, ["entropy", "sink"]))).toBeNull();
  });
});
