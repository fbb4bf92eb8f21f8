// Heads that are kept in sight: which they are, and the scale that they share.

import { action } from "../actions";
import type { Attention, Example } from "../payload";
import { current, head, pinned, type Head, type Pin } from "../store";
import { peak, rescale, type Picture } from "./picture";

/** More pictures than this are not compared at a glance. */
export const MOST_PINS = 12;

action({ id: "heads.pin", keys: ["P"], label: "headsPinAction", run: pinSelected });
action({ id: "heads.unpin", keys: ["U"], label: "headsUnpinAll", run: () => (pinned.value = []) });

function pinSelected(): void {
  if (current.value) toggle({ attention: current.value.id, head: head.value });
}

export function same(left: Pin, right: Pin): boolean {
  return left.attention === right.attention && left.head === right.head;
}

export function isPinned(pin: Pin): boolean {
  return pinned.value.some((each) => same(each, pin));
}

/** Pin a head, or unpin it; nothing where there is no room. */
export function toggle(pin: Pin): void {
  if (isPinned(pin)) pinned.value = pinned.value.filter((each) => !same(each, pin));
  else if (pinned.value.length < MOST_PINS) pinned.value = [...pinned.value, pin];
}

/** The pins that this example has: another may lack the attention, and a link may name what is not there. */
export function found(pins: Pin[], example: Example): { attention: Attention; head: Head }[] {
  return pins.flatMap((pin) => {
    const attention = example.attentions.find((each) => each.id === pin.attention);
    const there = attention && (pin.head === "mean" || pin.head < attention.heads);
    return there ? [{ attention, head: pin.head }] : [];
  });
}

/** Pictures on one scale, from 0 to the largest weight of them all, and that weight. */
export function shared(pictures: { picture: Picture; scale: number }[]): { pictures: Picture[]; most: number } {
  const most = Math.max(0, ...pictures.map((each) => peak(each.picture, each.scale)));
  const scale = most > 0 ? most : 1;
  return { pictures: pictures.map((each) => rescale(each.picture, each.scale, scale)), most };
}
