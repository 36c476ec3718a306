# shellcheck shell=bash
# Sourced by the scripts beside it: looks for what the build needs and makes the virtual
# environment. What is missing is said in one line, with the package that has it.

cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1
venv=${EDGEGRAD_VENV:-$PWD/.venv}
base_python=${PYTHON:-python3}

fail() {
  printf '%s\n' "$1" >&2
  exit 1
}

require_compiler() {
  local program='#include <omp.h>
    #include <optional>
    int main() { return std::optional<int>(omp_get_max_threads() - 1).value(); }'
  local candidate
  for candidate in ${CXX:+"$CXX"} c++ g++ clang++; do
    # Unquoted, as CXX may hold a launcher or options: "ccache g++".
    if $candidate -std=c++17 -fopenmp -fsyntax-only -x c++ - <<<"$program" 2>/dev/null; then
      export CXX=$candidate
      return
    fi
  done
  fail "No C++17 compiler with OpenMP found: sudo apt-get install g++ (Debian, Ubuntu) or sudo dnf install gcc-c++ (Fedora)"
}

require_python() {
  "$base_python" -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null ||
    fail "Python 3.10 or later not found as $base_python: sudo apt-get install python3 python3-venv python3-dev, or name another one in PYTHON"
  "$base_python" -c 'import ensurepip, venv' 2>/dev/null ||
    fail "Python's venv module not found: sudo apt-get install python3-venv"
  "$base_python" -c 'import os, sys, sysconfig
sys.exit(not os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h")))' ||
    fail "Python's headers not found: sudo apt-get install python3-dev (Debian, Ubuntu) or sudo dnf install python3-devel (Fedora)"
}

make_venv() {
  require_compiler
  require_python
  # A folder left by an interrupted run, or by a Python that is gone, has no working pip.
  "$venv/bin/python" -m pip --version >/dev/null 2>&1 || "$base_python" -m venv --clear "$venv"
}

pip_install() {
  "$venv/bin/python" -m pip --disable-pip-version-check --no-input install -qq "$@"
}
