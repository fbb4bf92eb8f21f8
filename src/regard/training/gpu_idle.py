"""How long a GPU has nothing to do between one update and the next."""

from typing import NamedTuple

import torch


class Gap(NamedTuple):
    """From the end of an update to the beginning of the next, as the GPU itself takes the time."""

    end: torch.cuda.Event
    beginning: torch.cuda.Event

    def seconds(self) -> float:
        """How long it was; both events must have come."""
        return self.end.elapsed_time(self.beginning) / 1000


class Idle:
    """Marks where updates begin and end. Where the next one is queued before this one ends there is no gap to speak of;
    where the GPU waits for its host, the gap is that long. What it waits for inside of an update is not seen."""

    def __init__(self, device: torch.device):
        self.device = device if device.type == "cuda" else None
        self.last: torch.cuda.Event | None = None

    def begin(self) -> Gap | None:
        """An update begins; the gap before it, to be read when the update is done. None on a CPU, and after a `pause`."""
        if self.device is None or self.last is None:
            return None
        return Gap(self.last, _now(self.device))

    def end(self) -> None:
        """All of an update has been queued."""
        self.last = None if self.device is None else _now(self.device)

    def pause(self) -> None:
        """Something else comes before the next update, whose time is not counted."""
        self.last = None


def _now(device: torch.device) -> torch.cuda.Event:
    event = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
    event.record(torch.cuda.current_stream(device))
    return event
