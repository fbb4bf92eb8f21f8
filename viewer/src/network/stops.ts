// Where the keyboard can stand in the network, and which place is next in a direction.

import { every, type Box } from "./fold";
import { HEADER, type Drawn, type Rectangle } from "./layout";

/** A button of the network: that of a box or frame, or the one that unfolds its layers. */
export interface Stop {
  id: string;
  place: Rectangle;
}

/** The side of the button that unfolds layers; a target of 24 pixels or more. */
export const BADGE = { width: 38, height: 34 };

export function unfoldId(slot: string): string {
  return `${slot} unfold`;
}

/** All stops, in reading order of the outline. */
export function stops(boxes: Box[], drawn: Drawn): Stop[] {
  return every(boxes).flatMap((box) => {
    const place = drawn.places.get(box.slot)!;
    const own: Stop = { id: box.slot, place: box.inside.length > 0 ? { ...place, height: HEADER } : place };
    return box.times > 1 ? [own, { id: unfoldId(box.slot), place: badge(place) }] : [own];
  });
}

/** The unfolding button sits on the upper right corner. */
export function badge(place: Rectangle): Rectangle {
  return { left: place.left + place.width - BADGE.width - 2, top: place.top + 2, ...BADGE };
}

const DIRECTIONS: Record<string, [number, number]> = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

/** The stop that a key leads to; null where the key is none of ours. At the border one stays. */
export function stepped(all: Stop[], from: string, pressed: string): string | null {
  if (pressed === "Home") return all[0]?.id ?? null;
  if (pressed === "End") return all.at(-1)?.id ?? null;
  const direction = DIRECTIONS[pressed];
  const here = all.find((each) => each.id === from);
  if (!direction || !here) return null;
  let best = { id: from, cost: Infinity };
  for (const each of all) {
    const cost = distance(here.place, each.place, direction);
    if (each !== here && cost < best.cost) best = { id: each.id, cost };
  }
  return best.id;
}

/** How far away in a direction; what is off to the side counts double, what is not in the direction is nowhere. */
function distance(from: Rectangle, to: Rectangle, [right, down]: [number, number]): number {
  const x = to.left + to.width / 2 - from.left - from.width / 2;
  const y = to.top + to.height / 2 - from.top - from.height / 2;
  const ahead = x * right + y * down;
  return ahead <= 0 ? Infinity : ahead + 2 * Math.abs(x * down + y * right);
}
