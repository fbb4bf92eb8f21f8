// A dialog over the page: the browser's own, so focus stays in it and comes back to where it was.

import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";
import { say } from "./strings";

interface Props {
  id: string;
  title: string;
  open: boolean;
  close(): void;
  children: ComponentChildren;
}

export function Dialog({ id, title, open, close, children }: Props) {
  const ref = useRef<HTMLDialogElement>(null);
  useLayoutEffect(() => {
    const dialog = ref.current;
    if (!dialog || dialog.open === open) return;
    if (open) dialog.showModal();
    else dialog.close();
  }, [open]);
  return (
    <dialog ref={ref} aria-labelledby={`${id}-title`} onClose={close} onClick={(event) => event.target === ref.current && close()}>
      {open && (
        <div class="dialog">
          <div class="dialog-head">
            <h2 id={`${id}-title`}>{title}</h2>
            <button
              type="button"
              class="action"
              aria-label={say("close")}
              title={say("withKey", { label: say("close"), key: "Esc" })}
              onClick={close}
            >
              ✕
            </button>
          </div>
          {children}
        </div>
      )}
    </dialog>
  );
}
