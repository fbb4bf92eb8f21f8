// What of the network is in sight: which modules are boxes, which are opened to frames, and the edges between them.

import type { Attention, GraphEdge, GraphNode } from "../payload";
import { ids, members, type Branch } from "./tree";

/** A box, or a frame around the boxes of an opened module. */
export interface Box {
  /** Where it stands in the tree; the same whichever layer of a folded stack is shown. */
  slot: string;
  name: string;
  sort: Branch["sort"];
  node: GraphNode | null;
  attention: Attention | null;
  /** Not empty: a frame. */
  inside: Box[];
  /** Whether there is anything to open. */
  opens: boolean;
  /** How many layers it stands for, and the slot that unfolds them; 1 and null for itself alone. */
  times: number;
  stack: string | null;
  /** Whether an attention is here or below. */
  holds: boolean;
}

export interface Line {
  start: string;
  end: string;
  shapes: number[][];
  roles: string[];
}

export interface Sight {
  boxes: Box[];
  lines: Line[];
  /** The slot that shows a recorded module, by the module's id. */
  slots: Map<string, string>;
}

/** The default opens no more boxes than this. */
export const MOST_BOXES = 80;

/** What is in sight when `folds` were set by hand and `selected` is the id of the chosen attention. */
export function sight(roots: Branch[], edges: GraphEdge[], folds: Record<string, boolean>, selected: string): Sight {
  const open = opened(roots, folds);
  const slots = new Map<string, string>();
  const layers: Layers = new Map();
  const boxes = roots.map((root, at) => show([root], String(at), { open, slots, layers, selected }));
  const kept = edges.filter((edge) => !betweenLayers(edge, layers));
  return { boxes, lines: linesBetween(kept, boxes, slots), slots };
}

/** A branch that may be opened, and the slot of the unfolded stack whose members open together, where it is one of them. */
interface Candidate {
  slot: string;
  of: Branch;
  stack: string | null;
  alike: number;
}

/**
 * The slots that are open. What holds an attention is opened from the top down while there is room for its children;
 * folded stacks stay folded. What was opened or closed by hand is, whatever room that takes.
 */
export function opened(roots: Branch[], folds: Record<string, boolean>): Set<string> {
  const open = new Set<string>();
  const decided = new Map<string, boolean>();
  let count = roots.length;
  let level: Candidate[] = roots.map((root, at) => ({ slot: String(at), of: root, stack: null, alike: 1 }));
  while (level.length > 0) {
    const next: Candidate[] = [];
    for (const { slot, of, stack, alike } of level) {
      const folded = of.sort === "stack" && folds[slot] !== true;
      const [place, shown] = folded ? [`${slot}*`, members(of)[0]!] : [slot, of];
      if (shown.children.length === 0) continue;
      const room = decided.get(stack ?? "") ?? (shown.holds && count + shown.children.length * alike <= MOST_BOXES);
      if (stack !== null) decided.set(stack, room);
      if (!(folds[place] ?? room)) continue;
      open.add(place);
      count += shown.children.length;
      next.push(...candidates(shown, place));
    }
    level = next;
  }
  return open;
}

function candidates(parent: Branch, slot: string): Candidate[] {
  const together = parent.sort === "stack";
  return parent.children.map((of, at) => ({
    slot: `${slot}/${at}`,
    of,
    stack: together ? slot : null,
    alike: together ? parent.children.length : 1,
  }));
}

/** Which layer of which folded stacks a module belongs to: layer numbers by slot, by the module's id. */
type Layers = Map<string, Map<string, number>>;

interface Showing {
  open: Set<string>;
  slots: Map<string, string>;
  layers: Layers;
  selected: string;
}

/** The box of a branch. Its twins, the same branch in the other layers of a folded stack, are shown by it as well. */
function show(twins: Branch[], slot: string, to: Showing): Box {
  const shown = twins[0]!;
  if (shown.sort === "stack" && !to.open.has(slot)) {
    const layers = inFront(twins.flatMap(members), to.selected);
    layers.forEach((layer, at) => note(layer, slot, at, to.layers));
    return { ...show(layers, `${slot}*`, to), times: members(shown).length, stack: slot };
  }
  const inside = to.open.has(slot) ? shown.children.map((_, at) => show(twins.map((twin) => twin.children[at]!), `${slot}/${at}`, to)) : [];
  for (const twin of twins) {
    for (const id of inside.length > 0 ? own(twin) : ids(twin)) to.slots.set(id, slot);
  }
  const { name, sort, node, attention, holds } = shown;
  return { slot, name, sort, node, attention, inside, opens: shown.children.length > 0, times: 1, stack: null, holds };
}

function own(branch: Branch): string[] {
  return branch.node ? [branch.node.id] : [];
}

function note(layer: Branch, slot: string, at: number, layers: Layers): void {
  for (const id of ids(layer)) layers.set(id, new Map(layers.get(id)).set(slot, at));
}

/** From one layer of a folded stack to another: the count on its box says that already. */
function betweenLayers(edge: GraphEdge, layers: Layers): boolean {
  const [from, to] = [layers.get(edge.start), layers.get(edge.end)];
  if (!from || !to) return false;
  return [...from].some(([slot, layer]) => to.has(slot) && to.get(slot) !== layer);
}

/** The layer with the selected attention is the one that stands for all. */
function inFront(layers: Branch[], selected: string): Branch[] {
  const chosen = layers.findIndex((layer) => ids(layer).includes(selected));
  return chosen <= 0 ? layers : [layers[chosen]!, ...layers.filter((_, at) => at !== chosen)];
}

/** Recorded edges between what is in sight, those between the same two boxes joined. */
function linesBetween(edges: GraphEdge[], boxes: Box[], slots: Map<string, string>): Line[] {
  const frames = new Map(every(boxes).map((box) => [box.slot, box]));
  const found = new Map<string, Line>();
  for (const edge of edges) {
    const [from, to] = [slots.get(edge.start), slots.get(edge.end)];
    if (from === undefined || to === undefined || within(from, to) || within(to, from)) continue;
    const [start, end] = [leaf(frames.get(from)!, -1), leaf(frames.get(to)!, 0)];
    const line = found.get(`${start} ${end}`) ?? { start, end, shapes: [], roles: [] };
    if (!line.shapes.some((shape) => shape.join() === edge.shape.join())) line.shapes.push(edge.shape);
    if (edge.role && !line.roles.includes(edge.role)) line.roles.push(edge.role);
    found.set(`${start} ${end}`, line);
  }
  return [...found.values()];
}

function within(outer: string, inner: string): boolean {
  return inner === outer || inner.startsWith(`${outer}/`);
}

/** What goes into a frame goes to its first box, what comes out comes from its last. */
function leaf(box: Box, end: 0 | -1): string {
  const next = box.inside.at(end);
  return next ? leaf(next, end) : box.slot;
}

/** All boxes and frames, each before what is inside it. */
export function every(boxes: Box[]): Box[] {
  return boxes.flatMap((box) => [box, ...every(box.inside)]);
}
