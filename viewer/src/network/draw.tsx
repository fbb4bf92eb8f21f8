// The network as boxes on a sheet: a nested list, which is its own outline, whose items stand where the layout puts them.

import type { JSX } from "preact";
import { Thumbnail } from "../heads/thumbnail";
import { choose, current, folds, head, lit } from "../store";
import { say } from "../strings";
import type { Box, Line, Sight } from "./fold";
import type { Drawn, Point, Rectangle } from "./layout";
import { badge, unfoldId } from "./stops";
import { facts, kind, more } from "./words";

/** What every box needs to know: lines and names for its words, what is selected, and which stop Tab reaches. */
export interface Scene {
  sight: Sight;
  drawn: Drawn;
  names: Map<string, string>;
  stop: string;
}

export function Boxes({ boxes, scene }: { boxes: Box[]; scene: Scene }): JSX.Element {
  return (
    <ul class="network-list">
      {boxes.map((box) => (
        <li key={box.slot}>
          {box.inside.length > 0 ? <Frame box={box} scene={scene} /> : <Leaf box={box} scene={scene} />}
          {box.times > 1 && <Unfold box={box} scene={scene} />}
          {box.inside.length > 0 && <Boxes boxes={box.inside} scene={scene} />}
        </li>
      ))}
    </ul>
  );
}

function at(place: Rectangle): Record<string, string> {
  return { left: `${place.left}px`, top: `${place.top}px`, width: `${place.width}px`, height: `${place.height}px` };
}

/** Selected: the box of the attention, or the one that stands in its place while it is folded away. */
function selectedSlot(scene: Scene): string | undefined {
  return scene.sight.slots.get(current.value?.id ?? "");
}

function litSlot(scene: Scene): string | undefined {
  return lit.value === null ? undefined : scene.sight.slots.get(lit.value);
}

function Leaf({ box, scene }: { box: Box; scene: Scene }): JSX.Element {
  const chosen = selectedSlot(scene) === box.slot;
  const classes = ["network-box", box.attention && "looks", chosen && "chosen", litSlot(scene) === box.slot && "lit", box.times > 1 && "many"];
  return (
    <button
      type="button"
      class={classes.filter(Boolean).join(" ")}
      style={at(scene.drawn.places.get(box.slot)!)}
      data-stop={box.slot}
      tabIndex={scene.stop === box.slot ? 0 : -1}
      aria-current={chosen ? "true" : undefined}
      aria-expanded={box.opens && !box.attention ? "false" : undefined}
      title={box.node?.id ?? box.name}
      onClick={() => press(box)}
      onPointerEnter={() => (lit.value = box.attention?.id ?? null)}
      onPointerLeave={() => (lit.value = null)}
    >
      {box.attention && <Thumbnail attention={box.attention} head={head.value} size={48} />}
      <span class="network-words">
        <bdi class="network-name">{box.name}</bdi>
        {(box.attention ? facts(box) : kind(box)).map((fact, line) => (
          <span class="network-fact" key={line}>
            {fact}
          </span>
        ))}
      </span>
      <span class="network-unseen">
        {[more(box, scene.sight.lines, scene.names), chosen && !box.attention ? say("networkHolds") : ""].filter(Boolean).join(", ")}
      </span>
    </button>
  );
}

/** The header closes what is open: a module, or the layers of a stack. */
function Frame({ box, scene }: { box: Box; scene: Scene }): JSX.Element {
  const place = scene.drawn.places.get(box.slot)!;
  const stack = box.sort === "stack";
  return (
    <div class={stack ? "network-frame stack" : "network-frame"} style={at(place)}>
      <button
        type="button"
        class="network-header"
        data-stop={box.slot}
        tabIndex={scene.stop === box.slot ? 0 : -1}
        aria-expanded="true"
        title={stack ? say("networkFold", { count: box.inside.length, name: box.name }) : say("networkClose", { name: box.node?.id ?? box.name })}
        onClick={() => fold(box.slot, false)}
      >
        <span aria-hidden="true">− </span>
        <bdi>{stack ? say("networkStack", { name: box.name, count: box.inside.length }) : box.name}</bdi>
        <span class="network-unseen">{more(box, scene.sight.lines, scene.names)}</span>
      </button>
    </div>
  );
}

function Unfold({ box, scene }: { box: Box; scene: Scene }): JSX.Element {
  const label = say("networkUnfold", { count: box.times, name: box.name });
  return (
    <button
      type="button"
      class="network-times"
      style={at(badge(scene.drawn.places.get(box.slot)!))}
      data-stop={unfoldId(box.slot)}
      tabIndex={scene.stop === unfoldId(box.slot) ? 0 : -1}
      aria-expanded="false"
      aria-label={`×${box.times}, ${label}`}
      title={label}
      onClick={() => fold(box.stack!, true)}
    >
      ×{box.times}
    </button>
  );
}

/** An attention is selected, a module opened; what has nothing inside but stands for several is unfolded. */
function press(box: Box): void {
  if (box.attention) choose(box.attention.id);
  else if (box.opens) fold(box.slot, true);
  else if (box.stack !== null) fold(box.stack, true);
}

export function fold(slot: string, open: boolean): void {
  folds.value = { ...folds.value, [slot]: open };
}

/** Lines and their shapes. The outline says all of it in words, so this is for the eye alone. */
export function Lines({ drawn, marked }: { drawn: Drawn; marked: Set<string> }): JSX.Element {
  return (
    <svg class="network-lines" width={drawn.width} height={drawn.height} aria-hidden="true">
      <defs>
        <marker id="network-tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" markerUnits="userSpaceOnUse" orient="auto">
          <path d="M0 0 8 4 0 8z" />
        </marker>
      </defs>
      {drawn.lines.map(({ line, points, label, at: middle }) => (
        <g key={`${line.start} ${line.end}`} class={touches(line, marked) ? "marked" : undefined}>
          <path d={path(points)} marker-end="url(#network-tip)">
            <title>{line.roles.join(", ")}</title>
          </path>
          {middle && (
            <text x={middle.x} y={middle.y} text-anchor="middle" dominant-baseline="central">
              {label}
            </text>
          )}
        </g>
      ))}
    </svg>
  );
}

function touches(line: Line, marked: Set<string>): boolean {
  return marked.has(line.start) || marked.has(line.end);
}

/** A smooth line through the middles of its parts. */
export function path(points: Point[]): string {
  const [first, ...rest] = points;
  if (!first) return "";
  const parts = [`M${round(first)}`];
  rest.slice(0, -1).forEach((point, place) => {
    const next = rest[place + 1]!;
    const last = place === rest.length - 2;
    parts.push(`Q${round(point)} ${round(last ? next : { x: (point.x + next.x) / 2, y: (point.y + next.y) / 2 })}`);
  });
  if (rest.length === 1) parts.push(`L${round(rest[0]!)}`);
  return parts.join("");
}

function round(point: Point): string {
  return `${point.x.toFixed(1)} ${point.y.toFixed(1)}`;
}
