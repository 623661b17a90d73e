"""Locks are what they say, and an install from one is whole, resumable, refused in time, and apart from the lab."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tarfile
import threading
import zipfile
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from click.testing import CliRunner

from nemolab.cli import app
from nemolab.core.errors import NemolabError, UsageError
from nemolab.core.finding import Severity
from nemolab.engines import install, install_image, install_lock, install_resolve, install_uv

SHIPPED = sorted(install_lock.SHIPPED.glob("*/pylock.*.toml"))


def _uv_is_there() -> bool:
    try:
        return install_uv.find().exists()
    except UsageError:
        return False


needs_uv = pytest.mark.skipif(not _uv_is_there(), reason="no uv: `make test` puts it into .uv")


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("NEMOLAB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "uv"))
    monkeypatch.setenv("UV_OFFLINE", "1")
    return tmp_path / "cache"


# --- the locks that come with nemolab -------------------------------------------------------------------------------


def test_there_are_locks_of_the_versions_that_matter() -> None:
    names = {path.parent.name for path in SHIPPED}
    assert {"vllm-0.22.0", "sglang-0.5.13"} <= names
    assert {p.name for p in SHIPPED if p.parent.name == "vllm-0.22.0"} == {
        "pylock.x86_64.toml",
        "pylock.aarch64.toml",
    }


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_a_lock_is_of_its_day_with_a_hash_for_every_file(path: Path) -> None:
    lock = install_lock.read(path)
    newest = datetime.fromisoformat(lock.exclude_newer).replace(tzinfo=UTC)
    released = datetime.fromisoformat(lock.released).replace(tzinfo=UTC)
    assert timedelta(0) < newest - released <= timedelta(days=1)
    assert lock.find(lock.engine).version == lock.version  # type: ignore[union-attr]
    late = [p.name for p in lock.packages if p.uploaded is None or p.uploaded >= newest]
    assert not late, "uploaded after the release"
    text = path.read_text()
    files = text.count('url = "https://files.pythonhosted.org/')
    assert files == text.count("url = ") == text.count("hashes = { sha256 = ") >= len(lock.packages)
    assert lock.cuda == "13.0", "the CUDA variant of torch's default wheels since 2.11"
    assert 2 * 2**30 < lock.download < 12 * 2**30
    assert 1.8 < lock.unpacked / lock.download < 3


def test_the_lock_of_vllm_0_22_keeps_the_web_framework_that_works() -> None:
    """Unpinned, vllm==0.22.0 takes a fastapi with which every request answers 500 (measured with 0.138)."""
    for machine in install_lock.MACHINES:
        fastapi = install_lock.find("vllm", "0.22.0", machine).find("fastapi")
        assert fastapi is not None
        assert fastapi.version.startswith("0.136.")


def test_an_unknown_version_says_which_there_are_and_how_to_make_one() -> None:
    with pytest.raises(UsageError, match=r"no lock of vllm 0\.1\.0") as caught:
        install_lock.find("vllm", "0.1.0")
    assert "0.22.0" in str(caught.value)
    assert "--relock" in str(caught.value)


def test_a_damaged_lock_is_refused(tmp_path: Path) -> None:
    whole = SHIPPED[0].read_text()
    for text in (whole.replace("[tool.nemolab]", "[tool.other]"), whole[: len(whole) // 2], "[[packages]]\nname = 1"):
        (tmp_path / "pylock.toml").write_text(text)
        with pytest.raises(UsageError, match="not a lock"):
            install_lock.read(tmp_path / "pylock.toml")


# --- installing: real uv, real wheels of our own, no network ---------------------------------------------------------


def wheel(folder: Path, name: str, version: str, pad: int = 0) -> Path:
    """A wheel as small as they come."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}-{version}-py3-none-any.whl"
    info = f"{name}-{version}.dist-info"
    files = {
        f"{name}/__init__.py": b"#" * pad,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n".encode(),
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    rows = [
        f"{at},sha256={base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b'=').decode()},{len(data)}"
        for at, data in files.items()
    ]
    files[f"{info}/RECORD"] = "\n".join([*rows, f"{info}/RECORD,,", ""]).encode()
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for at, data in files.items():
            archive.writestr(at, data)
    return path


def lock_of(path: Path, wheels: list[Path], version: str = "0.22.0", unpacked: int = 4096) -> Path:
    """A lock of `vllm` whose files are these."""
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    lines = ['lock-version = "1.0"', 'created-by = "tests"', f'requires-python = ">={python}"', ""]
    for file in wheels:
        name, number, *_ = file.name.split("-")
        digest = hashlib.sha256(file.read_bytes()).hexdigest()
        lines += [
            "[[packages]]",
            f'name = "{name}"',
            f'version = "{number}"',
            f'wheels = [{{ url = "{file.as_uri()}", size = {file.stat().st_size}, '
            f'hashes = {{ sha256 = "{digest}" }} }}]',
            "",
        ]
    about = {"engine": "vllm", "version": version, "machine": install_lock.this_machine(), "released": "2026-05-29"}
    about |= {"exclude_newer": "2026-05-30", "python": python, "glibc": "2.34"}
    lines += ["[tool.nemolab]", *(f"{k} = {json.dumps(v)}" for k, v in about.items()), f"unpacked_bytes = {unpacked}"]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    """A lock of two packages, one of them large enough to be announced."""
    files = [wheel(tmp_path / "wheels", "vllm", "0.22.0"), wheel(tmp_path / "wheels", "fastapi", "0.136.3")]
    return lock_of(tmp_path / "lock" / "pylock.x.toml", files)


def lab() -> set[str]:
    return {path.name for path in Path(sys.prefix, "lib").glob("python*/site-packages/*.dist-info")}


@needs_uv
def test_install_is_whole_apart_and_done_once(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = lab()
    monkeypatch.setenv("VIRTUAL_ENV", sys.prefix)
    asked = install.plan("vllm", lock=tiny)
    assert asked.state == "new"
    assert install.installed("vllm") is None
    seen: list[tuple[float, float | None, str | None]] = []
    python = install.apply(asked, progress=lambda *at: seen.append(at))
    listed = subprocess.run(
        [str(python), "-I", "-c", "import importlib.metadata as m; print(sorted(d.name for d in m.distributions()))"],
        capture_output=True,
        text=True,
    )
    assert listed.stdout.strip() == "['fastapi', 'vllm']"
    assert lab() == before, "the lab's environment is as it was"
    assert not python.parent.is_relative_to(sys.prefix)
    assert seen[0][0] == 0
    assert seen[-1][:2] == (asked.download, asked.download)
    assert install.plan("vllm", lock=tiny).state == "installed"
    assert install.installed("vllm") == install.installed("vllm", "0.22.0") == python
    shutil.rmtree(os.environ["UV_CACHE_DIR"])
    (tiny.parent.parent / "wheels" / "vllm-0.22.0-py3-none-any.whl").unlink()
    monkeypatch.setenv("NEMOLAB_UV", "/bin/false")
    assert install.apply(install.plan("vllm", lock=tiny)) == python, "nothing is fetched again"
    assert install.remove("vllm", "0.22.0")
    assert not asked.folder.exists()
    assert not install.remove("vllm", "0.22.0")


@needs_uv
def test_an_interrupted_install_goes_on(tiny: Path, tmp_path: Path) -> None:
    missing = tmp_path / "wheels" / "fastapi-0.136.3-py3-none-any.whl"
    kept = missing.read_bytes()
    missing.unlink()
    with pytest.raises(NemolabError, match="uv pip sync failed"):
        install.apply(install.plan("vllm", lock=tiny))
    assert install.plan("vllm", lock=tiny).state == "interrupted"
    assert install.installed("vllm") is None, "half an environment is none"
    missing.write_bytes(kept)
    assert install.apply(install.plan("vllm", lock=tiny)).exists()
    assert install.plan("vllm", lock=tiny).state == "installed"


@needs_uv
def test_a_file_that_is_not_the_locked_one_is_not_installed(tiny: Path, tmp_path: Path) -> None:
    wheel(tmp_path / "wheels", "fastapi", "0.136.3", pad=100)
    with pytest.raises(NemolabError) as caught:
        install.apply(install.plan("vllm", lock=tiny))
    assert "another file than the lock names" in str(caught.value)
    assert install.installed("vllm") is None


@needs_uv
@pytest.mark.parametrize("has_wheel", [True, False])
def test_only_what_has_no_wheel_is_built(tmp_path: Path, has_wheel: bool) -> None:
    """A source archive runs its own code when it is built: one that stands beside a wheel must not."""
    marker = tmp_path / "built"
    source = tmp_path / "fastapi-0.136.3.tar.gz"
    files = {
        "pyproject.toml": '[build-system]\nrequires = []\nbuild-backend = "back"\nbackend-path = ["."]\n',
        "PKG-INFO": "Metadata-Version: 2.2\nName: fastapi\nVersion: 0.136.3\n",
        "back.py": f"open({str(marker)!r}, 'w').close()\nraise SystemExit(1)\n",
    }
    with tarfile.open(source, "w:gz") as archive:
        for name, text in files.items():
            (tmp_path / name).write_text(text)
            archive.add(tmp_path / name, f"fastapi-0.136.3/{name}")
    made = lock_of(tmp_path / "lock" / "pylock.x.toml", [wheel(tmp_path / "wheels", "vllm", "0.22.0")])
    digest = hashlib.sha256(source.read_bytes()).hexdigest()
    entry = f'[[packages]]\nname = "fastapi"\nversion = "0.136.3"\nsdist = {{ url = "{source.as_uri()}", '
    entry += f'size = 1, hashes = {{ sha256 = "{digest}" }} }}\n'
    if has_wheel:  # of another system, so that uv would have to build
        entry += 'wheels = [{ url = "file:///fastapi-0.136.3-cp27-cp27m-win32.whl", '
        entry += f'hashes = {{ sha256 = "{"0" * 64}" }} }}]\n'
    made.write_text(made.read_text().replace("[tool.nemolab]", entry + "\n[tool.nemolab]"))
    with pytest.raises(NemolabError):
        install.apply(install.plan("vllm", lock=made))
    assert marker.exists() is not has_wheel
    assert ("I-104" in {f.code for f in install.check(install.plan("vllm", lock=made))}) is not has_wheel


@needs_uv
def test_another_lock_of_the_same_version_is_installed_over_it(tiny: Path, tmp_path: Path) -> None:
    python = install.apply(install.plan("vllm", lock=tiny))
    other = [wheel(tmp_path / "w2", "vllm", "0.22.0"), wheel(tmp_path / "w2", "fastapi", "0.136.1")]
    newer = install.plan("vllm", lock=lock_of(tmp_path / "lock2" / "pylock.x.toml", other))
    assert newer.state == "outdated"
    install.apply(newer)
    code = "import importlib.metadata as m; print(m.version('fastapi'))"
    assert subprocess.run([str(python), "-c", code], capture_output=True, text=True).stdout.strip() == "0.136.1"


@needs_uv
def test_what_cannot_work_is_refused_before_anything_is_fetched(
    tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    large = lock_of(tmp_path / "big" / "pylock.x.toml", [wheel(tmp_path / "w", "vllm", "0.22.0")], unpacked=1 << 60)
    with pytest.raises(UsageError, match=r"are needed for the environment, .* are free"):
        install.apply(install.plan("vllm", lock=large))
    assert not install.folder_of("vllm", "0.22.0").exists()

    foreign = tmp_path / "foreign.toml"
    foreign.write_text(tiny.read_text().replace(install_lock.this_machine(), "riscv64"))
    with pytest.raises(UsageError, match="the lock is for Linux on riscv64"):
        install.apply(install.plan("vllm", lock=foreign))

    monkeypatch.setenv("NEMOLAB_CACHE", str(Path(sys.prefix) / "cache"))
    with pytest.raises(UsageError, match="lies in the lab's own environment"):
        install.apply(install.plan("vllm", lock=tiny))
    assert not (Path(sys.prefix) / "cache").exists()


@needs_uv
def test_two_installs_of_one_version_do_not_mix(tiny: Path) -> None:
    asked = install.plan("vllm", lock=tiny)
    with install._alone(asked.folder), pytest.raises(UsageError, match=r"another install of vllm-0\.22\.0 runs"):
        install.apply(asked)


def test_nothing_of_the_lab_leaks_into_uv(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("VIRTUAL_ENV", "PYTHONPATH", "CONDA_PREFIX", "UV_PROJECT_ENVIRONMENT"):
        monkeypatch.setenv(name, "/lab")
    assert "/lab" not in install_uv.environment().values()


def test_without_uv_the_message_says_where_to_get_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("NEMOLAB_UV", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("NEMOLAB_ROOT", str(tmp_path))
    with pytest.raises(UsageError, match="uv is not there"):
        install_uv.find()


# --- making a lock ---------------------------------------------------------------------------------------------------


def test_the_day_of_a_release_comes_from_the_index(tmp_path: Path) -> None:
    files = [
        {"filename": "vllm-0.22.0-cp38-abi3-manylinux_2_28_x86_64.whl", "upload-time": "2026-05-29T10:33:10Z"},
        {"filename": "vllm-0.22.0-cp38-abi3-manylinux_2_28_aarch64.whl", "upload-time": "2026-05-29T10:35:10Z"},
        {"filename": "vllm-0.22.0.post1-cp38-abi3-manylinux_2_28_x86_64.whl", "upload-time": "2026-06-29T10:33:10Z"},
    ]

    class Index(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(json.dumps({"files": files}).encode())

        def log_message(self, format: str, *arguments: object) -> None: ...

    server = HTTPServer(("127.0.0.1", 0), Index)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        index = f"http://127.0.0.1:{server.server_port}/simple"
        assert install_resolve.release_date("vllm", "0.22.0", index) == datetime(2026, 5, 29, 10, 35, 10, tzinfo=UTC)
        with pytest.raises(UsageError, match=r"no wheel of vllm 0\.23\.0"):
            install_resolve.release_date("vllm", "0.23.0", index)
    finally:
        server.shutdown()
        server.server_close()


def test_source_archives_stay_only_where_there_is_no_wheel() -> None:
    text = (
        'lock-version = "1.0"\n\n[[packages]]\nname = "a"\nsdist = { url = "a.tar.gz" }\nwheels = [{ url = "a.whl" }]\n'
        '\n[[packages]]\nname = "b"\nsdist = { url = "b.tar.gz" }\n'
    )
    kept = install_resolve.without_sources(text)
    assert "a.tar.gz" not in kept
    assert "b.tar.gz" in kept
    assert "a.whl" in kept


# --- containers ------------------------------------------------------------------------------------------------------

STUB = """#!/bin/sh
printf '%s\\n' "$*" >> "$STUB_LOG"
case "$1" in
  login) cat > "$STUB_LOG.stdin"; exit ${STUB_LOGIN:-0} ;;
  image) printf '["nvcr.io/x@sha256:%064d"]' 7 ;;
  pull) echo "Status: Downloaded newer image" ;;
esac
"""


@pytest.fixture
def docker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program in docker's place that writes down what it is told: there is no docker where these tests run."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "docker").write_text(STUB)
    (tmp_path / "bin" / "docker").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    monkeypatch.setenv("STUB_LOG", str(tmp_path / "said"))
    return tmp_path / "said"


def test_the_key_goes_to_docker_by_standard_input_only(docker: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NGC_API_KEY", "a-secret-of-no-shape")
    image = install_image.find("trtllm")
    assert install_image.pull(image) == "sha256:" + "7".zfill(64)
    said = docker.read_text()
    assert "login nvcr.io --username $oauthtoken --password-stdin" in said
    assert "a-secret-of-no-shape" not in said
    assert Path(f"{docker}.stdin").read_text() == "a-secret-of-no-shape"
    assert f"pull {image.reference}" in said


def test_a_refused_login_names_the_variable(docker: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NGC_API_KEY", "x")
    monkeypatch.setenv("STUB_LOGIN", "1")
    with pytest.raises(NemolabError, match="docker login failed"):
        install_image.pull(install_image.find("nim"))
    assert "pull" not in docker.read_text()


def test_no_key_no_login(docker: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NGC_API_KEY", raising=False)
    install_image.pull(install_image.find("trtllm"))
    assert "login" not in docker.read_text()
    install_image.pull(install_image.find("vllm", "0.22.0"))
    assert "login" not in docker.read_text()


def test_a_tag_is_a_finding_and_a_digest_is_none(docker: Path) -> None:
    codes = {image.engine: {f.code for f in install_image.check(image)} for image in install_image.IMAGES}
    assert "I-201" in codes["trtllm"]
    assert "I-201" not in codes["dynamo"]
    assert "@sha256:" in install_image.find("dynamo").reference
    assert all(image.source for image in install_image.IMAGES)


@pytest.mark.parametrize(
    ("reference", "host"),
    [
        ("vllm/vllm-openai:v0.22.0", "docker.io"),
        ("nvcr.io/nvidia/x:1", "nvcr.io"),
        ("localhost:5000/x", "localhost:5000"),
    ],
)
def test_registry_of_a_reference(reference: str, host: str) -> None:
    assert install_image.registry_of(reference) == host


def test_without_docker_the_steps_are_shown_and_nothing_is_done(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    found = install_image.check(install_image.find("trtllm"))
    assert any(f.code == "I-203" and f.severity is Severity.ERROR for f in found)
    result = CliRunner().invoke(app, ["install", "trtllm", "--dry-run"])
    assert '"$NGC_API_KEY" | docker login nvcr.io' in result.output
    with pytest.raises(UsageError, match="docker is not there"):
        install_image.pull(install_image.find("trtllm"))


# --- the command -----------------------------------------------------------------------------------------------------


@needs_uv
def test_dry_run_shows_the_size_and_leaves_nothing(own_cache: Path) -> None:
    result = CliRunner().invoke(app, ["install", "vllm", "--version", "0.22.0", "--dry-run"])
    assert "packages as of 2026-05-30" in result.output
    assert "CUDA 13.0" in result.output
    assert "GiB at most" in result.output
    assert not (own_cache / "engines").exists()


def test_list_names_every_lock_and_image() -> None:
    output = CliRunner().invoke(app, ["install"]).output
    for name in ("0.22.0", "0.5.13", "1.3.0rc17", "image by digest"):
        assert name in output
