// One curve: its name, its definition, what it shows in a sentence, and the picture with crosshair and brush.

import { useEffect, useLayoutEffect, useMemo, useRef } from "preact/hooks";
import { useSignal } from "@preact/signals";
import { detail, languageTag } from "../labels";
import { inSight, zoomed } from "../heatmap/window";
import { lit } from "../store";
import { say } from "../strings";
import { brush, brushOf, clear, crossOf, keyed, moveTo } from "./brush";
import { prepare, useWidth } from "./canvas";
import { coloursOf, theme } from "./colours";
import { draw, type Picture, placeAt, xOf, yOf } from "./draw";
import { finding } from "./finding";
import { Over } from "./marks";
import { sinks } from "./moment";
import { named } from "./name";
import { HEIGHT, nearestLayer, pictureOf } from "./picture";
import { axisOf, type Plot, told } from "./plots";
import type { Layer, Scene } from "./scene";

interface Given {
  plot: Plot;
  scene: Scene;
}

export function Curve({ plot, scene }: Given) {
  const found = finding(scene, plot);
  const name = `curve-${plot.name}`;
  const empty = plot.name === "sink" && sinks(scene.axes.key).length === 0;
  return (
    <div class="curve">
      <div class="curve-heading">
        <h3 id={name}>{say(plot.title)}</h3>
        <span class="curve-quiet">{say(`time.along.${plot.along}`, { axis: scene.attention[plot.along] })}</span>
      </div>
      <p class="curve-definition">{defined(plot, scene)}</p>
      {empty ? (
        <p class="curve-finding">{say("time.sink.none")}</p>
      ) : (
        <>
          <Drawing plot={plot} scene={scene} found={found} name={name} />
          <Here plot={plot} scene={scene} />
          <p class="curve-finding" id={`${name}-finding`}>
            {found}
          </p>
        </>
      )}
    </div>
  );
}

/** Names of sinks that a definition lists. */
const LISTED = 6;

/** What a curve is; that of the sinks says which keys these are. */
function defined(plot: Plot, scene: Scene): string {
  if (plot.name !== "sink") return say(plot.definition);
  const names = [...new Set(sinks(scene.axes.key).map((place) => named(scene.axes.key, place)))];
  const list = names.slice(0, LISTED).join(say("playback.comma"));
  const told = names.length > LISTED ? say("time.sink.more", { list, count: names.length - LISTED }) : list || "–";
  return say(plot.definition, { sinks: told });
}

/** A slider along the axis, so that keys move it and its value is read out; the picture in it is described by the finding. */
function Drawing({ plot, scene, found, name }: Given & { found: string; name: string }) {
  const { ref, width } = useWidth<HTMLDivElement>();
  const canvas = useRef<HTMLCanvasElement>(null);
  const pointed = useSignal<number | null>(null);
  const dragged = useSignal<[number, number] | null>(null);
  const anchor = useRef<number | null>(null);
  const axis = axisOf(scene, plot);
  const picture = usePicture(canvas, plot, scene, width);
  const cross = crossOf(plot.along);
  useDrawn(canvas, picture);
  // The tip follows the last input used: a key or playback that moves the crosshair takes it from a resting pointer.
  useEffect(() => {
    pointed.value = null;
  }, [cross]);
  const marks = { cross, pointed: pointed.value, brush: dragged.value ?? brushOf(plot.along), sight: sight(plot) };
  const pointer = pointerOf({ plot, scene }, picture, useRef(null), pointed, dragged);
  const here = cross ?? 0;
  return (
    <div
      ref={ref}
      class="curve-drawing"
      role="slider"
      tabIndex={0}
      aria-labelledby={name}
      aria-describedby={`${name}-finding time-keys`}
      aria-valuemin={0}
      aria-valuemax={Math.max(0, axis.length - 1)}
      aria-valuenow={Math.min(here, axis.length - 1)}
      aria-valuetext={say("time.at", { place: named(axis, here), value: told(scene, plot, scene.main, here) })}
      onKeyDown={(event: KeyboardEvent) => {
        if (event.ctrlKey || event.metaKey || event.altKey || !keyed(event, plot.along, axis.length, anchor)) return;
        event.preventDefault();
      }}
      {...pointer}
    >
      <canvas ref={canvas} class="curve-canvas" role="img" aria-label={found} style={{ height: `${HEIGHT}px` }} />
      {picture && <Over picture={picture} marks={marks} />}
      <Tip plot={plot} scene={scene} place={pointed.value} picture={picture} />
    </div>
  );
}

/** What the heat map shows of this axis, where that is not all. */
function sight(plot: Plot): [number, number] | null {
  if (!zoomed.value) return null;
  const [row, column, endRow, endColumn] = inSight.value;
  return plot.along === "key" ? [column, endColumn] : [row, endRow];
}

