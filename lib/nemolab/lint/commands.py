"""Finds server starts in shell commands: behind `docker run`, `bash -c`, `env`, `mpirun`, in any image."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from nemolab.core.finding import Finding, Severity
from nemolab.lint import shell
from nemolab.lint.docker import docker_options, gpu_count
from nemolab.lint.entries import entry_of, image_entry
from nemolab.lint.launch import Container, Launch, Script, Word, image_engine
from nemolab.lint.pins import pinned, with_versions

_WRAPPERS = {
    "sudo",
    "nohup",
    "exec",
    "time",
    "command",
    "setsid",
    "stdbuf",
    "nice",
    "ionice",
    "numactl",
    "taskset",
    "mpirun",
    "mpiexec",
    "srun",
    "env",
    "timeout",
    "trtllm-llmapi-launch",
    "uvx",
    "uv",
    "poetry",
    "conda",
    "nsys",
    "tini",
    "dumb-init",
    "xargs",
    "then",
    "do",
    "else",
    "if",
    "while",
    "!",
    "{",
}
_ASSIGNMENT = re.compile(r"^([A-Za-z_][A-Za-z0-9_]*)(\+?)=(.*)$", re.S)


def read_shell(text: str, first_line: int = 1) -> Script:
    """Launches and commands of shell text."""
    parts = shell.split(text, first_line)
    script = Script(text, "shell", findings=list(parts.findings))
    reader = _Reader(script, parts.files)
    for command in parts.commands:
        reader.command(command, {})
    script.launches = with_versions(script.launches, pinned(script.commands))
    return script


def add_command(script: Script, words: Sequence[Word], env: dict[str, tuple[str, int]]) -> None:
    """Add what a command that was split already starts, with the variables set for it."""
    reader = _Reader(script, {})
    reader.variables |= {name: value for name, (value, _) in env.items()}
    reader.command(list(words), env)


def launch_from_words(words: Sequence[Word], image: str | None, **known: object) -> Launch | None:
    """The launch that a container's command and arguments amount to; None when they start no known server."""
    script = Script("")
    reader = _Reader(script, {})
    reader.command(list(words), {}, image=image)
    if not script.launches and words and image and (own := image_entry(image)):
        reader.add(own[0], own[1], words, {}, image, None, 0, words[0].line)
    if script.launches:
        return replace(script.launches[0], **known)  # type: ignore[arg-type]
    return None


