// Colours for canvases, from the same CSS variables as the rest of the page.

import { signal } from "@preact/signals";

export interface Colours {
  paper: string;
  ink: string;
  quiet: string;
  line: string;
  accent: string;
  focus: string;
  runs: [string, string];
  font: string;
}

/** Grows whenever the page changes its colours, so that who reads it draws again. */
export const theme = signal(0);

/** Follow the system's colours and the page's own switch; called once, where there is a window. */
export function followTheme(page: Document, window: Window): void {
  const changed = () => (theme.value += 1);
  for (const query of ["(prefers-color-scheme: dark)", "(forced-colors: active)"]) {
    window.matchMedia?.(query).addEventListener("change", changed);
  }
  new MutationObserver(changed).observe(page.documentElement, { attributes: true });
}

/** The colours that hold for an element now. */
export function coloursOf(element: Element): Colours {
  const style = getComputedStyle(element);
  const of = (name: string, otherwise: string) => style.getPropertyValue(name).trim() || otherwise;
  const ink = of("--ink", "CanvasText");
  return {
    paper: of("--paper", "Canvas"),
    ink,
    quiet: of("--quiet", ink),
    line: of("--line", ink),
    accent: of("--accent", ink),
    focus: of("--focus", ink),
    runs: [of("--run-a", ink), of("--run-b", ink)],
    font: `11px ${style.fontFamily || "system-ui, sans-serif"}`,
  };
}
