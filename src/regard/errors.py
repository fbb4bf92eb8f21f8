"""Errors of the package. Each text stands alone: what was needed, what was there, and what to do."""


class TrainingError(RuntimeError):
    """A training that cannot go on."""


class RefusedError(TrainingError):
    """A training that must not begin: the directory holds something else, is in use or cannot be written."""


class FailedError(TrainingError):
    """A training that began and cannot go on; its last checkpoint is whole."""


class UnwritableError(FailedError):
    """Output that cannot be written: a full disk, or a read-only, deleted or renamed directory. The user can mend it."""


class DamagedError(TrainingError):
    """A file that is not what was written."""


class DamagedWarning(UserWarning):
    """Something damaged was found, set aside, and done without."""


class MissingExtraError(ModuleNotFoundError):
    """A package of an extra that is not installed; the text names the extra."""


class DataWarning(UserWarning):
    """Data that can be read, and probably otherwise than it is meant."""


class Interrupted(SystemExit):
    """A training that was told to stop by a signal, and has saved itself. Its code is 128 + the signal."""


class ConfigError(ValueError):
    """Invalid configuration; the text says what is wrong, and where."""


class DataError(ValueError):
    """The data is not what it should be; the text says what and where."""