/** The picture, made again when the scene, the room, the colours or the layer that is pointed at change. */
function usePicture(canvas: { current: HTMLCanvasElement | null }, plot: Plot, scene: Scene, width: number): Picture | null {
  const shown = litLayer(scene);
  const colour = theme.value;
  const ready = canvas.current;
  return useMemo(() => {
    if (!ready || width === 0) return null;
    const colours = coloursOf(ready);
    const pen = ready.getContext("2d");
    if (pen) pen.font = colours.font;
    const measure = (text: string) => pen?.measureText(text).width ?? text.length * 6;
    return pictureOf(scene, plot, width, colours, measure, shown);
  }, [ready, plot, scene, width, shown, colour]);
}

function litLayer(scene: Scene): Layer | null {
  return scene.layers.find((layer) => layer.attention.id === lit.value) ?? null;
}

/** The curve is drawn when its picture is another, not when the crosshair moves. */
function useDrawn(canvas: { current: HTMLCanvasElement | null }, picture: Picture | null): void {
  useLayoutEffect(() => {
    if (!canvas.current || !picture) return;
    const pen = prepare(canvas.current, picture.width, picture.height);
    if (pen) draw(pen, picture, coloursOf(canvas.current));
  }, [picture]);
}

type Held<Thing> = { value: Thing };
type Begun = { current: { place: number; x: number } | null };

/** A click puts the crosshair, a drag brushes, hovering reads and lights the nearest layer; a double click clears. */
function pointerOf(
  { plot, scene }: Given,
  picture: Picture | null,
  begun: Begun,
  pointed: Held<number | null>,
  dragged: Held<[number, number] | null>,
) {
  const at = (event: PointerEvent) => {
    const box = (event.currentTarget as Element).getBoundingClientRect();
    return { place: picture ? placeAt(picture, event.clientX - box.left) : 0, y: event.clientY - box.top };
  };
  const stop = () => {
    begun.current = null;
    dragged.value = null;
  };
  return {
    onPointerDown(event: PointerEvent) {
      if (event.button !== 0) return;
      begun.current = { place: at(event).place, x: event.clientX };
      (event.currentTarget as Element).setPointerCapture?.(event.pointerId);
    },
    onPointerMove(event: PointerEvent) {
      const { place, y } = at(event);
      pointed.value = place;
      const first = begun.current;
      if (first && (dragged.value || Math.abs(event.clientX - first.x) > 4)) {
        dragged.value = [Math.min(first.place, place), Math.max(first.place, place) + 1];
      } else if (picture) {
        const near = nearestLayer(scene, plot, place, (value) => Math.abs(yOf(picture, value) - y));
        lit.value = (near?.attention ?? scene.attention).id;
      }
    },
    onPointerUp(event: PointerEvent) {
      if (!begun.current) return;
      if (dragged.value) brush(plot.along, ...dragged.value);
      else moveTo(plot.along, at(event).place);
      stop();
    },
    onPointerCancel: stop,
    onPointerLeave() {
      pointed.value = null;
      lit.value = null;
    },
    onDblClick: () => clear(plot.along),
  };
}

/**
 * The value at the crosshair; its line is always there, so that nothing below it jumps. The sentence runs as the page does,
 * whatever word it begins with: `named` sets apart words that run from the right.
 */
function Here({ plot, scene }: Given) {
  const place = crossOf(plot.along);
  const axis = axisOf(scene, plot);
  return (
    <p class="curve-here" lang={languageTag(axis)}>
      {place !== null && say("time.at", { place: named(axis, place), value: told(scene, plot, scene.main, place) })}
    </p>
  );
}

/** The values under the pointer. */
function Tip({ plot, scene, place, picture }: Given & { place: number | null; picture: Picture | null }) {
  if (place === null || !picture) return null;
  const axis = axisOf(scene, plot);
  const layer = litLayer(scene);
  const rows = [`${scene.letters ? `${scene.letters[0]}: ` : ""}${told(scene, plot, scene.main, place)}`];
  if (scene.other && scene.letters) rows.push(`${scene.letters[1]}: ${told(scene, plot, scene.other, place)}`);
  if (layer && layer.attention !== scene.attention) {
    rows.push(`${say("time.layer", { layer: layer.attention.layer })}: ${told(scene, plot, layer.measures, place)}`);
  }
  const x = xOf(picture, picture.across(place));
  return (
    <p class={x > picture.width / 2 ? "curve-tip curve-left" : "curve-tip"} style={{ left: `${x}px` }} aria-hidden="true">
      <bdi lang={languageTag(axis)}>{named(axis, place)}</bdi> <span class="curve-quiet">{detail(axis, place)}</span>
      {rows.map((row) => (
        <span key={row} class="curve-row">
          {row}
        </span>
      ))}
    </p>
  );
}
