// The beam search as a tree that grows with playback; a branch that is pointed at shows what it had written and attended.

import { useLayoutEffect, useRef } from "preact/hooks";
import { useSignal } from "@preact/signals";
import { brief } from "../curves/scale";
import { languageTag, shorten } from "../labels";
import type { Beams as Search, Example } from "../payload";
import { current, currentExample, query } from "../store";
import { say } from "../strings";
import { Branch, described, writtenAxis } from "./branch";
import { bestPath, count, exists, firstShown, grown, neighbour, type Node, ROWS } from "./tree";
import { at, decoded, stops } from "./walk";

const BOX = { width: 62, height: 24, across: 84, down: 30 };

interface Place {
  step: number;
  row: number;
}

export function Beams() {
  const beams = currentExample.value.beams;
  const pointed = useSignal<Place | null>(null);
  const focused = useSignal<Place | null>(null);
  if (!beams) return null;
  const now = stepNow(currentExample.value, beams);
  const nodes = grown(beams, now);
  const first = firstShown(beams, now);
  const fallback = { step: now, row: bestPath(beams)[now] ?? nodes[now]?.[0]?.row ?? 0 };
  const drawn = ({ step, row }: Place) => step >= first && step <= now && exists(beams, step, row);
  const known = (place: Place | null) => (place && drawn(place) ? place : null);
  const roving = known(focused.value) ?? fallback;
  const shown = known(pointed.value) ?? known(focused.value);
  return (
    <div class="beams">
      <h3>{say("beams.title")}</h3>
      <p class="playback-note">{found(beams, nodes, now)}</p>
      {first > 0 && <p class="playback-note">{say("beams.window", { hidden: first })}</p>}
      {widest(beams) > ROWS && <p class="playback-note">{say("beams.rows", { hidden: widest(beams) - ROWS })}</p>}
      <p class="visually-hidden" id="beams-keys">
        {say("beams.keys")}
      </p>
      <Tree beams={beams} nodes={nodes} first={first} now={now} roving={roving} pointed={pointed} focused={focused} />
      {shown ? (
        <Branch beams={beams} node={nodes[shown.step]!.find((each) => each.row === shown.row)!} />
      ) : (
        <p class="playback-note">{say("beams.point")}</p>
      )}
    </div>
  );
}

/** The step that playback is at; without a crosshair, and once the answer is whole, all of the search. */
function stepNow(example: Example, beams: Search): number {
  const last = beams.parents.length - 1;
  if (!decoded(example, current.value)) return last;
  const way = stops(example, current.value);
  const here = at(way, query.value);
  return here < 0 || here === way.length - 1 ? last : Math.min(here, last);
}

function widest(beams: Search): number {
  return beams.parents[0]?.length ?? 0;
}

function found(beams: Search, nodes: Node[][], now: number): string {
  const [step, row] = beams.best;
  return say("beams.found", { ...count(nodes), step: now + 1, end: step + 1, score: brief(beams.scores[step]![row]!) });
}

interface Held<Thing> {
  value: Thing;
}

interface TreeGiven {
  beams: Search;
  nodes: Node[][];
  first: number;
  now: number;
  roving: Place;
  pointed: Held<Place | null>;
  focused: Held<Place | null>;
}

function Tree({ beams, nodes, first, now, roving, pointed, focused }: TreeGiven) {
  const scroller = useRef<HTMLDivElement>(null);
  const boxes = nodes.slice(first).flatMap((step) => step.filter((node) => node.row < ROWS));
  const width = (now - first + 1) * BOX.across;
  const height = Math.min(ROWS, widest(beams)) * BOX.down + 6;
  useLayoutEffect(() => {
    if (scroller.current) scroller.current.scrollLeft = width;
  }, [now, width]);
  const keyed = (event: KeyboardEvent) => {
    const to = neighbour(nodes, roving, event.key);
    if (!to || to.step < first || to.row >= ROWS) return;
    event.preventDefault();
    focused.value = { step: to.step, row: to.row };
    const id = idOf(to);
    // the box that takes over is focused once it is there
    queueMicrotask(() => document.getElementById(id)?.focus());
  };
  const title = say("beams.tree", { first: first + 1, last: now + 1, steps: beams.parents.length, width: widest(beams) });
  return (
    <div class="beams-scroller" ref={scroller}>
      <svg class="beams-tree" width={width} height={height} role="tree" aria-label={title} aria-describedby="beams-keys" onKeyDown={keyed}>
        <g aria-hidden="true">
          {boxes
            .filter((node) => node.parent !== null && node.step > first && node.parent < ROWS)
            .map((node) => (
              <Edge key={idOf(node)} node={node} first={first} />
            ))}
        </g>
        {boxes.map((node) => (
          <Box
            key={idOf(node)}
            node={node}
            first={first}
            chosen={node.step === roving.step && node.row === roving.row}
            pointed={pointed}
            focused={focused}
          />
        ))}
      </svg>
    </div>
  );
}

function idOf(node: Place): string {
  return `beam-${node.step}-${node.row}`;
}

function corner(node: Place, first: number): [number, number] {
  return [(node.step - first) * BOX.across + 2, node.row * BOX.down + 4];
}

function Edge({ node, first }: { node: Node; first: number }) {
  const [left, top] = corner({ step: node.step - 1, row: node.parent! }, first);
  const [right, end] = corner(node, first);
  const [start, middle] = [left + BOX.width, BOX.height / 2];
  const half = (start + right) / 2;
  const line = `M${start},${top + middle}C${half},${top + middle} ${half},${end + middle} ${right},${end + middle}`;
  return <path class={`beams-edge beams-${node.status}`} d={line} />;
}

interface BoxGiven {
  node: Node;
  first: number;
  chosen: boolean;
  pointed: Held<Place | null>;
  focused: Held<Place | null>;
}

/** About 7 px a letter, 13 px where letters are as wide as they are high. */
function wide(text: string): number {
  return [...text].reduce((sum, letter) => sum + (letter.codePointAt(0)! > 0x2e7f ? 13 : 7), 0);
}

function Box({ node, first, chosen, pointed, focused }: BoxGiven) {
  const [x, y] = corner(node, first);
  const place = { step: node.step, row: node.row };
  // what is seen must be part of what is said, so a long token is as short in the name
  const token = shorten(node.token, BOX.width - 8, wide);
  return (
    <g
      id={idOf(node)}
      class={`beams-node beams-${node.status}`}
      role="treeitem"
      aria-level={node.step + 1}
      aria-selected={chosen}
      aria-label={described(node, token)}
      tabindex={chosen ? 0 : -1}
      transform={`translate(${x},${y})`}
      onPointerEnter={() => (pointed.value = place)}
      onPointerLeave={() => (pointed.value = null)}
      onFocus={() => (focused.value = place)}
      onClick={() => goTo(node.step)}
      onKeyDown={(event: KeyboardEvent) => {
        if (event.key !== "Enter") return;
        event.preventDefault();
        goTo(node.step);
      }}
    >
      <rect width={BOX.width} height={BOX.height} rx={4} />
      {node.ended && <path class="beams-end" d={`M${BOX.width + 4},2V${BOX.height - 2}`} />}
      <text x={BOX.width / 2} y={BOX.height / 2} lang={languageTag(writtenAxis())} aria-hidden="true">
        {token}
      </text>
    </g>
  );
}

/** Playback goes to the step of a branch. */
function goTo(step: number): void {
  const written = currentExample.value.steps[step];
  if (written && decoded(currentExample.value, current.value)) query.value = written.query;
}
