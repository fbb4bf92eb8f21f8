// One branch of a beam search: what it had written, and what it looked at, in words and in colours.

import { useLayoutEffect, useRef } from "preact/hooks";
import { prepare, useWidth } from "../curves/canvas";
import { useLater } from "../curves/later";
import { named, short } from "../curves/name";
import { brief } from "../curves/scale";
import { quantise } from "../grid";
import { languageTag } from "../labels";
import { css, table } from "../palette";
import type { Axis, Beams as Search } from "../payload";
import { currentExample, palette, payload } from "../store";
import { say } from "../strings";
import { tensor } from "../tensors";
import { type Node, written } from "./tree";
import { decodedAxis } from "./walk";

/** A best node that finished says both. */
export function described(node: Node, token: string): string {
  const told = say(`beams.${node.status}`);
  const status = node.ended && node.status === "best" ? `${told}${say("playback.comma")}${say("beams.ended")}` : told;
  return say("beams.node", { step: node.step + 1, row: node.row + 1, token, score: brief(node.score), status });
}

/** The axis of what was written. */
export function writtenAxis(): Axis | null {
  const name = decodedAxis(currentExample.value);
  return name === null ? null : (currentExample.value.axes[name] ?? null);
}

/** What a branch had written, and what it looked at. */
export function Branch({ beams, node }: { beams: Search; node: Node }) {
  const lang = languageTag(writtenAxis());
  const joint = lang && /^(zh|ja|th)/.test(lang) ? "" : " ";
  return (
    <div class="beams-branch">
      <p>{described(node, short(node.token))}</p>
      <p lang={lang}>{say("beams.text", { text: written(beams, node.step, node.row).map(short).join(joint) })}</p>
      <Attended beams={beams} node={node} />
    </div>
  );
}

function Attended({ beams, node }: { beams: Search; node: Node }) {
  const all = useLater(() => weightsOf(currentExample.value.beams));
  const axis = attendedAxis(beams);
  if (!beams.weights || !axis) return <p>{say("beams.unattended")}</p>;
  if (!all) return null;
  const keys = axis.length;
  const from = (node.step * beams.parents[0]!.length + node.row) * keys;
  const row = all.subarray(from, from + keys);
  const most = topKeys(row, 3).map((key) => say("playback.key", { key: named(axis, key), weight: brief(row[key]!) }));
  const told = most.join(say("playback.comma"));
  return (
    <>
      <p>{say("beams.attended", { keys: told })}</p>
      <Strip row={row} told={say("beams.strip", { token: short(node.token), keys: told })} />
    </>
  );
}

async function weightsOf(beams: Search | null): Promise<Float32Array | null> {
  return beams?.weights ? ((await tensor(beams.weights)) as Float32Array) : null;
}

function attendedAxis(beams: Search): Axis | null {
  const name = currentExample.value.attentions.find((each) => each.id === beams.attention)?.key;
  return name === undefined ? null : (currentExample.value.axes[name] ?? null);
}

/** The keys with the largest weights, the largest first; keys without any weight are left out. */
export function topKeys(row: ArrayLike<number>, number: number): number[] {
  const keys = Array.from({ length: row.length }, (_, key) => key).filter((key) => row[key]! > 0);
  return keys.sort((left, right) => row[right]! - row[left]! || left - right).slice(0, number);
}

const STRIP = 18;

/** A row of weights in the colours of the heat map, each pixel the largest of its keys. */
function Strip({ row, told }: { row: Float32Array; told: string }) {
  const { ref, width } = useWidth<HTMLDivElement>();
  const canvas = useRef<HTMLCanvasElement>(null);
  const colours = table(payload.value, palette.value);
  useLayoutEffect(() => {
    const pen = canvas.current && width > 0 ? prepare(canvas.current, width, STRIP) : null;
    if (!pen) return;
    for (const { from, to, weight } of runs(row, width)) {
      pen.fillStyle = css(colours, quantise(Math.min(1, weight)));
      pen.fillRect(from, 0, to - from, STRIP);
    }
  }, [row, width, palette.value]);
  return (
    <div ref={ref} class="beams-strip">
      <canvas ref={canvas} role="img" aria-label={told} style={{ height: `${STRIP}px` }} />
    </div>
  );
}

/** Pieces of a strip: one for each key, or one for each pixel where keys are more, with the largest weight in it. */
export function runs(row: ArrayLike<number>, width: number): { from: number; to: number; weight: number }[] {
  const pieces = Math.min(row.length, Math.max(1, Math.floor(width)));
  const made = Array.from({ length: pieces }, (_, piece) => ({ from: (piece * width) / pieces, to: ((piece + 1) * width) / pieces, weight: 0 }));
  for (let key = 0; key < row.length; key += 1) {
    const piece = made[Math.floor((key * pieces) / row.length)]!;
    piece.weight = Math.max(piece.weight, row[key]!);
  }
  return made;
}
