// The modules of a run as a tree: repeated layers stand together, long rows of children are cut into lots.

import type { Attention, Example, GraphEdge, GraphNode } from "../payload";

/** A module, a stack of modules that are alike, or a lot: neighbours put together because there are too many. */
export interface Branch {
  sort: "module" | "stack" | "lot";
  name: string;
  node: GraphNode | null;
  attention: Attention | null;
  children: Branch[];
  /** Equal where two branches have the same structure: kinds, sizes and names, numbers in names left out. */
  structure: number;
  /** Whether an attention is here or below. */
  holds: boolean;
}

export interface Network {
  nodes: GraphNode[];
  edges: GraphEdge[];
}

/** More children than this are shown in lots. */
const MOST_CHILDREN = 48;

/** The recorded graph, and boxes for attentions that it does not know, such as those given as arrays. */
export function complete(graph: Network, example: Example): Network {
  const known = new Set(graph.nodes.map((node) => node.id));
  const missing = example.attentions.filter((each) => !known.has(each.id));
  const used = new Set(missing.flatMap((each) => [each.key, each.query]));
  const axes = [...used].map((name) => axisNode(name, example.axes[name]?.length ?? 0));
  return {
    nodes: [...graph.nodes, ...axes, ...missing.map(attentionNode)],
    edges: [...graph.edges, ...missing.flatMap(attentionEdges)],
  };
}

/** Axes are no modules, so their ids must not meet a module's. */
export function axisId(name: string): string {
  return `axis:${name}`;
}

function axisNode(name: string, length: number): GraphNode {
  return { id: axisId(name), kind: "axis", parent: null, inputs: {}, output: [length], parameters: 0, about: {} };
}

function attentionNode(attention: Attention): GraphNode {
  const inputs = { query: [attention.queries], key: [attention.keys] };
  const about = { heads: attention.heads };
  return { id: attention.id, kind: "attention", parent: null, inputs, output: [attention.queries], parameters: 0, about };
}

/** Keys go in; what is read goes to the queries. An attention over its own axis only reads. */
function attentionEdges(attention: Attention): GraphEdge[] {
  const own = attention.query === attention.key;
  const read: GraphEdge = { start: axisId(attention.key), end: attention.id, shape: [attention.keys], role: own ? "query, key" : "key" };
  if (own) return [read];
  return [read, { start: attention.id, end: axisId(attention.query), shape: [attention.queries], role: "query" }];
}

/** The tree of a network: what has no parent here stands at the top. */
export function tree(network: Network, attentions: Attention[]): Branch[] {
  const byId = new Map(attentions.map((each) => [each.id, each]));
  const children = families(network.nodes);
  const grow = (node: GraphNode): Branch[] => {
    const below = (children.get(node.id) ?? []).flatMap(grow);
    const attention = byId.get(node.id) ?? null;
    // An attention is one box. The parts of it are not shown, unless other attentions are among them: those stand beside it.
    if (attention) return [branch("module", shortName(node), node, attention, []), ...below.filter((each) => each.holds)];
    return [branch("module", shortName(node), node, null, arrange(below))];
  };
  return within(arrange((children.get(null) ?? []).flatMap(grow)));
}

/** A frame around everything says nothing, so one module that holds all others is left out. */
function within(roots: Branch[]): Branch[] {
  const [only] = roots;
  return roots.length === 1 && only!.sort === "module" && only!.children.length > 0 ? within(only!.children) : roots;
}

/** The children of every node, those of nobody under null. A circle of parents is cut where it closes. */
function families(nodes: GraphNode[]): Map<string | null, GraphNode[]> {
  const byId = new Map(nodes.map((node) => [node.id, node]));
  const found = new Map<string | null, GraphNode[]>();
  for (const node of byId.values()) {
    const parent = node.parent !== null && byId.has(node.parent) && !circular(node, byId) ? node.parent : null;
    found.set(parent, [...(found.get(parent) ?? []), node]);
  }
  return found;
}

function circular(node: GraphNode, byId: Map<string, GraphNode>): boolean {
  const seen = new Set<string>();
  for (let at: GraphNode | undefined = node; at && at.parent !== null; at = byId.get(at.parent)) {
    if (seen.has(at.id)) return true;
    seen.add(at.id);
  }
  return false;
}

/** Put siblings that are alike into stacks, each where its first member stood, and cut what is still too long into lots. */
function arrange(siblings: Branch[]): Branch[] {
  const alike = new Map<number, Branch[]>();
  for (const each of siblings) {
    const members = alike.get(each.structure);
    if (members) members.push(each);
    else alike.set(each.structure, [each]);
  }
  return lots([...alike.values()].map((members) => (members.length > 1 ? stack(members) : members[0]!)));
}

function stack(members: Branch[]): Branch {
  return branch("stack", unnumbered(members[0]!.name), null, null, lots(members));
}

function lots(siblings: Branch[]): Branch[] {
  if (siblings.length <= MOST_CHILDREN) return siblings;
  const size = Math.ceil(siblings.length / Math.ceil(siblings.length / MOST_CHILDREN));
  const cut: Branch[] = [];
  for (let first = 0; first < siblings.length; first += size) {
    const members = siblings.slice(first, first + size);
    cut.push(branch("lot", `${members[0]!.name} … ${members.at(-1)!.name}`, null, null, members));
  }
  return lots(cut);
}

function branch(sort: Branch["sort"], name: string, node: GraphNode | null, attention: Attention | null, children: Branch[]): Branch {
  const holds = attention !== null || children.some((each) => each.holds);
  const own = [sort, unnumbered(name), node?.kind, node?.output, node?.about, attention && [attention.query, attention.key]];
  const structure = numberOf(JSON.stringify([own, children.map((each) => each.structure)]));
  return { sort, name, node, attention, children, structure, holds };
}

const structures = new Map<string, number>();

/** A number for each structure, so that what describes a whole model stays as short as what describes a leaf. */
function numberOf(description: string): number {
  const known = structures.get(description) ?? structures.size;
  structures.set(description, known);
  return known;
}

/** A module's own name: what its path says beyond its parent's. A bare number keeps the word before it: layers.0. */
function shortName(node: GraphNode): string {
  if (node.kind === "axis") return node.id.slice(axisId("").length);
  const inside = node.parent !== null && node.id.startsWith(`${node.parent}.`);
  const own = inside ? node.id.slice(node.parent!.length + 1) : node.id;
  return /^\d+$/.test(own) ? node.id.split(".").slice(-2).join(".") : own;
}

function unnumbered(name: string): string {
  return name.replace(/\d+/g, "#");
}

/** The members of a stack, or the children of anything else, lots taken apart. */
export function members(of: Branch): Branch[] {
  return of.children.flatMap((each) => (each.sort === "lot" ? members(each) : [each]));
}

/** Every recorded id here and below. */
export function ids(of: Branch): string[] {
  return [...(of.node ? [of.node.id] : []), ...of.children.flatMap(ids)];
}
