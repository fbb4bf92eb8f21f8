// From values to heights: straight or logarithmic, always clamped to what is drawn.

export interface Scale {
  low: number;
  high: number;
  logarithmic: boolean;
  ticks: { value: number; text: string }[];
}

/** 0 at `low`, 1 at `high`; values beyond stick to the border, so that nothing leaves the picture unseen. */
export function height(scale: Scale, value: number): number {
  const put = scale.logarithmic ? (number: number) => Math.log(Math.max(number, scale.low)) : (number: number) => number;
  const share = (put(value) - put(scale.low)) / (put(scale.high) - put(scale.low) || 1);
  return Math.min(1, Math.max(0, share));
}

/** Times an even share: from a quarter (or less, never below a 64th) to 4 times (or more), by factors of two. */
export function sharesScale(values: ArrayLike<number>): Scale {
  const { least, most } = extent(values);
  const down = Math.min(6, Math.max(2, Math.ceil(-Math.log2(Math.max(least, 2 ** -6)))));
  const up = Math.max(2, Math.ceil(Math.log2(Math.max(most, 1))));
  const ticks = [2 ** -down, 0.5, 1, 2, 2 ** up].map((value) => ({ value, text: times(value) }));
  return { low: 2 ** -down, high: 2 ** up, logarithmic: true, ticks };
}

/** Zero to the largest value, or to one where that is enough. */
export function unitScale(values: ArrayLike<number>, percent = false): Scale {
  const most = extent(values).most;
  const high = most > 1 ? nice(most) : 1;
  const text = (value: number) => (percent ? `${Math.round(value * 100)} %` : brief(value));
  return { low: 0, high, logarithmic: false, ticks: [0, high / 2, high].map((value) => ({ value, text: text(value) })) };
}

/** One to all keys, by logarithm: two keys instead of one matter as much as 200 instead of 100. */
export function keysScale(keys: number): Scale {
  const high = Math.max(2, keys);
  const middle = Math.round(Math.sqrt(high));
  const ticks = [...new Set([1, middle, high])].map((value) => ({ value, text: String(value) }));
  return { low: 1, high, logarithmic: true, ticks };
}

/** Any numbers: from the least to the most, a little apart where all are the same. */
export function plainScale(values: ArrayLike<number>): Scale {
  const { least, most } = extent(values);
  const [low, high] = least < most ? [least, most] : [least - 0.5, least + 0.5];
  return { low, high, logarithmic: false, ticks: [low, high].map((value) => ({ value, text: brief(value) })) };
}

function extent(values: ArrayLike<number>): { least: number; most: number } {
  let [least, most] = [Infinity, -Infinity];
  for (let place = 0; place < values.length; place += 1) {
    const value = values[place]!;
    if (value < least) least = value;
    if (value > most) most = value;
  }
  return least <= most ? { least, most } : { least: 0, most: 1 };
}

/** The next of 1, 2, 5, 10, 20 ... */
export function nice(value: number): number {
  const power = 10 ** Math.floor(Math.log10(value));
  return (([1, 2, 5].find((each) => each * power >= value - 1e-9 * value) ?? 10) as number) * power;
}

/** Three digits that count, as short as they go. */
export function brief(value: number): string {
  if (!Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  if (size >= 1000) return Math.round(value).toLocaleString("en-US");
  if (size !== 0 && size < 0.001) return value.toExponential(1);
  return String(Number(value.toPrecision(3)));
}

/** ½, ¼ and ⅛ as readers write them. */
function times(value: number): string {
  const fraction = ({ 0.5: "½", 0.25: "¼", 0.125: "⅛" } as Record<number, string>)[value];
  return fraction ?? (value < 1 ? `1/${Math.round(1 / value)}` : String(value));
}
