#!/usr/bin/env bash
# Prepare a checkout: tools/setup.sh report|dev|lab. uv is bootstrapped into .uv, the lab lives in .venv, and nothing
# else is touched, except that `dev` on Debian or Ubuntu as root installs what the tests of pages and of rendered files need.
set -euo pipefail
cd "$(dirname "$0")/.."
kind=${1:-report}
uv_version=0.13.9
need_mib=2500

fail() { printf 'setup: %s\n  fix: %s\n' "$1" "$2" >&2; exit 2; }

python=${PYTHON:-}
if [ -z "$python" ]; then
  for name in python3 python3.14 python3.13 python3.12 python3.11; do
    if command -v "$name" >/dev/null && "$name" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
      python=$name
      break
    fi
  done
fi
if [ -z "$python" ]; then
  found=$(python3 --version 2>/dev/null || echo "no python3")
  fail "Python 3.11 or newer is needed, found: $found" "apt-get install python3.11 python3.11-venv, or set PYTHON=/path/to/python3.11"
fi
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null ||
  fail "PYTHON=$python is not Python 3.11 or newer" "name another one, or unset PYTHON"

if ! [ -x .uv/bin/uv ] || [ "$(.uv/bin/uv --version | cut -d' ' -f2)" != "$uv_version" ]; then
  "$python" -c 'import venv, ensurepip' 2>/dev/null ||
    fail "this Python has no venv module ($("$python" --version))" "apt-get install python3-venv"
fi

if ! [ -d .venv ]; then
  free_mib=$(df -Pm . | awk 'NR==2 {print $4}')
  [ "$free_mib" -ge "$need_mib" ] ||
    fail "only ${free_mib} MiB free in $(pwd), ${need_mib} MiB are needed" "free space, or clone to another disk"
fi

if ! [ -x .uv/bin/uv ] || [ "$(.uv/bin/uv --version | cut -d' ' -f2)" != "$uv_version" ]; then
  echo "setup: uv $uv_version into .uv"
  rm -rf .uv
  "$python" -m venv .uv
  .uv/bin/python -m pip install --quiet --disable-pip-version-check "uv==$uv_version" ||
    fail "uv could not be installed" "check the network and the proxy settings of pip"
fi

case $kind in
  report) extra=() ;;
  dev) extra=(--group dev) ;;
  lab) extra=(--extra lab) ;;
  *) fail "unknown kind '$kind'" "use report, dev or lab" ;;
esac
# The interpreter is named once, when .venv is made: named again, uv may take it for another one (a pyenv shim) and make
# .venv anew, without what another target put there.
[ -x .venv/bin/python ] || extra+=(--python "$("$python" -c 'import sys; print(sys.executable)')")
echo "setup: packages for '$kind' into .venv"
.uv/bin/uv sync --locked --inexact --quiet --no-python-downloads ${extra[@]+"${extra[@]}"} ||
  fail "the locked packages could not be installed" "see the lines above; uv.lock must match pyproject.toml"

if [ "$kind" = dev ]; then
  missing=()
  command -v chromium >/dev/null || command -v chromium-browser >/dev/null || missing+=(chromium fonts-dejavu-core)
  command -v pdftoppm >/dev/null || missing+=(poppler-utils)
  command -v shellcheck >/dev/null || missing+=(shellcheck)
  command -v systemd-analyze >/dev/null || missing+=(systemd)
  if [ ${#missing[@]} -gt 0 ]; then
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
      echo "setup: ${missing[*]} from the distribution, for the tests"
      { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}"; } >/dev/null 2>&1 ||
        echo "setup: could not install ${missing[*]}; the tests that need them will be skipped" >&2
    else
      echo "setup: without ${missing[*]} some tests are skipped (apt-get install ${missing[*]})" >&2
    fi
  fi
fi
touch ".venv/$kind.ok"
