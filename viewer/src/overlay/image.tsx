// A picture whose patches are shaded by weight; places that are no patch, such as CLS, stand beside it.

import type { Signal } from "@preact/signals";
import { useMemo } from "preact/hooks";
import { label } from "../labels";
import { written } from "../link/number";
import { differs, type Line } from "../link/reading";
import { toggle } from "../link/roving";
import type { ImageAxis } from "../payload";
import { opacity, plain } from "../store";
import { say } from "../strings";
import { Canvas, frame, type Paint } from "./canvas";
import { type Shade, shadeOf } from "./shade";
import { useTensor } from "./tensor";

export interface OverlayProps<Kind> {
  axis: Kind;
  chosen: Signal<number | null>;
  shown: number | null;
  line: Line | null;
  finding: string;
}

export function ImageOverlay({ axis, chosen, shown, line, finding }: OverlayProps<ImageAxis>) {
  const picture = usePicture(axis);
  const shade = line && shadeOf(line);
  const [high, wide] = axis.size;
  const height = (width: number) => (width * high) / wide;
  const paint: Paint = (context, width, height, theme) => {
    context.imageSmoothingEnabled = false;
    if (picture) context.drawImage(picture, 0, 0, width, height);
    shadePatches(context, axis, shade, width, height, picture ? null : theme.line);
    if (shown !== null && shown >= axis.prefix.length) {
      const [x, y, across, down] = patchBox(axis, shown, width, height);
      frame(context, theme, x + 2, y + 2, across - 4, down - 4);
    }
  };
  const paintPlain: Paint = (context, width, height) => {
    context.imageSmoothingEnabled = false;
    if (picture) context.drawImage(picture, 0, 0, width, height);
  };
  const choose = (x: number, y: number, width: number, height: number) => toggle(chosen, patchAt(axis, x, y, width, height));
  return (
    <div class="overlay-image">
      <Canvas label={say("overlayPicture", { finding })} height={height} paint={paint} choose={choose} />
      {axis.pixels && plain.value && <Canvas label={say("overlayPlainPicture")} height={height} paint={paintPlain} choose={choose} />}
      <div class="overlay-options">
        <label class="overlay-opacity">
          <span>{say("overlayOpacity")}</span>
          <input
            type="range"
            min={0}
            max={100}
            value={Math.round(100 * opacity.value)}
            aria-valuetext={`${Math.round(100 * opacity.value)} %`}
            onInput={(event) => (opacity.value = event.currentTarget.valueAsNumber / 100)}
          />
        </label>
        {axis.pixels && (
          <button type="button" aria-pressed={plain.value} onClick={() => (plain.value = !plain.value)}>
            {say("overlayPlain")}
          </button>
        )}
        {axis.prefix.length > 0 && <Prefix axis={axis} chosen={chosen} shown={shown} line={line} shade={shade} />}
        {shade && <p class="quiet">{say("overlayFull", { value: written(shade.most, true) })}</p>}
        {!axis.pixels && <p class="quiet">{say("overlayNoPixels")}</p>}
      </div>
    </div>
  );
}

/** The picture of an axis, once it has been unpacked; null where there is none. */
export function usePicture(axis: ImageAxis): HTMLCanvasElement | null {
  const pixels = useTensor(axis.pixels) as Uint8Array | null;
  return useMemo(() => pixels && bitmap(pixels, axis.pixels!.shape), [pixels]);
}

/** The weights over the patches; with `line` every patch is outlined, where there is no picture under them. */
export function shadePatches(
  context: CanvasRenderingContext2D,
  axis: ImageAxis,
  shade: Shade | null,
  width: number,
  height: number,
  line: string | null,
): void {
  for (let place = axis.prefix.length; place < axis.length; place += 1) {
    const [x, y, across, down] = patchBox(axis, place, width, height);
    if (line) {
      context.strokeStyle = line;
      context.strokeRect(x + 0.5, y + 0.5, across - 1, down - 1);
    }
    if (!shade) continue;
    context.globalAlpha = opacity.value * shade.share(place);
    context.fillStyle = shade.colour(place);
    context.fillRect(x, y, across, down);
    context.globalAlpha = 1;
  }
}

/** Where a patch lies in a picture of this size: x, y, width, height, in whole pixels so that no seam shows. */
export function patchBox(axis: ImageAxis, place: number, width: number, height: number): [number, number, number, number] {
  const [rows, columns] = axis.grid;
  const at = place - axis.prefix.length;
  const [row, column] = [Math.floor(at / columns), at % columns];
  const [x, y] = [Math.round((column * width) / columns), Math.round((row * height) / rows)];
  return [x, y, Math.round(((column + 1) * width) / columns) - x, Math.round(((row + 1) * height) / rows) - y];
}

/** The place of the patch under a point. */
export function patchAt(axis: ImageAxis, x: number, y: number, width: number, height: number): number {
  const [rows, columns] = axis.grid;
  const row = Math.min(rows - 1, Math.max(0, Math.floor((y / height) * rows)));
  const column = Math.min(columns - 1, Math.max(0, Math.floor((x / width) * columns)));
  return axis.prefix.length + row * columns + column;
}

export function bitmap(pixels: Uint8Array, shape: number[]): HTMLCanvasElement | null {
  const [height, width] = shape as [number, number, number];
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [width, height];
  const context = canvas.getContext("2d");
  if (!context) return null;
  const image = context.createImageData(width, height);
  for (let at = 0; at < width * height; at += 1) {
    image.data.set(pixels.subarray(3 * at, 3 * at + 3), 4 * at);
    image.data[4 * at + 3] = 255;
  }
  context.putImageData(image, 0, 0);
  return canvas;
}

type PrefixProps = Pick<OverlayProps<ImageAxis>, "axis" | "chosen" | "shown" | "line"> & { shade: Shade | null };

function Prefix({ axis, chosen, shown, line, shade }: PrefixProps) {
  return (
    <div class="overlay-prefix" role="group" aria-label={say("overlayPrefix")}>
      {axis.prefix.map((_, place) => {
        const cell = line?.cell(place) ?? null;
        return (
          <button key={place} type="button" aria-pressed={shown === place} onClick={() => toggle(chosen, place)}>
            <bdi>{label(axis, place)}</bdi>
            {cell && <span> {written(cell.value, cell.exact, differs())}</span>}
            {shade && cell && (
              <span class="overlay-swatch" aria-hidden="true">
                <span style={{ background: shade.colour(place), opacity: String(opacity.value * shade.share(place)) }} />
              </span>
            )}
          </button>
        );
      })}
    </div>
  );
}
