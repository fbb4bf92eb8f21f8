// Where boxes stand and how lines run, by dagre: from top to bottom, frames around what they hold.

import dagre from "@dagrejs/dagre";
import { every, type Box, type Line } from "./fold";
import { stacked } from "./stacked";

export interface Rectangle {
  left: number;
  top: number;
  width: number;
  height: number;
}

export interface Drawn {
  width: number;
  height: number;
  /** Boxes and frames by slot. */
  places: Map<string, Rectangle>;
  lines: { line: Line; points: Point[]; label: string; at: Point | null }[];
}

interface Size {
  width: number;
  height: number;
}

export interface Point {
  x: number;
  y: number;
}

/** Sizes are fixed, so that a layout does not depend on fonts; what is too long is shortened by the box itself. */
const PLAIN = { width: 120, height: 54 };
const LOOKING = { width: 176, height: 122 };
const LABEL = { width: 6.8, height: 16 };
/** The height of a frame's header. */
export const HEADER = 38;
const MARGIN = 10;
/** More labels than this are not read. */
const MOST_LABELS = 40;

function sizeOf(box: Box): Size {
  return box.attention ? LOOKING : PLAIN;
}

export function heightOf(box: Box): number {
  return sizeOf(box).height;
}

/**
 * A layout for what is in sight: free where that is no wider than the room, else one box under another. The same slots and lines
 * give the same layout, so it is worth keeping: see `key`.
 */
export function layout(boxes: Box[], lines: Line[], room = Infinity): Drawn {
  const drawn = free(boxes, lines);
  if (drawn.width <= room) return drawn;
  const tops = new Map([...drawn.places].map(([slot, place]) => [slot, place.top]));
  return stacked(boxes, lines, labelled(lines), room, tops);
}

function free(boxes: Box[], lines: Line[]): Drawn {
  const graph = new dagre.graphlib.Graph({ compound: true, multigraph: false });
  graph.setGraph({ rankdir: "TB", nodesep: 14, ranksep: 22, edgesep: 8, marginx: MARGIN, marginy: MARGIN });
  graph.setDefaultEdgeLabel(() => ({}));
  const add = (box: Box, parent: string | null): void => {
    graph.setNode(box.slot, box.inside.length > 0 ? {} : { ...sizeOf(box) });
    if (parent !== null) graph.setParent(box.slot, parent);
    for (const each of box.inside) add(each, box.slot);
  };
  for (const box of boxes) add(box, null);
  const labels = labelled(lines);
  lines.forEach((line, at) => {
    const size = labels[at] ? { width: labels[at].length * LABEL.width, height: LABEL.height } : {};
    graph.setEdge(line.start, line.end, { ...size, labelpos: "c" });
  });
  dagre.layout(graph);
  return readOut(graph, boxes, lines, labels);
}

/** What a layout depends on. */
export function key(boxes: Box[], lines: Line[]): string {
  const all = every(boxes).map((box) => [box.slot, box.inside.length > 0, box.attention !== null]);
  return JSON.stringify([all, lines.map((line) => [line.start, line.end, shapeLabel(line)])]);
}

/** The shape on each line. What a box sends to several is named once, and only so many are named at all. */
export function labelled(lines: Line[]): string[] {
  const said = new Set<string>();
  return lines.map((line) => {
    const label = shapeLabel(line);
    const name = `${line.start} ${label}`;
    if (said.has(name) || said.size >= MOST_LABELS) return "";
    said.add(name);
    return label;
  });
}

function shapeLabel(line: Line): string {
  return line.shapes[0] ? shape(line.shapes[0]) : "";
}

/** A shape in words: 1 × 9 × 512. */
export function shape(sizes: number[]): string {
  return sizes.join(" × ");
}

type Graph = InstanceType<typeof dagre.graphlib.Graph>;

/** dagre gives middles and leaves no room for a frame's header: everything below the top of a frame moves down by one. */
function readOut(graph: Graph, boxes: Box[], lines: Line[], labels: string[]): Drawn {
  const all = every(boxes);
  const raw = new Map(all.map((box) => [box.slot, corner(graph.node(box.slot) as Point & Size)]));
  const tops = all.filter((box) => box.inside.length > 0).map((box) => raw.get(box.slot)!.top);
  const headers = [...new Set(tops)].sort((left, right) => left - right);
  const down = (y: number): number => y + HEADER * headers.filter((top) => top < y).length;
  const places = new Map(all.map((box) => [box.slot, lowered(raw.get(box.slot)!, down, box.inside.length > 0)]));
  const drawn = lines.map((line, at) => {
    const edge = graph.edge(line.start, line.end) as { points: Point[]; x?: number; y?: number };
    const points = edge.points.map((point) => ({ x: point.x, y: down(point.y) }));
    const middle = labels[at] && edge.x !== undefined && edge.y !== undefined ? { x: edge.x, y: down(edge.y) } : null;
    return { line, points: joined(points, places.get(line.start)!, places.get(line.end)!), label: labels[at]!, at: middle };
  });
  const { width, height } = graph.graph() as Size;
  return { width, height: down(height), places, lines: drawn };
}

function corner(of: Point & Size): Rectangle {
  return { left: of.x - of.width / 2, top: of.y - of.height / 2, width: of.width, height: of.height };
}

/** A frame grows by the headers inside it, a box only moves. */
function lowered(place: Rectangle, down: (y: number) => number, frame: boolean): Rectangle {
  const top = down(place.top);
  return { ...place, top, height: frame ? down(place.top + place.height) - top : place.height };
}

/** A line begins and ends at the border of its boxes, wherever those have moved. */
function joined(points: Point[], start: Rectangle, end: Rectangle): Point[] {
  const falling = start.top < end.top;
  const first = { x: points[0]!.x, y: falling ? start.top + start.height : start.top };
  const last = { x: points.at(-1)!.x, y: falling ? end.top : end.top + end.height };
  return [first, ...points.slice(1, -1), last];
}
