"""One fix that needs root, as text: what to run, the risk, the way back."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Fix:
    """One fix.

    Attributes:
        name: to ask for it by.
        codes: findings that it answers.
        commands: to be run as root, one a line, in a shell.
        files: path -> content, to be written before the commands.
        check: how to see that it worked.
    """

    name: str
    title: str
    codes: tuple[str, ...]
    commands: tuple[str, ...]
    risk: str
    undo: str
    check: str
    source: str
    files: dict[str, str]

    def as_text(self) -> str:
        """The fix as a person reads and copies it."""
        parts = [f"# {self.title}", f"# risk: {self.risk}", f"# undo: {self.undo}", f"# source: {self.source}"]
        for path, content in self.files.items():
            parts += ["", f"cat > {path} <<'EOF'", content.rstrip("\n"), "EOF"]
        return "\n".join([*parts, "", *self.commands, f"# then: {self.check}"])
