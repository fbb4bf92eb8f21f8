import type { Words } from "../strings";

export const network = {
  networkTitle: ["Network", "网络"],
  networkHint: [
    "Arrows go from box to box, Enter selects an attention or opens a module, ×n unfolds layers that are alike.",
    "方向键在方框间移动，回车选择注意力或展开模块，×n 展开结构相同的层。",
  ],
  networkFinding: [
    "Where: {path}. It reads {key} ({keys}) for {query} ({queries}) with {heads}; one of {attentions} attentions in {modules} modules.",
    "位置：{path}。它为 {query}（{queries}）读取 {key}（{keys}），共 {heads}；是 {modules} 个模块中 {attentions} 个注意力之一。",
  ],
  networkEnds: [
    "Most decided: {sharp}, {few} keys a query; most spread: {diffuse}, {many}.",
    "最集中：{sharp}，每个查询约 {few} 个键；最分散：{diffuse}，约 {many} 个。",
  ],
  networkSpread: ["reads {value} of {keys}", "约读 {value} / {keys}"],
  networkFindingArrays: [
    "Attentions: {attentions}; the network around them was not recorded. Selected: {name}, queries: {queries}, keys: {keys}, heads: {heads}.",
    "{attentions} 个注意力；未记录它们所在的网络。当前：{name}，{heads} 个头，{queries} 个查询 × {keys} 个键。",
  ],
  networkNoAttention: ["Modules: {modules}, attentions: none.", "{modules} 个模块，没有注意力。"],
  networkEmpty: ["This trace has no network.", "此记录不含网络。"],
  networkLarger: ["Draw the network larger", "放大网络图"],
  networkSmaller: ["Draw the network smaller", "缩小网络图"],
  networkFit: ["Fit the network to its panel", "使网络图适合面板"],
  networkDefault: ["Fold the network as at first", "恢复网络的初始折叠"],
  networkUnfold: ["Unfold {count} layers like {name}", "展开 {count} 个与 {name} 相同的层"],
  networkFold: ["Fold {count} layers {name}", "折叠 {count} 个 {name} 层"],
  networkStack: ["{name}, {count} alike", "{name}，{count} 个相同"],
  networkClose: ["Close {name}", "收起 {name}"],
  networkHeads: ["{count} heads", "{count} 个头"],
  networkOneHead: ["1 head", "1 个头"],
  networkAxis: ["axis of {length}", "长度 {length} 的轴"],
  networkParameters: ["{count} parameters", "{count} 个参数"],
  networkGives: ["gives {shape}", "输出 {shape}"],
  networkReads: ["reads {list}", "读取 {list}"],
  networkHolds: ["holds the selected attention", "包含当前注意力"],
  networkTimes: ["one of {count} alike", "{count} 个相同模块之一"],
  networkFoldAction: ["Unfold or fold the layers of the selected attention", "展开或折叠当前注意力所在的层"],
} as const satisfies Words;
