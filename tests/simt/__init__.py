"""Runs kernels/*.cu on a CPU as CUDA would, and finds what a GPU would hide.

See README.md for what is checked and how it works.
"""

from . import cupy_standin as cupy_standin
from .errors import CompileError as CompileError
from .errors import Fault as Fault
from .errors import SimtError as SimtError
from .installation import install as install
from .launch import AccessStats as AccessStats
from .launch import LaunchRecord as LaunchRecord
from .launch import launches as launches
from .settings import config as config
