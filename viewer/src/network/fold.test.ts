import { describe, expect, it } from "vitest";
import type { Attention, GraphEdge, GraphNode } from "../payload";
import { every, MOST_BOXES, opened, sight, type Box } from "./fold";
import { complete, tree } from "./tree";

function node(id: string, parent: string | null, kind = "linear"): GraphNode {
  return { id, kind, parent, inputs: {}, output: [1, 9, 16], parameters: 3, about: kind === "attention" ? { score: "dot" } : {} };
}

function attention(id: string, query = "target", key = "source"): Attention {
  return { id, query, key, layer: 0, heads: 2, queries: 3, keys: 4 } as Attention;
}

function edge(start: string, end: string, role = ""): GraphEdge {
  return { start, end, shape: [1, 9, 16], role };
}

/** A model of so many layers, each a self-attention and a feed-forward part, with an output after them. */
function layered(count: number) {
  const nodes = [node("layers", null), node("output", null)];
  const edges: GraphEdge[] = [];
  const attentions: Attention[] = [];
  for (let layer = 0; layer < count; layer += 1) {
    const path = `layers.${layer}`;
    nodes.push(node(path, "layers", "layer"), node(`${path}.self`, path, "attention"), node(`${path}.feed`, path));
    attentions.push(attention(`${path}.self`));
    edges.push(edge(`${path}.self`, `${path}.feed`));
    if (layer > 0) edges.push(edge(`layers.${layer - 1}.feed`, `${path}.self`));
  }
  edges.push(edge(`layers.${count - 1}.feed`, "output"));
  return { network: { nodes, edges }, attentions };
}

function look(count: number, folds: Record<string, boolean> = {}, selected = "") {
  const { network, attentions } = layered(count);
  return sight(tree(network, attentions), network.edges, folds, selected);
}

function names(boxes: Box[]): string[] {
  return every(boxes).map((box) => (box.times > 1 ? `${box.name} x${box.times}` : box.name));
}

describe("layers that are alike", () => {
  it("are one, with their number on it, and it is open so that its attention is in sight", () => {
    expect(names(look(6).boxes)).toEqual(["layers", "layers.0 x6", "self", "feed", "output"]);
  });

  it("are shown by the one with the selected attention", () => {
    const found = look(6, {}, "layers.4.self");
    expect(names(found.boxes)).toEqual(["layers", "layers.4 x6", "self", "feed", "output"]);
    expect(every(found.boxes).find((box) => box.name === "self")!.attention!.id).toBe("layers.4.self");
  });

  it("keep their places whichever is shown, so that the layout stays", () => {
    const slots = (selected: string) => every(look(6, {}, selected).boxes).map((box) => box.slot);
    expect(slots("layers.4.self")).toEqual(slots("layers.0.self"));
  });

  it("stand all there once they are unfolded", () => {
    const folded = look(3);
    const stack = every(folded.boxes).find((box) => box.times === 3)!.stack!;
    const layers = ["layers.0", "layers.1", "layers.2"].flatMap((name) => [name, "self", "feed"]);
    expect(names(look(3, { [stack]: true }).boxes)).toEqual(["layers", "layers.#", ...layers, "output"]);
  });

  it("are not put together where one looks another way", () => {
    const { network, attentions } = layered(3);
    network.nodes.find((each) => each.id === "layers.1.self")!.about = { score: "additive" };
    const found = sight(tree(network, attentions), network.edges, {}, "");
    expect(names(found.boxes).filter((name) => name.startsWith("layers."))).toEqual(["layers.0 x2", "layers.1"]);
  });

  it("have lines out of the stack and none between its layers while they are folded", () => {
    const { boxes, lines, slots } = look(6);
    const name = new Map(every(boxes).map((box) => [box.slot, box.name]));
    expect(lines.map((line) => [name.get(line.start), name.get(line.end)])).toEqual([["self", "feed"], ["feed", "output"]]);
    expect(slots.get("layers.5.feed")).toBe(slots.get("layers.0.feed"));
  });

  it("have lines between them once they are unfolded", () => {
    const stack = every(look(3).boxes).find((box) => box.times === 3)!.stack!;
    const { lines, slots } = look(3, { [stack]: true });
    expect(lines).toContainEqual({ start: slots.get("layers.0.feed"), end: slots.get("layers.1.self"), shapes: [[1, 9, 16]], roles: [] });
    expect(lines).toHaveLength(6);
  });
});

