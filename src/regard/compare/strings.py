"""Texts of the page in English and Simplified Chinese. Both are in the page, and one is shown."""

from html import escape

from regard.compare.outcome import Column, State

FIGURES = {
    "bleu": ("BLEU", "BLEU"),
    "chrf": ("chrF", "chrF"),
    "wer": ("word errors", "词错误率"),
    "cer": ("letter errors", "字符错误率"),
    "per": ("phone errors", "音素错误率"),
    "exact": ("exact", "完全匹配"),
    "loss": ("loss", "损失"),
    "perplexity": ("perplexity", "困惑度"),
    "parameters": ("parameters", "参数量"),
    "seconds": ("seconds", "用时（秒）"),
    "tokens_per_second": ("tokens/s", "词元/秒"),
}
"""Names of metrics; a metric that is not here has its own name."""
PARTS = {"valid": ("valid", "验证集"), "test": ("test", "测试集")}
STATES: dict[State, tuple[str, str]] = {
    "done": ("trained", "已训练"),
    "failed": ("failed", "失败"),
    "impossible": ("cannot be built", "无法构建"),
    "waiting": ("not trained yet", "尚未训练"),
}
SPREAD = (
    "± is the standard deviation over the seeds, and each dot is one of them; a cell that has fewer says how many. The bar "
    "is the mean. ★ is the best mean of its group. ≈ differs from it by no more than √(s₁² + s₂²), the standard deviation "
    "of a difference between two trainings: these seeds do not distinguish the two.",
    "± 为各随机种子的标准差，每个点是一个种子；种子较少的格内注明个数。竖线为均值。"
    "★ 为组内最佳均值。≈ 与最佳之差不超过 √(s₁² + s₂²)，"
    "即两次训练之差的标准差：凭这些种子无法区分二者。",
)
ONCE = (
    "Each was trained once, so what a seed changes is not known, and a difference may be chance: --seeds 3 shows it. The "
    "dot is the figure, the line its 95 % interval over sentences; ★ is the best of its group.",
    "每种组合只训练了一次，种子的影响未知，差异可能出于偶然：用 --seeds 3 可以看到。"
    "点为数值，线为按句重采样的 95 % 区间；★ 为组内最佳。",
)


def both(english: str, chinese: str) -> str:
    """Markup of a text in both languages, of which one is shown."""
    return f'<span class="en" lang="en">{english}</span><span class="zh" lang="zh-CN">{chinese}</span>'


def figure(column: Column, parts: bool) -> tuple[str, str]:
    """Name of a metric in both languages, with its data set where there are two."""
    english, chinese = FIGURES.get(column.name, (column.name, column.name))
    if parts and column.part:
        part = PARTS[column.part]
        english, chinese = f"{part[0]} {english}", f"{part[1]} {chinese}"
    return escape(english), escape(chinese)
