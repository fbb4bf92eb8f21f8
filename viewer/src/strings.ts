// Every word of the page in English and Simplified Chinese. Each panel has its words in strings/NAME.ts.

import { language } from "./store";
import { page } from "./strings/page";
import { network } from "./strings/network";
import { time } from "./strings/time";
import { link } from "./strings/link";
import { heads } from "./strings/heads";
import { playback } from "./strings/playback";
import { compare } from "./strings/compare";
import { source } from "./strings/source";

/** English, Simplified Chinese. `{name}` is filled in. */
export type Words = Record<string, readonly [string, string]>;

export const table = { ...page, ...network, ...time, ...link, ...heads, ...playback, ...compare, ...source } as const;

export type Sentence = keyof typeof table;

/** A sentence in the reader's language, with its blanks filled. */
export function say(sentence: Sentence, blanks: Record<string, string | number> = {}): string {
  const words: readonly [string, string] = table[sentence];
  const told = language.value === "zh" ? words[1] : words[0];
  return told.replace(/\{(\w+)\}/g, (whole, name: string) => (name in blanks ? String(blanks[name]) : whole));
}
