import { describe, expect, it } from "vitest";
import { detail, graphemes, label, labels, languageTag, shorten } from "./labels";
import type { Axis } from "./payload";

const ref = { data: "", dtype: "f32" as const, shape: [0] };

describe("names of places", () => {
  it("are the text that tokens cover, with the piece told apart", () => {
    const text: Axis = { kind: "text", length: 2, labels: ["汉", "<eos>"], pieces: ["æ±", "<eos>"], text: "汉", spans: [[0, 1], null], special: [1], lang: "zh-Hans" };
    expect(labels(text)).toEqual(["汉", "<eos>"]);
    expect(detail(text, 0)).toBe("place 1 of 2 · piece æ±");
    expect(detail(text, 1)).toBe("place 2 of 2 · special token");
    expect(languageTag(text)).toBe("zh-Hans");
  });
  it("are seconds for sound and row, column for a picture, after what is no patch", () => {
    const sound: Axis = { kind: "audio", length: 3, labels: null, seconds_per_step: 0.04, spectrogram: null, sound: null, rate: null };
    expect(labels(sound)).toEqual(["0.00 s", "0.04 s", "0.08 s"]);
    const picture: Axis = { kind: "image", length: 5, labels: null, grid: [2, 2], size: [4, 4], pixels: null, prefix: ["CLS"] };
    expect(labels(picture)).toEqual(["CLS", "1,1", "1,2", "2,1", "2,2"]);
  });
  it("are dates in universal time for a series, or plain numbers", () => {
    const days: Axis = { kind: "series", length: 2, labels: null, times: [0, 86400], values: ref, names: ["load"], split: 1, dates: true };
    expect(labels(days)).toEqual(["1970-01-01 00:00:00", "1970-01-02 00:00:00"]);
    expect(detail(days, 1)).toContain("forecast");
    expect(labels({ ...days, times: [0.5, 12], dates: false })).toEqual(["0.5", "12"]);
  });
  it("are nothing beyond the last place", () => {
    expect(label({ kind: "index", length: 2, labels: null }, 2)).toBe("");
  });
});

describe("shortening", () => {
  const width = (text: string) => graphemes(text).length;
  it("leaves a text that fits", () => {
    expect(shorten("Jerry", 5, width)).toBe("Jerry");
  });
  it("never cuts a character that is made of several", () => {
    expect(shorten("👨‍👩‍👧‍👦👍🏽abc", 3, width)).toBe("👨‍👩‍👧‍👦👍🏽…");
    expect(shorten("e\u0301e\u0301e\u0301", 2, width)).toBe("e\u0301…");
  });
  it("is empty where not even the ellipsis fits", () => {
    expect(shorten("abc", 0, width)).toBe("");
  });
  it("measures no more than a label can show of a token of ten thousand characters", () => {
    let longest = 0;
    shorten("字".repeat(10_000), 8, (text) => ((longest = Math.max(longest, text.length)), text.length));
    expect(longest).toBeLessThanOrEqual(202);
  });
});
