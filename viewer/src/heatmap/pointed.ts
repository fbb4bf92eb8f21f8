// The cell that the pointer is at; the crosshair follows it until it leaves.

import { signal } from "@preact/signals";

export const pointed = signal<{ query: number; key: number } | null>(null);
