// A tensor of the page inside a component: null until it has been unpacked.

import { useEffect, useState } from "preact/hooks";
import type { Ref } from "../payload";
import { type Numbers, tensor } from "../tensors";

export function useTensor(ref: Ref | null): Numbers | null {
  const [numbers, set] = useState<{ of: Ref; numbers: Numbers } | null>(null);
  useEffect(() => {
    let wanted = true;
    if (ref) void tensor(ref).then((found) => wanted && set({ of: ref, numbers: found }));
    return () => {
      wanted = false;
    };
  }, [ref]);
  return numbers && numbers.of === ref ? numbers.numbers : null;
}
