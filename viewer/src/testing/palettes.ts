// Palettes for tests.

/** Tables that are all different and easy to tell in a test; the real ones come from Python. */
export function ramp(name: string): string {
  const last: Record<string, [number, number, number]> = { cividis: [255, 233, 69], viridis: [253, 231, 36], magma: [252, 253, 191], greys: [0, 0, 0] };
  const first: Record<string, [number, number, number]> = { cividis: [0, 34, 78], viridis: [68, 1, 84], magma: [0, 0, 4], greys: [255, 255, 255] };
  return table((share) => first[name]!.map((value, at) => value + (last[name]![at]! - value) * share));
}

/** From blue over white to orange. */
export function balance(): string {
  return table((share) => [share < 0.5 ? 20 + 470 * share : 255 - 2 * (share - 0.5) * 55, 255 - 300 * Math.abs(share - 0.5), share < 0.5 ? 255 - 40 * share : 510 * (1 - share)]);
}

function table(colour: (share: number) => number[]): string {
  let bytes = "";
  for (let at = 0; at < 256; at += 1) {
    bytes += String.fromCharCode(...colour(at / 255).map((value) => Math.max(0, Math.min(255, Math.round(value)))));
  }
  return btoa(bytes);
}
