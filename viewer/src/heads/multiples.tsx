// Pinned heads side by side, larger, all on one scale.

import { useSignalEffect } from "@preact/signals";
import type { JSX } from "preact";
import { useRef } from "preact/hooks";
import { Button } from "../button";
import type { Attention } from "../payload";
import { choose, currentExample, head, lit, pinned, query, transposed, type Head } from "../store";
import { say } from "../strings";
import { paint, picture } from "./loaded";
import type { Picture } from "./picture";
import { found, shared, toggle } from "./pins";
import { headName, headSentence, shown } from "./statistics";

const WIDTH = 132;
const [SHORTEST, TALLEST] = [56, 200];

export function Multiples(): JSX.Element | null {
  const list = useRef<HTMLUListElement>(null);
  const pins = found(pinned.value, currentExample.value);
  useSignalEffect(() => drawAll(list.current));
  if (pins.length === 0) return null;
  return (
    <div class="heads-pins" role="group" aria-label={say("headsPins")}>
      <p class="heads-line">
        {say("headsPins")}. {say("headsPinScale", { most: shown(onOneScale().most) })}{" "}
        <Button of="heads.unpin" />
      </p>
      <ul ref={list}>
        {pins.map((pin) => (
          <Multiple key={`${pin.attention.id} ${pin.head}`} attention={pin.attention} head={pin.head} />
        ))}
      </ul>
    </div>
  );
}

function Multiple(pin: { attention: Attention; head: Head }): JSX.Element {
  const name = headName(pin.attention, pin.head);
  return (
    <li onPointerEnter={() => (lit.value = pin.attention.id)} onPointerLeave={() => (lit.value = null)}>
      <canvas role="img" aria-label={headSentence(pin.attention, pin.head)} />
      <span class="heads-caption">
        <button type="button" class="heads-show" title={pin.attention.id} aria-label={say("headsSelect", { name })} onClick={() => select(pin)}>
          {name}
        </button>
        <button
          type="button"
          class="heads-unpin"
          aria-label={say("headsUnpin", { name })}
          onClick={() => toggle({ attention: pin.attention.id, head: pin.head })}
        >
          ×
        </button>
      </span>
    </li>
  );
}

export function select(pin: { attention: Attention; head: Head }): void {
  choose(pin.attention.id);
  head.value = pin.head;
}

/** What is pinned and unpacked, with its pictures on one scale. */
function onOneScale(): { pins: { attention: Attention; head: Head }[]; pictures: Picture[]; most: number } {
  const pins = found(pinned.value, currentExample.value).map((pin) => ({ ...pin, picture: picture(pin.attention, pin.head) }));
  const there = pins.filter((pin): pin is typeof pin & { picture: Picture } => pin.picture !== null);
  return { pins: there, ...shared(there.map((pin) => ({ picture: pin.picture, scale: pin.attention.scale }))) };
}

function drawAll(list: HTMLUListElement | null): void {
  const all = found(pinned.value, currentExample.value);
  const { pins, pictures } = onOneScale();
  const [at, across] = [query.value, transposed.value];
  all.forEach((pin, place) => {
    const canvas = list?.children[place]?.querySelector("canvas");
    const ready = pins.findIndex((each) => each.attention === pin.attention && each.head === pin.head);
    if (canvas) draw(canvas, pin.attention, pictures[ready] ?? null, at, across);
  });
}

function draw(canvas: HTMLCanvasElement, of: Attention, shownPicture: Picture | null, at: number | null, across: boolean): void {
  const ratio = window.devicePixelRatio || 1;
  const slope = across ? of.keys / of.queries : of.queries / of.keys;
  const height = Math.min(TALLEST, Math.max(SHORTEST, Math.round(WIDTH * slope)));
  [canvas.width, canvas.height] = [Math.round(WIDTH * ratio), Math.round(height * ratio)];
  [canvas.style.width, canvas.style.height] = [`${WIDTH}px`, `${height}px`];
  const context = canvas.getContext("2d");
  if (!context || !shownPicture) return;
  paint(context, shownPicture, 0, 0, canvas.width, canvas.height);
  if (at !== null && at < of.queries) mark(context, (at + 0.5) / of.queries, across);
}

/** The query of the crosshair, in every picture at once: white within black, so that it shows on any colour. */
function mark(context: CanvasRenderingContext2D, share: number, across: boolean): void {
  const { width, height } = context.canvas;
  const place = Math.round(share * (across ? width : height));
  for (const [colour, thick] of [["#000", 3], ["#fff", 1]] as const) {
    context.fillStyle = colour;
    if (across) context.fillRect(place - thick / 2, 0, thick, height);
    else context.fillRect(0, place - thick / 2, width, thick);
  }
}
