// The words of the curves.

import type { Words } from "../strings";

export const time = {
  "time.title": ["Time: how strong it was", "时间：强弱如何"],
  "time.received": ["Received", "所受注意"],
  "time.received.is": [
    "What each key receives from all queries, divided by what even attention would give it. Below 1: under-attended; above 1: over-attended.",
    "每个键从全部查询得到的注意，除以均匀注意时应得的份额。小于 1：关注不足；大于 1：关注过多。",
  ],
  "time.largest": ["Sharpness: largest weight", "集中度：最大权重"],
  "time.largest.is": ["The largest weight of each query: 1 when one key has it all.", "每个查询的最大权重：只看一个键时为 1。"],
  "time.effective": ["Sharpness: effective keys", "集中度：有效键数"],
  "time.effective.is": [
    "Over how many keys each query spreads, exp(entropy): 1 is decided, all keys is diffuse.",
    "每个查询实际分散到多少个键，即 exp(熵)：1 表示果断，等于键数表示分散。",
  ],
  "time.focus": ["Focus path", "焦点路径"],
  "time.focus.is": [
    "The mean key position of each query, plus or minus its spread. Rising: reads in order; flat: stays; falling: goes back.",
    "每个查询所看键的平均位置，加减其散布。上升：依次读；水平：停留；下降：回看。",
  ],
  "time.sink": ["Sink and special mass", "汇聚与特殊词元的占比"],
  "time.sink.is": [
    "The share of each query that lies on special tokens and punctuation: not looking at anything. Here: {sinks}.",
    "每个查询落在特殊词元和标点上的份额：相当于什么也没看。此处为：{sinks}。",
  ],
  "time.sink.none": ["No key is special here, so there is no curve.", "此处没有特殊的键，因此没有曲线。"],
  "time.sink.more": ["{list} and {count} more", "{list} 等另外 {count} 个"],
  "time.along.key": ["along the keys: {axis}", "沿键轴：{axis}"],
  "time.along.query": ["along the queries: {axis}", "沿查询轴：{axis}"],
  "time.mean": [
    "Mean of {heads} heads; sharpness is the mean of the heads' own values.",
    "{heads} 个头的平均；集中度取各头数值的平均。",
  ],
  "time.head": ["Head {head}.", "头 {head}。"],
  "time.about": ["At training step {step}: from weights kept in 256 steps, so about.", "训练第 {step} 步：由 256 级权重算出，为近似值。"],
  "time.unfilmed": [
    "The film has no weights of this attention; the curves are of the recorded model.",
    "影片没有此注意力的权重；曲线属于已记录的模型。",
  ],
  "time.quantity": ["The curves are always of the weights.", "曲线始终按权重计算。"],
  "time.band": ["Band: lowest to highest of {count} layers.", "色带：{count} 层中的最低到最高。"],
  "time.multiples": ["Each head by itself", "逐头显示"],
  "time.run": ["run {letter}", "运行 {letter}"],
  "time.range": ["Queries {first} to {last} are selected.", "已选查询 {first} 至 {last}。"],
  "time.clear": ["Clear the selection", "清除选择"],
  "time.loading": ["Reading the curves", "正在读取曲线"],
  "time.nothing": ["There is no attention in this example.", "此样例没有注意力。"],
  "time.unknown": ["not recorded", "未记录"],
  "time.keys": [
    "Arrows move the crosshair, Shift and arrows select a range, Escape clears it; drag to select.",
    "方向键移动十字线，Shift 加方向键选择范围，Escape 清除；也可拖动选择。",
  ],
  "time.layer": ["layer {layer}", "第 {layer} 层"],
  "time.value.received": ["{value} times its even share", "为均匀份额的 {value} 倍"],
  "time.value.largest": ["largest weight {value}", "最大权重 {value}"],
  "time.value.effective": ["{value} effective keys", "{value} 个有效键"],
  "time.value.focus": ["position {value} ± {spread}, near “{key}”", "位置 {value} ± {spread}，靠近“{key}”"],
  "time.value.sink": ["{value} % on special keys", "特殊词元占 {value} %"],
  "time.at": ["“{place}”: {value}", "“{place}”：{value}"],
  "time.found.flat": ["The same everywhere: {value}.", "处处相同：{value}。"],
  "time.found.received": [
    "Most received: “{most}”, {high} times its even share; least: “{least}”, {low} times.",
    "所受最多：“{most}”，为均匀份额的 {high} 倍；最少：“{least}”，{low} 倍。",
  ],
  "time.found.largest": [
    "Sharpest query: “{most}”, largest weight {high}; most diffuse: “{least}”, {low}; mean {mean}.",
    "最集中的查询：“{most}”，最大权重 {high}；最分散：“{least}”，{low}；平均 {mean}。",
  ],
  "time.found.effective": [
    "{mean} effective keys on average, from {low} (“{least}”) to {high} (“{most}”), out of {keys}.",
    "平均 {mean} 个有效键，从 {low}（“{least}”）到 {high}（“{most}”），共 {keys} 个键。",
  ],
  "time.found.focus": [
    "The focus goes forward or stays in {forward} of {steps} steps, and back most at “{most}”, by {back} positions.",
    "焦点在 {steps} 步中有 {forward} 步前进或停留；在“{most}”处回退最多，退 {back} 个位置。",
  ],
  "time.found.monotone": [
    "The focus never goes back: it moves from “{first}” to “{last}”.",
    "焦点从不回退：从“{first}”移到“{last}”。",
  ],
  "time.found.sink": [
    "{mean} % of the weight lies on special keys, most at “{most}”, {high} %.",
    "{mean} % 的权重落在特殊词元上，“{most}”处最多，{high} %。",
  ],
  "time.found.heads": [
    "{name} for each of {heads} heads; highest mean: head {most}, {high}; lowest: head {least}, {low}.",
    "{name}：共 {heads} 个头；平均最高：头 {most}，{high}；最低：头 {least}，{low}。",
  ],
  "time.found.peaks": [
    "{name} for each of {heads} heads; highest peak: head {most}, {high} times the even share; lowest peak: head {least}, {low}.",
    "{name}：共 {heads} 个头；峰值最高：头 {most}，为均匀份额的 {high} 倍；峰值最低：头 {least}，{low} 倍。",
  ],
} as const satisfies Words;
