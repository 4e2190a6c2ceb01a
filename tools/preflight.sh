#!/usr/bin/env bash
# Say in one line what this machine lacks to build trnscope, and how to get it.
set -euo pipefail

python="${1:-python3}"

need() {
    echo "trnscope: $1" >&2
    exit 1
}

command -v "$python" >/dev/null ||
    need "$python is not installed; install it (Debian, Ubuntu: apt-get install python3 python3-venv python3-dev)"
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 10))' ||
    need "$("$python" --version) is too old; name a Python 3.10 or newer: make PYTHON=/path/to/python3"
"$python" -c 'import ensurepip, venv' 2>/dev/null ||
    need "$python cannot make virtual environments; install its venv package (Debian, Ubuntu: apt-get install python3-venv)"
"$python" -c 'import os, sysconfig; os.stat(os.path.join(sysconfig.get_path("include"), "Python.h"))' 2>/dev/null ||
    need "the headers of $python are missing; install them (Debian, Ubuntu: apt-get install python3-dev)"

compiler="${CXX:-c++}"
probe="$(mktemp -d)"
trap 'rm -rf "$probe"' EXIT
printf '#include <string_view>\nint main() { return static_cast<int>(std::string_view("").size()); }\n' >"$probe/probe.cpp"
"$compiler" -std=c++17 -fsyntax-only "$probe/probe.cpp" 2>/dev/null ||
    need "no C++17 compiler answers to '$compiler'; install one (Debian, Ubuntu: apt-get install g++) or set CXX"
