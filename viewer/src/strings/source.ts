import type { Words } from "../strings";

/** The English is that of src/regard/viewer/source.py, which a test in a browser holds it to. */
export const source = {
  sourceBetween: ["; ", "；"],
  sourceGiven: ["given", "直接给出"],
  sourceItself: ["the attention itself, which forms its weights", "注意力自身，它会形成权重"],
  sourceAgain: ["reference, asked once more, since the way it ran keeps no weights", "参考实现重算一遍，因为实际运行的方式不保留权重"],
  sourceTransformers: ["weights as transformers returned them", "transformers 返回的权重"],
  sourceEightBits: ["about: stored in 8 bits", "近似：以 8 位存储"],
  sourceReference: ["reference, which forms its weights", "参考实现，它会形成权重"],
  sourceMeasured: ["reference, statistics from its own pass", "参考实现，统计量来自其自身的计算"],
  sourceFused: ["fused kernel {name}, which forms its weights", "融合内核 {name}，它会形成权重"],
  sourceInstead: ["reference, since the fused kernel {name} keeps no weights", "参考实现，因为融合内核 {name} 不保留权重"],
  sourceMeasuredBy: ["fused kernel {name}, statistics from its own pass", "融合内核 {name}，统计量来自其自身的计算"],
  sourceRows: ["rows recomputed in {name} from recorded queries and keys", "由记录的查询和键以 {name} 重新计算的行"],
} as const satisfies Words;
