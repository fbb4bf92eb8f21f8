"""Standard output for answers: an error of writing is one paragraph, and the rest of the buffer is discarded."""

import os
import sys
from typing import Any

from regard.errors import DataError


class OutputError(DataError):
    """Answers that cannot be written, whatever the input."""


class StandardOutput:
    """Standard output, or `stream` in its place. A closed pipe stays a BrokenPipeError, which ends a command quietly."""

    def __init__(self, stream: Any = None):
        self.stream = sys.stdout if stream is None else stream
        if self.stream is None or self.stream.closed:
            raise DataError("answers go to standard output, and it is closed; open it, or name a file with --out")

    def write(self, text: str) -> None:
        """Write text to the stream."""
        try:
            self.stream.write(text)
        except OSError as error:
            raise self.fail(error) from error

    def flush(self) -> None:
        """Flush the stream."""
        try:
            self.stream.flush()
        except OSError as error:
            raise self.fail(error) from error

    def fail(self, error: OSError) -> OSError | OutputError:
        """The error of a stream that cannot be written, whose rest is then dropped: Python would write it once more."""
        if isinstance(error, BrokenPipeError):
            return error
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, self.stream.fileno())
        os.close(nowhere)
        return OutputError(
            f"standard output cannot be written: {error.strerror}. The last answers are cut off; make room, or name a file "
            "with --out, which goes on where it was stopped"
        )
