// Tensors in the page: gzip in base64, unpacked when they are first wanted and kept from then on.

import type { Kind, Ref } from "./payload";

export type Numbers = Uint8Array | Uint16Array | Uint32Array | Int32Array | Float32Array;

const unpacked = new Map<string, Promise<Numbers>>();

/** The numbers of a tensor, row by row; float16 comes as float32. */
export function tensor(ref: Ref): Promise<Numbers> {
  let found = unpacked.get(ref.data);
  if (!found) {
    found = unpack(ref);
    unpacked.set(ref.data, found);
  }
  return found;
}

/** Put numbers in place of a tensor of the page, for tests and for what is computed here. */
export function provide(id: string, numbers: Numbers): void {
  unpacked.set(id, Promise.resolve(numbers));
}

async function unpack(ref: Ref): Promise<Numbers> {
  const packed = document.getElementById(ref.data)?.textContent;
  if (packed === undefined || packed === null) throw new Error(`the page has no tensor ${ref.data}`);
  const bytes = decode(packed);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  const buffer = await new Response(stream).arrayBuffer();
  const wanted = ref.shape.reduce((left, right) => left * right, 1);
  const numbers = read(buffer, ref.dtype);
  if (numbers.length !== wanted) throw new Error(`tensor ${ref.data} has ${numbers.length} numbers, ${wanted} were named`);
  return numbers;
}

/** Bytes as numbers; the page and its writer both count from the small end. */
export function read(buffer: ArrayBuffer, kind: Kind): Numbers {
  switch (kind) {
    case "u8":
      return new Uint8Array(buffer);
    case "u16":
      return new Uint16Array(buffer);
    case "u32":
      return new Uint32Array(buffer);
    case "i32":
      return new Int32Array(buffer);
    case "f32":
      return new Float32Array(buffer);
    case "f16":
      return widen(new Uint16Array(buffer));
  }
}

let halves: Float32Array | undefined;

/** float16 to float32 through a table of all 65,536 of them. */
function widen(bits: Uint16Array): Float32Array {
  halves ??= Float32Array.from({ length: 65536 }, (_, half) => single(half));
  const wide = new Float32Array(bits.length);
  for (let at = 0; at < bits.length; at += 1) wide[at] = halves[bits[at]!]!;
  return wide;
}

function single(half: number): number {
  const sign = half & 0x8000 ? -1 : 1;
  const exponent = (half >> 10) & 31;
  const fraction = half & 1023;
  if (exponent === 0) return sign * fraction * 2 ** -24;
  if (exponent === 31) return fraction ? NaN : sign * Infinity;
  return sign * (1 + fraction / 1024) * 2 ** (exponent - 15);
}

/** Bytes of base64. Browsers that do it by themselves are three times as fast as a loop, and a loop ten times as `from`. */
function decode(packed: string): Uint8Array<ArrayBuffer> {
  const builtIn = (Uint8Array as { fromBase64?: (text: string) => Uint8Array<ArrayBuffer> }).fromBase64;
  if (builtIn) return builtIn.call(Uint8Array, packed);
  const letters = atob(packed);
  const bytes = new Uint8Array(letters.length);
  for (let at = 0; at < bytes.length; at += 1) bytes[at] = letters.charCodeAt(at);
  return bytes;
}
