// Curves longer than the screen is wide: what each column of pixels must show is the lowest and the highest of its values.

/** The lowest and the highest of each column, NaN where it has no value; `across` puts a place between 0 and 1. */
export interface Columns {
  low: Float32Array;
  high: Float32Array;
}

export function columnsOf(values: ArrayLike<number>, width: number, across: (place: number) => number): Columns {
  const low = new Float32Array(width).fill(NaN);
  const high = new Float32Array(width).fill(NaN);
  for (let place = 0; place < values.length; place += 1) {
    const value = values[place]!;
    if (Number.isNaN(value)) continue;
    const column = Math.min(width - 1, Math.max(0, Math.floor(across(place) * width)));
    // written so that the NaN of an empty column gives way to any value
    if (!(low[column]! <= value)) low[column] = value;
    if (!(high[column]! >= value)) high[column] = value;
  }
  return { low, high };
}

/** The lowest and the highest of several curves at each place: the band of the layers. */
export function bandOf(curves: Float32Array[]): Columns {
  const length = Math.max(0, ...curves.map((curve) => curve.length));
  const low = new Float32Array(length).fill(NaN);
  const high = new Float32Array(length).fill(NaN);
  for (const curve of curves) {
    for (let place = 0; place < curve.length; place += 1) {
      const value = curve[place]!;
      if (Number.isNaN(value)) continue;
      if (!(low[place]! <= value)) low[place] = value;
      if (!(high[place]! >= value)) high[place] = value;
    }
  }
  return { low, high };
}
