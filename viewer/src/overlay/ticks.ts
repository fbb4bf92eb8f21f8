// Where an axis is labelled: round numbers, or round dates, as many as there is room for.

export interface Tick {
  at: number;
  label: string;
}

/** Round numbers between two, about so many: steps of 1, 2 or 5 times a power of ten. */
export function numbers(from: number, to: number, count: number): Tick[] {
  const rough = (to - from) / Math.max(1, count);
  if (!(rough > 0) || !Number.isFinite(rough)) return [{ at: from, label: plain(from, 2) }];
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((each) => each * power).find((each) => each >= rough * 0.999)!;
  const digits = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
  return steps(from, to, step).map((at) => ({ at, label: plain(at, digits) }));
}

function plain(value: number, digits: number): string {
  return (Object.is(value, -0) ? 0 : value).toFixed(Math.min(20, digits)).replace("-", "−");
}

const [MINUTE, HOUR, DAY] = [60, 3600, 86400];
const DURATIONS = [
  ...[1, 5, 15, 30],
  ...[1, 5, 15, 30].map((each) => each * MINUTE),
  ...[1, 3, 6, 12].map((each) => each * HOUR),
  ...[1, 2, 7, 14, 28, 91, 182, 365].map((each) => each * DAY),
];

/** Round moments between two, in seconds since 1970, universal time: the hour where it matters, else the day. */
export function dates(from: number, to: number, count: number): Tick[] {
  const rough = (to - from) / Math.max(1, count);
  if (!(rough > 0)) return [{ at: from, label: day(from) }];
  const step = DURATIONS.find((each) => each >= rough) ?? Math.ceil(rough / (365 * DAY)) * 365 * DAY;
  let before = "";
  return steps(from, to, step).map((at) => {
    const [date, clock] = [day(at), moment(at).slice(11, step < MINUTE ? 19 : 16)];
    const label = step >= DAY ? date : date === before ? clock : `${date} ${clock}`;
    before = date;
    return { at, label };
  });
}

function steps(from: number, to: number, step: number): number[] {
  const first = Math.ceil(from / step - 1e-9);
  const last = Math.floor(to / step + 1e-9);
  return Array.from({ length: Math.max(0, last - first + 1) }, (_, at) => (first + at) * step);
}

function moment(seconds: number): string {
  const date = new Date(seconds * 1000);
  return Number.isNaN(date.getTime()) ? String(seconds) : date.toISOString();
}

function day(seconds: number): string {
  const told = moment(seconds);
  return told.includes("T") ? told.slice(0, told.indexOf("T")) : told;
}
