// What a component was given, as a signal, so that effects which paint are run again when it changes.

import { useSignal, type Signal } from "@preact/signals";
import { useLayoutEffect } from "preact/hooks";

export function useSignalOf<Value extends object>(value: Value): Signal<Value> {
  const signal = useSignal(value);
  const parts = Object.values(value);
  useLayoutEffect(() => {
    signal.value = value;
  }, parts);
  return signal;
}
