// Values as they stand in an address: how each is read, `undefined` where a text makes no sense, and how names are escaped.

import type * as store from "./store";
import type { Head, Pin, Window as Cells } from "./store";

export function number(text: string, least = 0, most = Number.MAX_SAFE_INTEGER): number | undefined {
  const found = /^-?\d+(\.\d+)?$/.test(text) ? Number(text) : NaN;
  return found >= least && found <= most ? found : undefined;
}

export function whole(text: string): number | undefined {
  return /^\d{1,9}$/.test(text) ? Number(text) : undefined;
}

export function among(place: number | undefined, count: number): number | undefined {
  return place !== undefined && place < count ? place : undefined;
}

export function numbers(text: string, count: number): number[] | undefined {
  const found = text.split(",").map((each) => number(each));
  return found.length === count && found.every((each) => each !== undefined) ? (found as number[]) : undefined;
}

export function oneOf<Value extends string>(...values: Value[]): (text: string) => Value | undefined {
  return (text) => values.find((each) => each === text);
}

export const head = (text: string): Head | undefined => (text === "mean" ? "mean" : whole(text));

export function cells(text: string): Cells | undefined {
  const found = numbers(text, 4);
  return found && found[0]! < found[2]! && found[1]! < found[3]! ? (found as Cells) : undefined;
}

export function span(text: string): [number, number] | undefined {
  const [first, end] = text.split(",").map(whole);
  return first !== undefined && end !== undefined && first < end ? [first, end] : undefined;
}

/** "decoder.0.cross:3,decoder.1.cross:mean"; names may hold anything, so commas and percent signs in them are escaped. */
export function pins(text: string): Pin[] | undefined {
  const found = text.split(",").slice(0, 64).map((each) => {
    const at = each.lastIndexOf(":");
    const pinned = head(each.slice(at + 1));
    return at > 0 && pinned !== undefined ? { attention: unescaped(each.slice(0, at)), head: pinned } : undefined;
  });
  return found.every((each) => each !== undefined) ? (found as Pin[]) : undefined;
}

export const STATISTICS = ["entropy", "sink", "distance", "diagonality", "alignment"] as const;

/** "encoder:1,decoder.0:0": boxes that were opened and closed. */
export function folded(text: string): Record<string, boolean> | undefined {
  const found = text.split(",").slice(0, 256).map((each) => /^(.+):([01])$/.exec(each));
  if (!found.every((each) => each !== null)) return undefined;
  return Object.fromEntries(found.map((each) => [unescaped(each[1]!), each[2] === "1"]));
}

export function ordered(text: string): store.TableOrder | undefined {
  const [name, falling] = text.split(":");
  const column = (["place", "label", "largest", "shown"] as const).find((each) => each === name);
  return column && (falling === "0" || falling === "1") ? { column, falling: falling === "1" } : undefined;
}

export const escaped = (name: string): string => name.replace(/[%,:]/g, (letter) => `%${letter.charCodeAt(0).toString(16)}`);
export const unescaped = (name: string): string => name.replace(/%(25|2c|3a)/g, (_, code: string) => String.fromCharCode(parseInt(code, 16)));
export const brief = (value: number): string => String(Math.round(value * 100) / 100);

/** "0,3,5": different heads, lowest first. */
export function heads(text: string): number[] | undefined {
  const found = text.split(",").slice(0, 256).map(whole);
  return found.every((each) => each !== undefined) ? [...new Set(found as number[])].sort((one, other) => one - other) : undefined;
}

/** "0,1": from the first sentence to the second. */
export function pair(text: string): [number, number] | undefined {
  const found = text.split(",").map(whole);
  return found.length === 2 && found.every((each) => each !== undefined && each < 26) ? (found as [number, number]) : undefined;
}

/** "one", "largest", or a number above 0. */
export function reach(text: string): store.Reach | undefined {
  const value = /^\d+(\.\d+)?(e-\d+)?$/.test(text) ? Number(text) : NaN;
  return oneOf("one", "largest")(text) ?? (value > 0 && value < 1e6 ? value : undefined);
}

export const statistic = oneOf(...STATISTICS);

/** "entropy.up": by entropy, lowest first. */
export function headsOrder(text: string): (typeof store.headsOrder)["value"] | undefined {
  const [name = "", direction = ""] = text.split(".");
  const found = statistic(name);
  return found && ["up", "down"].includes(direction) ? { statistic: found, rising: direction === "up" } : undefined;
}

/** "entropy.most.1.25": heads with an entropy of at most 1.25. */
export function headsFilter(text: string): store.HeadsFilter | undefined {
  const [name = "", side = "", ...rest] = text.split(".");
  const [found, bound, value] = [statistic(name), oneOf("least", "most")(side), number(rest.join("."), -1e9, 1e9)];
  return found && bound && value !== undefined ? { statistic: found, bound, value } : undefined;
}
