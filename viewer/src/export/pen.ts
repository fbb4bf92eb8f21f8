// A pen that writes SVG where a canvas would be painted: names, ticks and bars of the heat map stay text and shapes.

export function escape(text: string): string {
  // Characters that XML has no place for are left out.
  const clean = text.replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g, "");
  return clean.replace(/[&<>"']/g, (letter) => `&#${letter.charCodeAt(0)};`);
}

const ANCHORS: Record<string, string> = { left: "start", start: "start", center: "middle", right: "end", end: "end" };
const BASELINES: Record<string, string> = { middle: "central", top: "hanging", bottom: "text-after-edge", alphabetic: "auto" };

/** The part of CanvasRenderingContext2D that the edges of the heat map use. */
export class SvgPen {
  font = "11px sans-serif";
  textAlign = "left";
  textBaseline = "alphabetic";
  fillStyle = "#000";
  strokeStyle = "#000";
  lineWidth = 1;
  private dash: number[] = [];
  private path = "";
  private readonly parts: string[] = [];
  private readonly ruler = document.createElement("canvas").getContext("2d");
  private readonly depths: number[] = [];
  private open = 0;

  /** Everything that was drawn. */
  toString(): string {
    return this.parts.join("");
  }

  measureText(text: string): { width: number } {
    if (!this.ruler) return { width: text.length * 6 };
    this.ruler.font = this.font;
    return this.ruler.measureText(text);
  }

  fillText(text: string, x: number, y: number): void {
    const [size, family] = fontOf(this.font);
    const place = `x="${round(x)}" y="${round(y)}" text-anchor="${ANCHORS[this.textAlign] ?? "start"}" dominant-baseline="${BASELINES[this.textBaseline] ?? "auto"}"`;
    this.parts.push(`<text ${place} font-size="${size}" font-family="${escape(family)}" fill="${this.fillStyle}" xml:space="preserve">${escape(text)}</text>`);
  }

  fillRect(x: number, y: number, width: number, height: number): void {
    if (width <= 0 || height <= 0) return;
    this.parts.push(`<rect x="${round(x)}" y="${round(y)}" width="${round(width)}" height="${round(height)}" fill="${this.fillStyle}"/>`);
  }

  strokeRect(x: number, y: number, width: number, height: number): void {
    this.parts.push(
      `<rect x="${round(x)}" y="${round(y)}" width="${round(width)}" height="${round(height)}" fill="none" stroke="${this.strokeStyle}" stroke-width="${this.lineWidth}"/>`,
    );
  }

  beginPath(): void {
    this.path = "";
  }

  moveTo(x: number, y: number): void {
    this.path += `M${round(x)} ${round(y)}`;
  }

  lineTo(x: number, y: number): void {
    this.path += `L${round(x)} ${round(y)}`;
  }

  stroke(): void {
    const dash = this.dash.length > 0 ? ` stroke-dasharray="${this.dash.join(" ")}"` : "";
    this.parts.push(`<path d="${this.path}" fill="none" stroke="${this.strokeStyle}" stroke-width="${this.lineWidth}"${dash}/>`);
  }

  setLineDash(dash: number[]): void {
    this.dash = dash;
  }

  save(): void {
    this.depths.push(this.open);
  }

  translate(x: number, y: number): void {
    this.group(`translate(${round(x)} ${round(y)})`);
  }

  rotate(angle: number): void {
    if (angle !== 0) this.group(`rotate(${round((angle * 180) / Math.PI)})`);
  }

  restore(): void {
    const until = this.depths.pop() ?? 0;
    while (this.open > until) [this.open] = [this.open - 1, this.parts.push("</g>")];
  }

  private group(transform: string): void {
    this.parts.push(`<g transform="${transform}">`);
    this.open += 1;
  }
}

function fontOf(font: string): [string, string] {
  const found = /([\d.]+)px\s*(?:\/\S+)?\s+(.*)$/.exec(font);
  return found ? [found[1]!, found[2]!] : ["11", "sans-serif"];
}

export function round(value: number): string {
  return String(Math.round(value * 100) / 100);
}
