import { expect, test } from "vitest";
import type { TextAxis } from "../payload";
import { flow } from "./flow";

function axis(text: string, spans: TextAxis["spans"], pieces: string[]): TextAxis {
  return { kind: "text", length: pieces.length, labels: pieces, pieces, text, spans, special: [], lang: null };
}

const words = (of: TextAxis, first?: number, end?: number) =>
  flow(of, of.pieces, first, end).map((each) => (each.places.length ? `${each.text}${JSON.stringify(each.places)}` : each.text));

test("what lies between tokens stays text, and a token that covers nothing shows its name", () => {
  const english = axis("Tom chases Jerry.", [[0, 3], [4, 10], [11, 16], null], ["Tom", "chases", "Jerry", "<eos>"]);
  expect(words(english)).toEqual(["Tom[0]", " ", "chases[1]", " ", "Jerry[2]", "<eos>[3]", "."]);
});

test("the text can be read off again, blanks and all, in a language without them too", () => {
  const chinese = axis("汤姆追逐杰瑞", [[0, 2], [2, 4], [4, 6]], ["汤姆", "追逐", "杰瑞"]);
  expect(words(chinese)).toEqual(["汤姆[0]", "追逐[1]", "杰瑞[2]"]);
  const spaced = axis("  a\n b ", [[2, 3], [5, 6]], ["a", "b"]);
  expect(flow(spaced, spaced.pieces).map((each) => each.text).join("")).toBe("  a\n b ");
});

test("spans count characters, so an emoji outside the first plane is one", () => {
  const family = axis("a 🙂 b", [[0, 1], [2, 3], [4, 5]], ["a", "🙂", "b"]);
  expect(words(family)).toEqual(["a[0]", " ", "🙂[1]", " ", "b[2]"]);
});

test("bytes of one character go together and are never shown one by one", () => {
  const bytes = axis("汤x", [[0, 1], [0, 1], [0, 1], [1, 2]], ["æ", "±", "¤", "x"]);
  expect(words(bytes)).toEqual(["汤[0,1,2]", "x[3]"]);
});

test("tokens that overlap are one stretch of all that they cover", () => {
  expect(words(axis("abcd", [[0, 3], [2, 4]], ["abc", "cd"]))).toEqual(["abcd[0,1]"]);
});

test("tokens out of the order of the text stand apart by their names", () => {
  expect(words(axis("ab", [[1, 2], [0, 1]], ["b", "a"]))).toEqual(["b[0]", "a[1]"]);
});

test("a page begins with the text before its first token and the last page ends with the text", () => {
  const long = axis("a b c d.", [[0, 1], [2, 3], [4, 5], [6, 7]], ["a", "b", "c", "d"]);
  expect(words(long, 0, 2)).toEqual(["a[0]", " ", "b[1]"]);
  expect(words(long, 2, 4)).toEqual([" ", "c[2]", " ", "d[3]", "."]);
});
