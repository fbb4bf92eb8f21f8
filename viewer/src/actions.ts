// Everything a reader can do: each action has a name, a key and a button, and `?` lists them all.

import type { Sentence } from "./strings";

export interface Action {
  id: string;
  /** As `KeyboardEvent.key` has it; several where several keys do the same. */
  keys: string[];
  /** Its name in strings.ts. */
  label: Sentence;
  run(event?: KeyboardEvent): void;
}

const known = new Map<string, Action>();

/** Add an action; a key belongs to one action only. */
export function action(added: Action): Action {
  for (const each of known.values()) {
    const taken = each.keys.find((key) => each.id !== added.id && added.keys.includes(key));
    if (taken) throw new Error(`the key ${taken} is ${each.id}'s, so it cannot be ${added.id}'s`);
  }
  known.set(added.id, added);
  return added;
}

export function actions(): Action[] {
  return [...known.values()];
}

/** Do what a key asks for, unless somebody is typing or a control wants the key for itself. */
export function pressed(event: KeyboardEvent): void {
  if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
  if (wanted(event.target, event.key) && event.key !== "Escape") return;
  const found = actions().find((each) => each.keys.includes(event.key));
  if (!found) return;
  event.preventDefault();
  found.run(event);
}

/** Whether the control that has the focus uses a key: text takes all, a slider what moves it, a button Space and Enter. */
function wanted(target: EventTarget | null, key: string): boolean {
  if (!(target instanceof Element)) return false;
  if (target instanceof HTMLInputElement && target.type === "range") return /^(Arrow|Home|End|Page)/.test(key);
  if (["INPUT", "SELECT", "TEXTAREA"].includes(target.tagName)) return true;
  return (key === " " || key === "Enter") && ["BUTTON", "A", "SUMMARY"].includes(target.tagName);
}
