// A picture of a panel: its canvases and drawings where they stand, on the page's paper.

/** PNG of everything drawn inside an element; null where nothing is. */
export async function pictureOf(element: HTMLElement): Promise<Blob | null> {
  const drawn = [...element.querySelectorAll<HTMLCanvasElement | SVGSVGElement>("canvas, svg")].filter(seen);
  if (drawn.length === 0) return null;
  const boxes = drawn.map((each) => each.getBoundingClientRect());
  const left = Math.min(...boxes.map((box) => box.left));
  const top = Math.min(...boxes.map((box) => box.top));
  // As fine as the screen: a canvas drawn larger than it is would only be blurred.
  const density = window.devicePixelRatio || 1;
  const canvas = document.createElement("canvas");
  canvas.width = Math.ceil((Math.max(...boxes.map((box) => box.right)) - left) * density);
  canvas.height = Math.ceil((Math.max(...boxes.map((box) => box.bottom)) - top) * density);
  const pen = canvas.getContext("2d")!;
  pen.fillStyle = getComputedStyle(document.body).backgroundColor;
  pen.fillRect(0, 0, canvas.width, canvas.height);
  pen.imageSmoothingEnabled = false;
  for (const [at, each] of drawn.entries()) {
    const box = boxes[at]!;
    const source = each instanceof HTMLCanvasElement ? each : await rendered(each, box);
    pen.drawImage(source, (box.left - left) * density, (box.top - top) * density, box.width * density, box.height * density);
  }
  return new Promise((done) => canvas.toBlob(done, "image/png"));
}

function seen(element: Element): boolean {
  const box = element.getBoundingClientRect();
  return box.width > 1 && box.height > 1;
}

/** A drawing as an image: its styles are written out, since outside the page its classes mean nothing. */
async function rendered(drawing: SVGSVGElement, box: DOMRect): Promise<HTMLImageElement> {
  const copy = drawing.cloneNode(true) as SVGSVGElement;
  const [from, to] = [drawing.querySelectorAll<SVGElement>("*"), copy.querySelectorAll<SVGElement>("*")];
  from.forEach((each, at) => {
    const style = getComputedStyle(each);
    for (const name of ["fill", "stroke", "stroke-width", "stroke-dasharray", "opacity", "font-family", "font-size"]) {
      to[at]!.style.setProperty(name, style.getPropertyValue(name));
    }
  });
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  copy.setAttribute("width", String(box.width));
  copy.setAttribute("height", String(box.height));
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(new XMLSerializer().serializeToString(copy))}`;
  await image.decode();
  return image;
}
