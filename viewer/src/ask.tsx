// A new input for the model behind a served page: the server records it, and the page shows what the model did.

import { useSignal } from "@preact/signals";
import { adopt, fragment, write } from "./url";
import { example, frame, key, payload, query, range, visible } from "./store";
import { say } from "./strings";

export function Ask() {
  const takes = payload.value.takes;
  const busy = useSignal(false);
  const told = useSignal("");
  if (!takes) return null;
  const submit = (event: Event) => {
    event.preventDefault();
    const field = (event.currentTarget as HTMLFormElement).elements.namedItem("input") as HTMLInputElement;
    const sent = takes === "text" ? JSON.stringify({ text: field.value }) : field.files?.[0];
    if (!sent || busy.value) return;
    [busy.value, told.value] = [true, say("askBusy")];
    record(sent, takes).then(reload, (error: Error) => ([busy.value, told.value] = [false, error.message]));
  };
  return (
    <form class="ask" onSubmit={submit}>
      <label>
        <span>{say(takes === "text" ? "askText" : "askPicture")}</span>
        {takes === "text" ? (
          <input name="input" type="text" required maxLength={100_000} autocomplete="off" dir="auto" />
        ) : (
          <input name="input" type="file" required accept="image/*" />
        )}
      </label>
      <button type="submit" disabled={busy.value}>
        {say("askRun")}
      </button>
      <span class="ask-told" role="status">
        {told.value}
      </span>
    </form>
  );
}

async function record(sent: string | File, takes: "text" | "picture"): Promise<void> {
  const type = takes === "text" ? "application/json" : "application/octet-stream";
  const answer = await fetch("record", { method: "POST", headers: { "Content-Type": type }, body: sent });
  if (!answer.ok) throw new Error((await answer.text()).trim() || String(answer.status));
}

/** The server has the new page. Places of the old input mean nothing there; whatever else was chosen stays. */
function reload(): void {
  adopt(fragment());
  [query.value, key.value, range.value, visible.value, frame.value, example.value] = [null, null, null, null, null, 0];
  write(window, fragment() || "#");
  window.location.reload();
}
