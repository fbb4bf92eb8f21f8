// A beam search as a tree that is known up to a step: who lives, who finished, who was given up.

import type { Beams } from "../payload";

export type Status = "best" | "alive" | "ended" | "pruned";

export interface Node {
  step: number;
  row: number;
  token: string;
  score: number;
  /** Its row in the step before; null in the first step. */
  parent: number | null;
  ended: boolean;
  status: Status;
}

/** What is drawn at most: boxes of one step below one another, and boxes in all. */
export const ROWS = 64;
const BOXES = 320;
const STEPS = 16;

/** Whether there is anybody in a row. */
export function exists(beams: Beams, step: number, row: number): boolean {
  return (beams.parents[step]?.[row] ?? -1) >= 0;
}

/** The nodes up to step `now`, step by step; rows that are empty are left out. */
export function grown(beams: Beams, now: number): Node[][] {
  const last = Math.min(now, beams.parents.length - 1);
  const kept = survivors(beams, last);
  const best = bestPath(beams);
  return beams.parents.slice(0, last + 1).map((parents, step) =>
    parents.flatMap((parent, row): Node[] => {
      if (parent < 0) return [];
      const ended = beams.ended[step]![row]!;
      const status = best[step] === row ? "best" : ended ? "ended" : kept[step]!.has(row) ? "alive" : "pruned";
      const score = beams.scores[step]![row]!;
      return [{ step, row, token: beams.tokens[step]![row]!, score, parent: step === 0 ? null : parent, ended, status }];
    }),
  );
}

/** Rows of each step that lead to one that lives at step `last`, or to one that finished before. */
function survivors(beams: Beams, last: number): Set<number>[] {
  const kept: Set<number>[] = Array.from({ length: last + 1 }, () => new Set());
  for (let step = last; step >= 0; step -= 1) {
    beams.parents[step]!.forEach((parent, row) => {
      if (parent < 0 || !(step === last || kept[step]!.has(row) || beams.ended[step]![row])) return;
      kept[step]!.add(row);
      if (step > 0) kept[step - 1]!.add(parent);
    });
  }
  return kept;
}

/** The row of each step on the way to the answer. */
export function bestPath(beams: Beams): number[] {
  return path(beams, ...beams.best);
}

/** The rows that lead to a node, from the first step to its own. */
export function path(beams: Beams, step: number, row: number): number[] {
  const rows: number[] = [];
  let here = row;
  for (let at = step; at >= 0; at -= 1) {
    rows.unshift(here);
    here = beams.parents[at]![here]!;
  }
  return rows;
}

/** The tokens that a node had written. */
export function written(beams: Beams, step: number, row: number): string[] {
  return path(beams, step, row).map((each, at) => beams.tokens[at]![each]!);
}

/** The first step that is drawn, so that a long search stays within bounds. */
export function firstShown(beams: Beams, now: number): number {
  const width = Math.min(ROWS, beams.parents[0]?.length ?? 1);
  const steps = Math.max(2, Math.min(STEPS, Math.floor(BOXES / width)));
  return Math.max(0, now + 1 - steps);
}

export interface Count {
  alive: number;
  ended: number;
  pruned: number;
}

/** Of the branches that nobody went on with: those that live at the last known step, those that finished, those given up. */
export function count(nodes: Node[][]): Count {
  const tips = nodes.flatMap((row, step) => {
    const goneOn = new Set(nodes[step + 1]?.map((node) => node.parent));
    return row.filter((node) => !goneOn.has(node.row));
  });
  const ended = tips.filter((node) => node.ended).length;
  const alive = tips.filter((node) => !node.ended && node.step === nodes.length - 1).length;
  return { alive, ended, pruned: tips.length - ended - alive };
}

/** The node that a key leads to; null where there is none. Up and down stay in a step. */
export function neighbour(nodes: Node[][], from: { step: number; row: number }, key: string): Node | null {
  const here = nodes[from.step] ?? [];
  const place = here.findIndex((node) => node.row === from.row);
  if (key === "ArrowUp") return here[place - 1] ?? null;
  if (key === "ArrowDown") return here[place + 1] ?? null;
  if (key === "ArrowLeft") return nodes[from.step - 1]?.find((node) => node.row === here[place]?.parent) ?? null;
  if (key !== "ArrowRight") return null;
  const children = nodes[from.step + 1]?.filter((node) => node.parent === from.row) ?? [];
  return children.find((node) => node.status === "best") ?? children.sort((left, right) => right.score - left.score)[0] ?? null;
}