describe("the number of boxes", () => {
  it("never passes the most by itself, and layers open all or none", () => {
    for (const count of [2, 12, 24, 40, 200]) {
      expect(every(look(count).boxes).length).toBeLessThanOrEqual(MOST_BOXES + 5);
      const stack = every(look(count).boxes).find((box) => box.times === count)!.stack!;
      const unfolded = every(look(count, { [stack]: true }).boxes);
      const open = unfolded.filter((box) => box.node?.kind === "layer" && box.inside.length > 0).length;
      expect(open === 0 || open === count).toBe(true);
      expect(unfolded.length).toBeLessThanOrEqual(MOST_BOXES + 5);
    }
  });

  it("stays small where two hundred different modules stand in a row: they come in lots", () => {
    const letters = (at: number) => String.fromCharCode(97 + (at % 26), 97 + Math.floor(at / 26));
    const nodes = Array.from({ length: 200 }, (_, at) => node(letters(at), null));
    const found = sight(tree({ nodes, edges: [] }, []), [], {}, "");
    expect(found.boxes.map((box) => box.sort)).toEqual(["lot", "lot", "lot", "lot", "lot"]);
    expect(found.slots.size).toBe(200);
  });

  it("opens what was opened by hand however many there are, and closes what was closed", () => {
    const { network, attentions } = layered(2);
    const roots = tree(network, attentions);
    expect(opened(roots, { "0": false })).toEqual(new Set());
    expect(opened(roots, {}).has("0")).toBe(true);
  });

  it("leaves closed what holds no attention", () => {
    const nodes = [node("encoder", null), node("encoder.embed", "encoder"), node("cross", null, "attention")];
    expect(names(sight(tree({ nodes, edges: [] }, [attention("cross")]), [], {}, "").boxes)).toEqual(["encoder", "cross"]);
  });
});

describe("lines", () => {
  it("join what goes between the same two boxes, with every role", () => {
    const nodes = [node("encoder", null), node("cross", null, "attention")];
    const edges = [edge("encoder", "cross", "key"), edge("encoder", "cross", "value")];
    const found = sight(tree({ nodes, edges }, [attention("cross")]), edges, {}, "");
    expect(found.lines).toEqual([{ start: "0", end: "1", shapes: [[1, 9, 16]], roles: ["key", "value"] }]);
  });

  it("to a closed module's parts end at the module, and none goes from a box to itself", () => {
    const nodes = [node("embed", null), node("encoder", null), node("encoder.a", "encoder"), node("encoder.b", "encoder", "rnn")];
    const edges = [edge("embed", "encoder.a"), edge("encoder.a", "encoder.b")];
    const found = sight(tree({ nodes, edges }, []), edges, {}, "");
    expect(found.lines.map((line) => [line.start, line.end])).toEqual([["0", "1"]]);
  });

  it("into an open module go to its first box, out of it from its last", () => {
    const nodes = [node("embed", null), node("decoder", null), node("decoder.rnn", "decoder", "rnn"), node("decoder.cross", "decoder", "attention"), node("output", null)];
    const edges = [edge("embed", "decoder"), edge("decoder", "output")];
    const found = sight(tree({ nodes, edges }, [attention("decoder.cross")]), edges, {}, "");
    expect(found.lines.map((line) => [line.start, line.end])).toEqual([["0", "1/0"], ["1/1", "2"]]);
  });
});

describe("the tree", () => {
  it("leaves out one module that holds all others", () => {
    const nodes = [node("model", null), node("model.a", "model"), node("model.b", "model", "rnn")];
    expect(tree({ nodes, edges: [] }, []).map((branch) => branch.name)).toEqual(["a", "b"]);
  });

  it("shows an attention as one box, and attentions inside it beside it", () => {
    const nodes = [node("x", null, "attention"), node("x.query", "x"), node("x.inner", "x", "attention"), node("y", null)];
    expect(tree({ nodes, edges: [] }, [attention("x"), attention("x.inner")]).map((branch) => branch.name)).toEqual(["x", "inner", "y"]);
  });

  it("cuts a circle of parents", () => {
    const nodes = [node("a", "b"), node("b", "a", "rnn")];
    expect(tree({ nodes, edges: [] }, []).map((branch) => branch.name)).toEqual(["a", "b"]);
  });

  it("makes boxes of axes for attentions that no graph knows", () => {
    const axes = { source: { kind: "index", length: 4, labels: null }, target: { kind: "index", length: 3, labels: null } } as const;
    const attentions = [attention("read"), attention("self", "source", "source")];
    const made = complete({ nodes: [], edges: [] }, { title: "", axes, attentions, steps: [], beams: null });
    expect(made.nodes.map((each) => each.id)).toEqual(["axis:source", "axis:target", "read", "self"]);
    expect(made.edges.map((each) => [each.start, each.end, each.role])).toEqual([
      ["axis:source", "read", "key"],
      ["read", "axis:target", "query"],
      ["axis:source", "self", "query, key"],
    ]);
  });

  it("adds nothing where the graph knows every attention", () => {
    const graph = { nodes: [node("read", null, "attention")], edges: [] };
    expect(complete(graph, { title: "", axes: {}, attentions: [attention("read")], steps: [], beams: null })).toEqual(graph);
  });
});
