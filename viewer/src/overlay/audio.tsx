// A sound: its spectrogram, the weight of every frame below it, the seconds, and a line that goes with what is heard.

import { useEffect, useMemo, useRef } from "preact/hooks";
import { written } from "../link/number";
import { toggle } from "../link/roving";
import type { AudioAxis } from "../payload";
import { say } from "../strings";
import { Canvas, frame, type Paint } from "./canvas";
import type { OverlayProps } from "./image";
import { type Shade, shadeOf } from "./shade";
import { heard, play, playable, silent, SOUND_KEY, sounding, stop } from "./sound";
import { useTensor } from "./tensor";
import { numbers } from "./ticks";

const PICTURE = 130;
const CURVE = 64;
const TICKS = 22;

export function AudioOverlay({ axis, chosen, shown, line, finding }: OverlayProps<AudioAxis>) {
  const cells = useTensor(axis.spectrogram) as Uint8Array | null;
  const picture = useMemo(() => cells && spectrogram(cells, axis.spectrogram!.shape), [cells]);
  const shade = line && shadeOf(line);
  const above = axis.spectrogram ? PICTURE : 0;
  const paint: Paint = (context, width, height, theme) => {
    context.imageSmoothingEnabled = false;
    if (picture) context.drawImage(picture, 0, 0, width, above);
    context.fillStyle = theme.accent;
    if (shade) curve(context, shade, axis.length, width, above + CURVE, CURVE - 4);
    context.fillStyle = theme.line;
    context.fillRect(0, above + CURVE, width, 1);
    context.font = theme.font;
    context.fillStyle = theme.ink;
    seconds(context, axis, width, height);
    if (shown !== null) {
      const across = width / axis.length;
      frame(context, theme, shown * across, 2, Math.max(2, across), above + CURVE - 4);
    }
  };
  return (
    <div class="overlay-audio">
      <div class="overlay-sight">
        <Canvas
          label={say("overlaySound", { finding })}
          height={() => above + CURVE + TICKS}
          paint={paint}
          choose={(x, _, width) => toggle(chosen, placeAt(axis.length, x, width))}
        />
        <Playhead axis={axis} />
      </div>
      <p class="quiet">
        {playable(axis) && <PlayButton axis={axis} shown={shown} />}
        {silent.value && <span role="alert"> {silent.value} </span>}
        {!axis.spectrogram && <span> {say("overlayNoSpectrogram")} </span>}
        {shade && <span> {say("overlayFull", { value: written(shade.most) })}</span>}
      </p>
    </div>
  );
}

export function placeAt(length: number, x: number, width: number): number {
  return Math.min(length - 1, Math.max(0, Math.floor((x / width) * length)));
}

/** The largest share in each of so many columns: frames outnumber pixels, and a peak must not fall between two. */
export function envelope(share: (place: number) => number, length: number, columns: number): Float32Array {
  return Float32Array.from({ length: columns }, (_, column) => {
    const first = Math.floor((column * length) / columns);
    const end = Math.max(first + 1, Math.ceil(((column + 1) * length) / columns));
    let most = 0;
    for (let place = first; place < Math.min(end, length); place += 1) most = Math.max(most, share(place));
    return most;
  });
}

function curve(context: CanvasRenderingContext2D, shade: Shade, length: number, width: number, ground: number, height: number): void {
  const columns = Math.max(1, Math.floor(width));
  envelope(shade.share, length, columns).forEach((share, column) => {
    context.fillRect(column, ground - share * height, 1, share * height);
  });
}

function seconds(context: CanvasRenderingContext2D, axis: AudioAxis, width: number, height: number): void {
  const whole = axis.length * axis.seconds_per_step;
  context.textBaseline = "bottom";
  for (const tick of numbers(0, whole, width / 80)) {
    const x = (tick.at / whole) * width;
    context.fillRect(Math.min(width - 1, x), height - TICKS, 1, 4);
    const text = `${tick.label} s`;
    const half = context.measureText(text).width / 2;
    context.fillText(text, Math.min(width - 2 * half, Math.max(0, x - half)), height);
  }
}

/** Grey on white, low sounds at the bottom: the weights alone have colour. */
function spectrogram(cells: Uint8Array, shape: number[]): HTMLCanvasElement | null {
  const [bins, frames] = shape as [number, number];
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [frames, bins];
  const context = canvas.getContext("2d");
  if (!context) return null;
  const image = context.createImageData(frames, bins);
  for (let bin = 0; bin < bins; bin += 1) {
    for (let at = 0; at < frames; at += 1) {
      const grey = 255 - cells[bin * frames + at]!;
      image.data.set([grey, grey, grey, 255], 4 * ((bins - 1 - bin) * frames + at));
    }
  }
  context.putImageData(image, 0, 0);
  return canvas;
}

function PlayButton({ axis, shown }: { axis: AudioAxis; shown: number | null }) {
  const on = sounding.value?.axis === axis;
  const label = say(on ? "overlayStop" : "overlayPlay");
  useEffect(() => stop, []);
  return (
    <button
      type="button"
      aria-keyshortcuts={SOUND_KEY}
      title={say("linkKeyHint", { label, key: SOUND_KEY })}
      onClick={() => (on ? stop() : void play(axis, (shown ?? 0) * axis.seconds_per_step))}
    >
      <span aria-hidden="true">{on ? "■ " : "▶ "}</span>
      {label}
    </button>
  );
}

/** Moved by itself, so that nothing is painted anew while a sound plays. */
function Playhead({ axis }: { axis: AudioAxis }) {
  const head = useRef<HTMLDivElement>(null);
  const now = sounding.value;
  useEffect(() => {
    if (!now || now.axis !== axis) return;
    let frame = requestAnimationFrame(function move() {
      const share = Math.min(1, heard(now) / (axis.length * axis.seconds_per_step));
      if (head.current) head.current.style.left = `${share * 100}%`;
      frame = requestAnimationFrame(move);
    });
    return () => cancelAnimationFrame(frame);
  }, [now, axis]);
  return now?.axis === axis ? <div class="overlay-playhead" ref={head} aria-hidden="true" /> : null;
}

