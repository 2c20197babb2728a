"""Extensions and their compiler flags; everything else stands in pyproject.toml.

Sources named ``*_simd.cpp`` hold the inner loops. They are compiled once for every
instruction set level (x86-64-v2, v3, v4) and chosen when the package is imported; on other
processors they are compiled once, for the compiler's default target. All other C++ is
compiled once and runs anywhere.
"""

import os
import platform
from pathlib import Path

import numpy as np
import pybind11
from Cython.Build import cythonize
from pybind11.setup_helpers import ParallelCompile
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

X86_LEVELS = {f"v{level}": [f"-march=x86-64-v{level}"] for level in (2, 3, 4)}
IS_X86 = platform.machine().lower() in {"x86_64", "amd64"}
CXX_FLAGS = ["-std=c++17", "-fvisibility=hidden", "-Wall", "-Wextra", "-Wno-psabi"]
if "-O" not in os.environ.get("CXXFLAGS", ""):  # a build with sanitizers asks for less
    CXX_FLAGS.append("-O3")


def sources(pattern: str) -> list[str]:
    return sorted(path.as_posix() for path in Path("csrc").glob(pattern))


SIMD = sources("*/*_simd.cpp")
CORE = Extension(
    "kernelcore._core",
    sources=[path for path in sources("*/*.cpp") if path not in SIMD],
    include_dirs=["csrc", pybind11.get_include()],
    depends=sources("*/*.hpp") + SIMD,
    define_macros=[("KERNELCORE_X86", str(int(IS_X86)))],
    extra_compile_args=CXX_FLAGS,
    extra_link_args=["-pthread"],
    language="c++",
)


def cython_extension(path: Path) -> Extension:
    return Extension(
        ".".join(path.with_suffix("").parts),
        sources=[path.as_posix()],
        include_dirs=[np.get_include()],
        define_macros=[("NPY_NO_DEPRECATED_API", "NPY_1_7_API_VERSION")],
        extra_compile_args=[flag for flag in CXX_FLAGS if flag == "-O3"],
    )


class BuildExtensions(build_ext):
    """Compile the inner loops once for each instruction set and link them into the core."""

    def finalize_options(self) -> None:
        super().finalize_options()
        self.parallel = self.parallel or os.cpu_count()

    def build_extension(self, ext: Extension) -> None:
        if ext is CORE:
            levels = X86_LEVELS if IS_X86 else {"portable": []}
            for name, flags in levels.items():
                ext.extra_objects += self.compiler.compile(
                    SIMD,
                    output_dir=str(Path(self.build_temp) / name),
                    macros=[*ext.define_macros, ("KERNELCORE_ISA", name)],
                    include_dirs=ext.include_dirs,
                    extra_postargs=[*CXX_FLAGS, *flags],
                    depends=ext.depends,
                )
        super().build_extension(ext)


ParallelCompile(default=0).install()  # the files of one extension side by side
CYTHON = [cython_extension(path) for path in sorted(Path("kernelcore").rglob("*.pyx"))]

setup(
    ext_modules=[CORE, *cythonize(CYTHON, compiler_directives={"language_level": 3})],
    cmdclass={"build_ext": BuildExtensions},
)
