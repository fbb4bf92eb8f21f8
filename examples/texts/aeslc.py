"""Tables of AESLC, e-mails and their subject lines: JSON lines of body and subject, and of the three human subjects of test.

REGARD_DATA=folder/with/aeslc python examples/texts/aeslc.py OUT
"""

import json
import lzma
import os
import sys
from pathlib import Path


def write(path: Path, rows: list[tuple[str, str]]) -> None:
    """Write bodies and subjects."""
    lines = (json.dumps({"body": body, "subject": subject}, ensure_ascii=False) for body, subject in rows)
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def main(out: Path) -> None:
    """Write the tables of all parts."""
    out.mkdir(parents=True, exist_ok=True)
    for part in ("train", "dev", "test"):
        with lzma.open(Path(os.environ["REGARD_DATA"]) / "aeslc" / f"{part}.jsonl.xz", "rt", encoding="utf-8") as file:
            mails = [json.loads(line) for line in file]
        write(out / f"{part}.jsonl", [(mail["body"], mail["subject"]) for mail in mails])
        several = [(mail["body"], subject) for mail in mails for subject in mail.get("annotations", ()) if subject.strip()]
        if several:
            write(out / f"{part}-annotations.jsonl", several)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
