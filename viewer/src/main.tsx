// Where the page begins: its payload, the state that its address asks for, and then the views.

import { effect } from "@preact/signals";
import { render } from "preact";
import "./navigation"; // first, so that its keys lead the list under help
import { pressed } from "./actions";
import { App } from "./app";
import { grid } from "./cells";
import { followTheme } from "./curves/colours";
import { Failure } from "./failure";
import { guard } from "./guard";
import { embedded } from "./payload";
import * as store from "./store";
import { follow } from "./url";
import "./styles/page.css";

function browserLanguage(): store.Language {
  return navigator.language.toLowerCase().startsWith("zh") ? "zh" : "en";
}

async function start(page: HTMLElement): Promise<void> {
  if (import.meta.env.MODE === "invented") {
    const { invent } = await import("./testing/invent");
    store.payload.value = invent({ runs: 2, large: [1500, 2000] });
  } else {
    if (typeof DecompressionStream === "undefined") throw new Error("this browser has no DecompressionStream; it is too old");
    store.payload.value = embedded();
  }
  store.language.value = store.payload.value.language ?? browserLanguage();
  followTheme(document, window);
  follow(window, store.payload.value.state);
  guard();
  window.addEventListener("keydown", pressed);
  page.replaceChildren();
  render(<App />, page);
  effect(() => {
    if (!store.current.value || grid.value) drawn();
  });
}

/** Tell whoever drives the page that its first picture stands: two frames after there was something to draw. */
function drawn(): void {
  requestAnimationFrame(() => requestAnimationFrame(() => document.documentElement.setAttribute("data-ready", "")));
}

const page = document.getElementById("app")!;
start(page).catch((error: unknown) => {
  store.language.value = browserLanguage();
  page.replaceChildren();
  render(<Failure reason={error instanceof Error ? error.message : String(error)} />, page);
});
