"""Build hook: writes the git commit into the wheel and the sdist, where `regard --version` reads it."""

import subprocess
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CommitHook(BuildHookInterface):
    """Adds commit.txt to the package; an sdist that was unpacked has it already."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Called before each build; nothing is added to an editable install, which reads git itself."""
        root = Path(self.root)
        if version == "editable" or not (root / ".git").exists():
            return
        command = ["git", "-C", str(root), "rev-parse", "--short=12", "HEAD"]
        try:
            commit = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        except (OSError, subprocess.SubprocessError):
            return
        self.folder = tempfile.TemporaryDirectory()
        stamp = Path(self.folder.name) / "commit.txt"
        stamp.write_text(commit, encoding="ascii")
        home = "src/regard" if self.target_name == "sdist" else "regard"
        build_data["force_include"][str(stamp)] = f"{home}/commit.txt"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Called after each build."""
        if hasattr(self, "folder"):
            self.folder.cleanup()