class _Reader:
    def __init__(self, script: Script, files: dict[str, tuple[str, int]]) -> None:
        self.script = script
        self.files = files
        self.exported: dict[str, tuple[str, int]] = {}
        self.variables: dict[str, str] = {}

    def command(
        self,
        words: list[Word],
        env: dict[str, tuple[str, int]],
        image: str | None = None,
        container: Container | None = None,
        image_line: int = 0,
    ) -> None:
        """Read one simple command; `env` and `container` are what surrounds it."""
        words = [self._expanded(word) for word in words]
        env = dict(env)
        while words and (match := _ASSIGNMENT.match(words[0].text)) and not words[0].raw.startswith(("'", '"')):
            env[match[1]] = (match[3], words[0].line)
            words = words[1:]
        if not words:
            for name, (value, line) in env.items():
                self.variables[name] = value
                if name in self.exported:
                    self.exported[name] = (value, line)
            return
        self.script.commands.append(words)
        name = words[0].text.rsplit("/", 1)[-1]
        if name in ("export", "declare", "typeset", "readonly", "set", "setenv"):
            self._export(words)
        elif name in _WRAPPERS:
            self._unwrap(words, env, image, container, image_line)
        elif name in ("docker", "podman", "nerdctl"):
            self._docker(words, env)
        elif name in ("bash", "sh", "zsh", "dash") and any(re.fullmatch(r"-[a-z]*c[a-z]*", w.text) for w in words[1:]):
            at = next(i for i, w in enumerate(words) if re.fullmatch(r"-[a-z]*c[a-z]*", w.text))
            if at + 1 < len(words):
                self._nested(words[at + 1], env, image, container, image_line)
        elif (found := entry_of(words)) is not None:
            engine, entry, rest = found
            self.add(engine, entry, rest, env, image, container, image_line, words[0].line)

    def _expanded(self, word: Word) -> Word:
        if "$" not in word.text or word.raw.startswith("'"):
            return word
        values = {**{k: v for k, (v, _) in self.exported.items()}, **self.variables}

        def value(match: re.Match[str]) -> str:
            return values.get(match[1] or match[2], match[0])

        return word._replace(text=re.sub(r"\$(?:\{([A-Za-z_]\w*)(?::?-[^}]*)?\}|([A-Za-z_]\w*))", value, word.text))

    def _export(self, words: list[Word]) -> None:
        for word in words[1:]:
            if match := _ASSIGNMENT.match(word.text):
                self.exported[match[1]] = (match[3], word.line)
                self.variables[match[1]] = match[3]
            elif word.text in self.variables:
                self.exported[word.text] = (self.variables[word.text], word.line)

    def _unwrap(
        self,
        words: list[Word],
        env: dict[str, tuple[str, int]],
        image: str | None,
        container: Container | None,
        image_line: int,
    ) -> None:
        """Find the command that a wrapper such as `sudo -E` or `numactl -N 0` runs."""
        for index in range(1, len(words)):
            text = words[index].text
            base = text.rsplit("/", 1)[-1]
            known = base in ("docker", "podman", "bash", "sh", "nvidia-smi", "systemctl") or base in _WRAPPERS - {"uv"}
            if known or _ASSIGNMENT.match(text) or entry_of(words[index:]) is not None:
                self.command(words[index:], env, image, container, image_line)
                return

    def _nested(
        self,
        word: Word,
        env: dict[str, tuple[str, int]],
        image: str | None,
        container: Container | None,
        image_line: int,
    ) -> None:
        """`bash -c "..."`: its text is a script of its own, with the variables set around it."""
        parts = shell.split(word.text, word.line)
        self.script.findings.extend(parts.findings)
        self.files |= parts.files
        outer, self.exported = self.exported, {**self.exported, **env}
        for command in parts.commands:
            self.command(command, env, image, container, image_line)
        self.exported = outer

    def _docker(self, words: list[Word], env: dict[str, tuple[str, int]]) -> None:
        verb = next((w.text for w in words[1:] if not w.text.startswith("-")), "")
        if verb not in ("run", "create", "exec"):
            return
        at = next(i for i, w in enumerate(words) if w.text == verb) + 1
        options, at = docker_options(words, at)
        if verb == "exec":  # what follows is the container's name, then a command
            inside = self._given(options.pop("--env", []), env)
            outer, self.exported = self.exported, {}
            self.command(list(words[at + 1 :]), inside)
            self.exported = outer
            return
        if at >= len(words):
            self.script.findings.append(
                Finding(
                    "R-SHELL",
                    Severity.ERROR,
                    f"docker {verb} names no image",
                    "put the image before the arguments of the server",
                    "docker run reference",
                    where=f"line {words[0].line}",
                )
            )
            return
        image = words[at]
        inside = self._given(options.pop("--env", []), env)
        plain = {key: tuple(value for value, _ in pairs) for key, pairs in options.items()}
        container = Container(
            "docker",
            plain,
            memory=(plain.get("--memory") or (None,))[-1],
            shm="--shm-size" in plain or plain.get("--ipc") == ("host",),
            gpus=gpu_count(plain.get("--gpus", ())),
        )
        rest = words[at + 1 :]
        entrypoint = (plain.get("--entrypoint") or ("",))[-1]
        if entrypoint:
            rest = [Word(entrypoint, image.line), *rest]
        outer, self.exported = self.exported, {}
        before = len(self.script.launches)
        if rest and (entrypoint or entry_of(rest) or _is_shell(rest[0].text) or not image_entry(image.text)):
            self._doubled(image, rest, entrypoint)
            self.command(list(rest), inside, image.text, container, image.line)
        elif own := image_entry(image.text):
            self.add(own[0], own[1], rest, inside, image.text, container, image.line, words[0].line)
        self.exported = outer
        if len(self.script.launches) == before:  # nothing known is started: rules on images still apply
            engine = image_engine(image.text)[0] if not rest else None
            self.add(engine, "image", rest if engine else (), inside, image.text, container, image.line, words[0].line)

    def _given(
        self, settings: Sequence[tuple[str, int]], env: dict[str, tuple[str, int]]
    ) -> dict[str, tuple[str, int]]:
        """Variables of `--env`: with a value, or by name from around the command."""
        inside: dict[str, tuple[str, int]] = {}
        for setting, line in settings:
            key, equals, value = setting.partition("=")
            around = {**self.exported, **env}.get(key, (f"${key}", line))
            inside[key] = (value, line) if equals else around
        return inside

    def _doubled(self, image: Word, rest: Sequence[Word], entrypoint: str) -> None:
        """The image's own entry point already holds the serve command: a second one becomes an argument of it."""
        if entrypoint or not (own := image_entry(image.text)):
            return
        first = " ".join(w.text for w in rest[:2])
        self.script.findings.append(
            Finding(
                "R-ENTRYPOINT",
                Severity.ERROR,
                f"the image starts `{own[1]}` itself: `{first}` becomes its arguments and is refused",
                "give the model and its options only, or set --entrypoint",
                "vLLM Dockerfile, ENTRYPOINT of vllm-openai",
                where=f"line {rest[0].line}",
            )
        )

    def add(
        self,
        engine: str | None,
        entry: str,
        words: Sequence[Word],
        env: dict[str, tuple[str, int]],
        image: str | None,
        container: Container | None,
        image_line: int,
        line: int,
    ) -> None:
        version = image_engine(image)[1] if image else None
        launch = Launch(
            engine, entry, tuple(words), {**self.exported, **env}, version, image, image_line, container, line=line
        )
        if engine and (found := self._options_file(engine, words)):
            from nemolab.lint.yamltext import flag_words, mapping_lines

            document, lines, problem = mapping_lines(*self.files[found])
            if problem:
                self.script.findings.append(problem)
            if engine == "trtllm":
                launch = replace(launch, yaml=document, yaml_lines=lines)
            elif document:
                given = flag_words(document, lambda key: lines.get(key, 0))
                launch = replace(launch, words=_with_config(launch.words, given))
        self.script.launches.append(launch)

    def _options_file(self, engine: str, words: Sequence[Word]) -> str | None:
        """File of this text that the launch names as its options."""
        flags = {"trtllm": ("--extra_llm_api_options", "--config", "--extra-llm-api-options")}.get(
            engine, ("--config",)
        )
        for index, word in enumerate(words):
            name, equals, value = word.text.partition("=")
            if name in flags:
                target = value if equals else words[index + 1].text if index + 1 < len(words) else ""
                for file in self.files:
                    if target and (file == target or file.rsplit("/", 1)[-1] == target.rsplit("/", 1)[-1]):
                        return file
        return None


def _is_shell(name: str) -> bool:
    return name.rsplit("/", 1)[-1] in {"bash", "sh", "zsh", "dash", "env", "python", "python3"} | _WRAPPERS


def _with_config(words: Sequence[Word], given: Sequence[Word]) -> tuple[Word, ...]:
    """The words with those of the `--config` file before the options, so that the command line wins."""
    first = 1 if words and not words[0].text.startswith("-") else 0
    at = next(i for i, word in enumerate(words) if word.text.partition("=")[0] == "--config")
    after = at + (1 if "=" in words[at].text else 2)
    return (*words[:first], *given, *words[first:at], *words[after:])
