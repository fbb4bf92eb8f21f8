// The sound of an axis, played by the browser. One at a time; it never begins by itself and stops at its end.

import { effect, signal } from "@preact/signals";
import { action } from "../actions";
import type { AudioAxis } from "../payload";
import { currentExample, key, keyAxis, payload, query, queryAxis } from "../store";
import { tensor } from "../tensors";

interface Sounding {
  axis: AudioAxis;
  context: AudioContext;
  source: AudioBufferSourceNode;
  /** The context's clock when it began, and the second of the sound at which it did. */
  began: number;
  from: number;
}

export const sounding = signal<Sounding | null>(null);
/** Why a sound could not be played, in the browser's words. */
export const silent = signal<string | null>(null);

export const SOUND_KEY = "w";

export function playable(axis: AudioAxis): boolean {
  return axis.sound !== null && axis.rate !== null;
}

export async function play(axis: AudioAxis, from: number): Promise<void> {
  stop();
  if (!axis.sound || !axis.rate) return;
  try {
    const wave = (await tensor(axis.sound)) as Float32Array<ArrayBuffer>;
    const context = new AudioContext();
    const buffer = context.createBuffer(1, wave.length, axis.rate);
    buffer.copyToChannel(wave, 0);
    const source = new AudioBufferSourceNode(context, { buffer });
    source.connect(context.destination);
    source.onended = () => sounding.peek()?.source === source && stop();
    source.start(0, Math.min(from, buffer.duration));
    silent.value = null;
    sounding.value = { axis, context, source, began: context.currentTime, from };
  } catch (error) {
    silent.value = error instanceof Error ? error.message : String(error);
  }
}

export function stop(): void {
  const now = sounding.peek();
  if (!now) return;
  sounding.value = null;
  now.source.onended = null;
  now.source.stop();
  void now.context.close();
}

/** The second of the sound that is heard now. */
export function heard(now: Sounding): number {
  return now.from + now.context.currentTime - now.began;
}

/** The sound in sight, and the second of the place that is chosen on it: what is read, or else who reads. */
export function inSight(): { axis: AudioAxis; from: number } | null {
  for (const [axis, place] of [[keyAxis.value, key.value], [queryAxis.value, query.value]] as const) {
    if (axis?.kind === "audio" && playable(axis)) return { axis, from: (place ?? 0) * axis.seconds_per_step };
  }
  return null;
}

export function toggleSound(): void {
  const there = inSight();
  if (sounding.peek()) stop();
  else if (there) void play(there.axis, there.from);
}

action({ id: "sound", keys: [SOUND_KEY], label: "overlayPlay", run: toggleSound });

/** Another example, another silence. */
effect(() => {
  if (payload.value) void currentExample.value;
  stop();
});
