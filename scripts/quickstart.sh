#!/usr/bin/env bash
# From a fresh clone to a trained network: makes .venv, installs edgegrad, trains an R-GCN on the
# countries of the world, and compares every operator with scipy.sparse.
#
#   bash scripts/quickstart.sh
#
# EDGEGRAD_VENV  where the environment goes, .venv without it
# PYTHON, CXX    the Python and the compiler to use
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/venv.sh"

make_venv
echo "Building and installing edgegrad in $venv ..."
pip_install ".[demo]"
"$venv/bin/edgegrad" train rgcn
"$venv/bin/python" scripts/check_against_scipy.py --brief
