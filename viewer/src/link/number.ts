// How a weight is written: three digits where it is exact, two and a sign for "about" where it is one of 256 steps.

export function written(value: number, exact = true, signed = false): string {
  if (!Number.isFinite(value)) return "–";
  const digits = exact ? 3 : 2;
  const size = Math.abs(value);
  const told = size === 0 ? "0" : size < 1e-4 ? size.toExponential(digits - 1) : plain(size, digits);
  const sign = value < 0 ? "−" : signed && value > 0 ? "+" : "";
  return `${exact ? "" : "≈"}${sign}${told}`;
}

/** Two or three digits, and never more of them than there is reason to believe: 0.0420, 12.3, 1240. */
function plain(size: number, digits: number): string {
  return size >= 10 ** digits ? String(Math.round(size)) : size.toPrecision(digits);
}

export function percent(share: number): string {
  return `${Math.round(share * 100)} %`;
}

const SIZES = ["B", "KB", "MB", "GB"];

export function bytes(count: number): string {
  let [size, unit] = [count, 0];
  while (size >= 1000 && unit < SIZES.length - 1) [size, unit] = [size / 1000, unit + 1];
  return `${unit === 0 || size >= 100 ? Math.round(size) : size.toPrecision(2)} ${SIZES[unit]}`;
}
