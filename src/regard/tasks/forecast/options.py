"""Command-line options of forecast, a literal that is read without an import: see `regard.registry.task_options`."""

OPTIONS = {
    "plot": {
        "commands": ("predict",),
        "help": "Plot the forecasts, their intervals and what they looked at (forecast): .png, .pdf or .svg.",
        "models": "models that forecast series (forecast)",
    },
    "explain": {
        "commands": ("predict",),
        "help": "Write why, as JSON: attention by lag and variable, checked by masking them (forecast).",
        "models": "models that forecast series (forecast)",
    },
    "levels": {
        "commands": ("predict",),
        "help": "Levels of the quantiles of a forecast, from 0.025 to 0.975.  [default: 0.1,0.9]",
        "models": "models that forecast series (forecast)",
    },
    "backtest": {
        "commands": ("evaluate",),
        "help": "Number of rolling origins, a horizon apart, up to the end of the table (forecast).",
        "models": "models that forecast series (forecast)",
    },
}
