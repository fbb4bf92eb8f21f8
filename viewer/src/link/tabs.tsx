// The five ways to read a matrix, as tabs: arrows go from one to the next, and the one in focus is shown.

import { useRef } from "preact/hooks";
import { chosenView, view } from "../store";
import { say } from "../strings";
import { VIEWS } from "./choices";

export function Tabs() {
  const list = useRef<HTMLDivElement>(null);
  function go(event: KeyboardEvent): void {
    const at = VIEWS.findIndex((each) => each.value === view.value);
    const to = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: VIEWS.length - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    const place = (to + VIEWS.length) % VIEWS.length;
    chosenView.value = VIEWS[place]!.value;
    (list.current?.children[place] as HTMLElement | undefined)?.focus();
  }
  return (
    <div class="link-tabs" role="tablist" aria-label={say("linkViews")} ref={list} onKeyDown={go}>
      {VIEWS.map((each) => (
        <button
          key={each.value}
          id={`link-tab-${each.value}`}
          type="button"
          role="tab"
          aria-selected={view.value === each.value}
          aria-controls="link-view"
          aria-keyshortcuts={each.key}
          tabIndex={view.value === each.value ? 0 : -1}
          title={say("linkKeyHint", { label: say(each.label), key: each.key })}
          onClick={() => (chosenView.value = each.value)}
        >
          {say(each.label)}
        </button>
      ))}
    </div>
  );
}
