// About: which program made the page, what its runs say of themselves, and the licences of what is inside.

import { Dialog } from "./dialog";
import { dialog, payload } from "./store";
import { say } from "./strings";

export function About() {
  const { about, runs, tiles } = payload.value;
  return (
    <Dialog id="about" title={say("aboutTitle")} open={dialog.value === "about"} close={() => (dialog.value = null)}>
      <p>{say(tiles === null ? "aboutVersion" : "aboutServed", { version: about.version })}</p>
      {runs.map((run, number) => (
        <section key={number}>
          <h3>
            <bdi>{say("aboutRun", { name: run.name })}</bdi>
          </h3>
          <ul>
            {run.notes.map((note, at) => (
              <li key={at}>
                <bdi>{note}</bdi>
              </li>
            ))}
          </ul>
        </section>
      ))}
      <h3>{say("aboutLicences")}</h3>
      {about.licences.map((each) => (
        <details key={each.name}>
          <summary>
            {each.name} ({each.licence})
          </summary>
          <pre tabIndex={0}>{each.text}</pre>
        </details>
      ))}
    </Dialog>
  );
}
