// How long paintings took, for benchmarks/: window.timings.

export interface Timing {
  name: string;
  milliseconds: number;
  /** When it was done, in milliseconds since the page was opened. */
  at: number;
}

declare global {
  interface Window {
    timings?: Timing[];
  }
}

const KEPT = 5000;

export function timed<Result>(name: string, work: () => Result): Result {
  const start = performance.now();
  const result = work();
  const list = (window.timings ??= []);
  const end = performance.now();
  list.push({ name, milliseconds: end - start, at: end });
  if (list.length > KEPT) list.splice(0, list.length - KEPT);
  return result;
}
