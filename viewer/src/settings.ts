// The page's own settings, its language and its colours, and the keys for them.

import { action } from "./actions";
import { appearance, language, type Appearance, type Language } from "./store";
import type { Sentence } from "./strings";

/** Each in its own words, with the tag of its script. */
export const LANGUAGES: readonly [Language, string, string][] = [
  ["en", "English", "en"],
  ["zh", "简体中文", "zh-Hans"],
];

export const APPEARANCES: readonly [Appearance, Sentence][] = [
  ["system", "appearanceSystem"],
  ["light", "appearanceLight"],
  ["dark", "appearanceDark"],
];

export const SETTING_KEYS = { language: "z", appearance: "b" } as const;

function after<Value>(among: readonly Value[], now: Value): Value {
  return among[(among.indexOf(now) + 1) % among.length]!;
}

const names = <Value>(among: readonly (readonly [Value, ...unknown[]])[]): Value[] => among.map(([value]) => value);

action({ id: "language", keys: [SETTING_KEYS.language], label: "actionLanguage", run: () => (language.value = after(names(LANGUAGES), language.value)) });
action({ id: "appearance", keys: [SETTING_KEYS.appearance], label: "actionAppearance", run: () => (appearance.value = after(names(APPEARANCES), appearance.value)) });
