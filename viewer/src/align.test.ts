import { describe, expect, it } from "vitest";
import { align, alone } from "./align";
import type { AudioAxis, Axis, ImageAxis, IndexAxis, SeriesAxis, TextAxis } from "./payload";

function text(...words: string[]): TextAxis {
  const spans = words.map(() => null);
  return { kind: "text", length: words.length, labels: words, pieces: words, text: words.join(" "), spans, special: [], lang: null };
}

function audio(length: number, seconds_per_step: number): AudioAxis {
  return { kind: "audio", length, labels: null, seconds_per_step, spectrogram: null, sound: null, rate: null };
}

function series(...times: number[]): SeriesAxis {
  const values = { data: "", dtype: "f32" as const, shape: [times.length, 1] };
  return { kind: "series", length: times.length, labels: null, times, values, names: ["load"], split: null, dates: false };
}

function image(grid: [number, number], ...prefix: string[]): ImageAxis {
  return { kind: "image", length: prefix.length + grid[0] * grid[1], labels: null, grid, size: [8, 8], pixels: null, prefix };
}

function index(length: number): IndexAxis {
  return { kind: "index", length, labels: null };
}

/** The textbook's table, to hold the quick one to. */
function longest(a: string, b: string): number {
  const table = Array.from({ length: a.length + 1 }, () => new Array<number>(b.length + 1).fill(0));
  for (let row = 1; row <= a.length; row += 1) {
    for (let column = 1; column <= b.length; column += 1) {
      const same = a[row - 1] === b[column - 1];
      table[row]![column] = same ? table[row - 1]![column - 1]! + 1 : Math.max(table[row - 1]![column]!, table[row]![column - 1]!);
    }
  }
  return table[a.length]![b.length]!;
}

function random(seed: number): () => number {
  let state = seed;
  return () => (state = (state * 1103515245 + 12345) % 2147483648) / 2147483648;
}

describe("tokens", () => {
  it("stand side by side where the sentences are equal", () => {
    expect(align(text("汤姆", "追逐", "杰瑞"), text("汤姆", "追逐", "杰瑞"))).toEqual({ left: [0, 1, 2], right: [0, 1, 2] });
  });

  it("skip a word that only one sentence has", () => {
    const found = align(text("Tom", "chases", "Jerry", "<eos>"), text("Tom", "always", "chases", "Jerry", "<eos>"));
    expect(found).toEqual({ left: [0, 1, 2, 3], right: [0, 2, 3, 4] });
  });

  it("skip a word that was replaced", () => {
    const found = align(text("a", "b", "c"), text("a", "x", "c"));
    expect(found).toEqual({ left: [0, 2], right: [0, 2] });
    expect(alone(3, found.left)).toEqual([1]);
  });

  it("have no partner where nothing is shared", () => {
    expect(align(text("a", "b"), text("x"))).toEqual({ left: [], right: [] });
    expect(align(text(), text("x"))).toEqual({ left: [], right: [] });
  });

  it("are never paired with places of another kind", () => {
    expect(align(text("0", "1"), index(2))).toEqual({ left: [], right: [] });
  });

  it("find a longest common subsequence of any two sentences", () => {
    const next = random(7);
    for (let round = 0; round < 300; round += 1) {
      const [a, b] = [0, 1].map(() => Array.from({ length: Math.floor(next() * 14) }, () => "abcd"[Math.floor(next() * 4)]!));
      const found = align(text(...a!), text(...b!));
      expect(found.left.length).toBe(longest(a!.join(""), b!.join("")));
      found.left.forEach((place, at) => {
        expect(a![place]).toBe(b![found.right[at]!]);
        if (at > 0) expect(place > found.left[at - 1]! && found.right[at]! > found.right[at - 1]!).toBe(true);
      });
    }
  });
});

describe("sound and series", () => {
  it("are matched by time: frames of 10 ms against frames of 20 ms", () => {
    expect(align(audio(6, 0.01), audio(3, 0.02))).toEqual({ left: [0, 2, 4], right: [0, 1, 2] });
  });

  it("leave what goes on longer without a partner", () => {
    expect(align(audio(2, 0.5), audio(4, 0.5))).toEqual({ left: [0, 1], right: [0, 1] });
  });

  it("are matched by time though one begins later", () => {
    expect(align(series(10, 20, 30, 40), series(30, 40, 50))).toEqual({ left: [2, 3], right: [0, 1] });
  });

  it("are not matched where their times do not meet", () => {
    expect(align(series(0, 1, 2), series(100, 101, 102))).toEqual({ left: [], right: [] });
    expect(align(series(), series(1))).toEqual({ left: [], right: [] });
  });
});

describe("pictures and plain places", () => {
  it("are matched patch by patch where their grids are equal", () => {
    expect(align(image([1, 2], "CLS"), image([1, 2]))).toEqual({ left: [1, 2], right: [0, 1] });
  });

  it("are matched outside the picture alone where their grids differ", () => {
    expect(align(image([2, 2], "CLS"), image([4, 4], "CLS"))).toEqual({ left: [0], right: [0] });
  });

  it("are matched by number", () => {
    expect(align(index(2), index(3) as Axis)).toEqual({ left: [0, 1], right: [0, 1] });
  });
});
