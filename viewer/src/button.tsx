// A button that does an action: its name, its key, and the same deed.

import { actions } from "./actions";
import { say } from "./strings";

/** How a key is written on a button and in the list of keys. */
export function keyName(key: string): string {
  const names: Record<string, string> = { ArrowUp: "↑", ArrowDown: "↓", ArrowLeft: "←", ArrowRight: "→", " ": "Space", Escape: "Esc" };
  return names[key] ?? key;
}

/** The button of an action; `face` is what it shows where that is shorter than its name. */
export function Button({ of, face, pressed }: { of: string; face?: string; pressed?: boolean }) {
  const found = actions().find((each) => each.id === of);
  if (!found) return null;
  const label = say(found.label);
  return (
    <button
      type="button"
      class="action"
      aria-label={face ? label : undefined}
      aria-pressed={pressed}
      aria-keyshortcuts={found.keys[0]}
      title={say("withKey", { label, key: found.keys.map(keyName).join(" ") })}
      onClick={() => found.run()}
    >
      {face ?? label}
    </button>
  );
}
