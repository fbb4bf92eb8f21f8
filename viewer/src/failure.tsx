// What a reader sees when the page cannot begin: why, and what to do.

import { say } from "./strings";

export function Failure({ reason }: { reason: string }) {
  return (
    <main class="failure">
      <h1>{say("failed")}</h1>
      <p>{reason}</p>
      <p>{say("failedAdvice")}</p>
    </main>
  );
}
