// What a view shows, as SVG: its pictures, drawings, coloured tokens and words where they stand on the page; its controls left out.

import { escape, round } from "./pen";

/** Controls say nothing about the attention. */
const CONTROLS = "input, select, option, label, .lines-choices, .overlay-places, .overlay-options > button, .passage-pages, .table-pages, .visually-hidden, title, [hidden]";

export function contents(): { svg: string; width: number; height: number } | null {
  const root = document.querySelector<HTMLElement>("#link-view > div");
  if (!root) return null;
  const frame = root.getBoundingClientRect();
  const shapes: string[] = [];
  let [top, bottom] = [Infinity, 0];
  const place = (box: DOMRect) => {
    top = Math.min(top, box.top - frame.top);
    bottom = Math.max(bottom, box.bottom - frame.top);
    return `x="${round(box.left - frame.left)}" y="${round(box.top - frame.top)}" width="${round(box.width)}" height="${round(box.height)}"`;
  };
  for (const element of [root, ...root.querySelectorAll<HTMLElement | SVGSVGElement>("*")]) {
    if (element.closest(CONTROLS) || (element instanceof SVGElement && !(element instanceof SVGSVGElement))) continue;
    const box = clipped(element, root);
    if (!box) continue;
    if (element instanceof HTMLCanvasElement) shapes.push(`<image ${place(box)} preserveAspectRatio="none" href="${element.toDataURL("image/png")}"/>`);
    else if (element instanceof SVGSVGElement) shapes.push(drawing(element, box, place(box)));
    else if (filled(element)) shapes.push(ground(element, place(box)));
  }
  const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) shapes.push(...words(node as Text, root, frame, (high, low) => ([top, bottom] = [Math.min(top, high), Math.max(bottom, low)])));
  if (bottom === 0) return null;
  return { svg: `<g transform="translate(0 ${round(-top)})">${shapes.join("")}</g>`, width: frame.width, height: bottom - top };
}

/** The part of an element that is in sight; null where none is. */
function clipped(element: Element, root: Element): DOMRect | null {
  const box = element.getBoundingClientRect();
  let [left, top, right, bottom] = [box.left, box.top, box.right, box.bottom];
  for (let outer = element.parentElement; outer && outer !== root.parentElement; outer = outer.parentElement) {
    if (getComputedStyle(outer).overflow === "visible") continue;
    const room = outer.getBoundingClientRect();
    [left, top, right, bottom] = [Math.max(left, room.left), Math.max(top, room.top), Math.min(right, room.right), Math.min(bottom, room.bottom)];
  }
  return right - left > 1 && bottom - top > 1 ? new DOMRect(left, top, right - left, bottom - top) : null;
}

function filled(element: Element): boolean {
  return !/^rgba\(.*, 0\)$|^transparent$/.test(getComputedStyle(element).backgroundColor);
}

function ground(element: Element, place: string): string {
  const { backgroundColor, borderTopLeftRadius } = getComputedStyle(element);
  return `<rect ${place} rx="${parseFloat(borderTopLeftRadius) || 0}" fill="${backgroundColor}"/>`;
}

const STYLES = ["fill", "stroke", "stroke-width", "stroke-dasharray", "opacity"];

/** A drawing of the page; what its classes mean is written out, and what is out of sight is cut off. */
function drawing(element: SVGSVGElement, box: DOMRect, place: string): string {
  const copy = element.cloneNode(true) as SVGSVGElement;
  const [from, to] = [element.querySelectorAll<SVGElement>("*"), copy.querySelectorAll<SVGElement>("*")];
  from.forEach((each, at) => {
    const style = getComputedStyle(each);
    for (const name of STYLES) to[at]!.style.setProperty(name, style.getPropertyValue(name));
  });
  const whole = element.getBoundingClientRect();
  copy.removeAttribute("style");
  copy.setAttribute("x", round(whole.left - box.left));
  copy.setAttribute("y", round(whole.top - box.top));
  copy.setAttribute("width", round(whole.width));
  copy.setAttribute("height", round(whole.height));
  return `<svg ${place} overflow="hidden">${new XMLSerializer().serializeToString(copy)}</svg>`;
}

/** The words of a text node, line by line as the browser broke them. */
function words(node: Text, root: Element, frame: DOMRect, reaches: (top: number, bottom: number) => void): string[] {
  const parent = node.parentElement;
  if (!parent || !node.data.trim() || parent.closest(CONTROLS) || parent.closest("svg") || !clipped(parent, root)) return [];
  const style = getComputedStyle(parent);
  const size = parseFloat(style.fontSize);
  return lines(node).map(({ text, box }) => {
    reaches(box.top - frame.top, box.bottom - frame.top);
    const at = `x="${round(box.left - frame.left)}" y="${round(box.top - frame.top + (box.height + size * 0.72) / 2)}"`;
    return `<text ${at} font-size="${size}" font-weight="${style.fontWeight}" font-family="${escape(style.fontFamily)}" fill="${style.color}" xml:space="preserve">${escape(text)}</text>`;
  });
}

function lines(node: Text): { text: string; box: DOMRect }[] {
  const range = document.createRange();
  range.selectNodeContents(node);
  if (range.getClientRects().length <= 1) return range.getClientRects()[0] ? [{ text: node.data, box: range.getBoundingClientRect() }] : [];
  const found: { text: string; box: DOMRect }[] = [];
  for (const [at, letter] of [...node.data].map((each, place, all): [number, string] => [all.slice(0, place).join("").length, each])) {
    range.setStart(node, at);
    range.setEnd(node, at + letter.length);
    const box = range.getClientRects()[0];
    if (!box) continue;
    const last = found.at(-1);
    if (last && Math.abs(last.box.top - box.top) < box.height / 2) {
      last.text += letter;
      last.box = new DOMRect(last.box.left, last.box.top, box.right - last.box.left, last.box.height);
    } else if (letter.trim()) found.push({ text: letter, box });
  }
  return found;
}
