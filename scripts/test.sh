#!/usr/bin/env bash
# Makes .venv, installs edgegrad with what its tests need, and runs all tests.
#
#   bash scripts/test.sh [--all] [-- PYTEST_ARGUMENTS]
#
# --all          install PyTorch, PyG, JAX and autograd too; without them their tests skip and say
#                so
# EDGEGRAD_VENV  where the environment goes, .venv without it
# EDGEGRAD_TORCH_INDEX  the package index to take PyTorch from: PyPI's build brings CUDA libraries
#                of several GB on some machines, PyTorch's own index has builds for the CPU alone
# PYTHON, CXX    the Python and the compiler to use
set -euo pipefail

usage() { sed -n '2,/^set /{/^set /!s/^# \{0,1\}//p}' "${BASH_SOURCE[0]}"; }

extras="test"
while (($#)); do
  case $1 in
    --all) extras=test,torch,pyg,jax,autograd ;;
    --) shift; break ;;
    -h | --help) usage; exit ;;
    *) usage >&2; exit 2 ;;
  esac
  shift
done

source "$(dirname "${BASH_SOURCE[0]}")/venv.sh"
make_venv
if [[ $extras == *torch* ]]; then
  echo "Installing PyTorch in $venv ..."
  pip_install ${EDGEGRAD_TORCH_INDEX:+--index-url "$EDGEGRAD_TORCH_INDEX"} torch==2.13.0
fi
echo "Building and installing edgegrad in $venv ..."
pip_install -e ".[$extras]"

workers=()
if (($(getconf _NPROCESSORS_ONLN) > 1)); then
  workers=(-n 2)
  # Two processes share the cores: threads that spin while they wait would starve the others.
  export OMP_WAIT_POLICY=${OMP_WAIT_POLICY:-passive}
fi
"$venv/bin/python" -m pytest ${workers[@]+"${workers[@]}"} "$@"
