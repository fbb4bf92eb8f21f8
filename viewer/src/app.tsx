// The whole page: a header, and three columns that answer where, what and how strong, with one selection.

import { useSignalEffect } from "@preact/signals";
import { About } from "./about";
import { Export } from "./export";
import { Find } from "./find";
import { Header } from "./header";
import { Help } from "./help";
import { Live } from "./live";
import { Heads } from "./panels/heads";
import { Link } from "./panels/link";
import { Network } from "./panels/network";
import { Playback } from "./panels/playback";
import { Time } from "./panels/time";
import * as store from "./store";
import { say } from "./strings";

export function App() {
  useSignalEffect(() => {
    document.documentElement.lang = store.language.value === "zh" ? "zh-Hans" : "en";
    document.documentElement.dataset["appearance"] = store.appearance.value;
  });
  return (
    <>
      <a class="skip" href="#panel-link" onClick={skip}>
        {say("skip")}
      </a>
      <Header />
      <main class="panels">
        <div class="column" id="panel-network" tabIndex={-1}>
          <Network />
        </div>
        <div class="column">
          <div id="panel-link" tabIndex={-1}>
            <Link />
          </div>
          <div id="panel-time" tabIndex={-1}>
            <Time />
          </div>
        </div>
        <div class="column">
          <Heads />
          <Playback />
        </div>
      </main>
      <Live />
      <Help />
      <About />
      <Export />
      <Find />
    </>
  );
}

/** The fragment of the address is the page's state, so the link must not write it. */
function skip(event: Event): void {
  event.preventDefault();
  document.getElementById("panel-link")?.focus();
}
