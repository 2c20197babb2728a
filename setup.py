"""How the extensions are compiled; everything else stands in pyproject.toml.

Sources named ``*_simd.cpp`` hold the inner loops. For x86-64 they are compiled once for every
level of instruction sets, v2 to v4, of which one is chosen at import. For other processors, and
for several at once (universal2 of macOS), they are compiled once, for the compiler's default
target; so is all other C++. What counts is the platform built for, not the one that builds.

Objects stay in build/. One is compiled again if a file that it was made of has changed, and all
are if the command or a tool has. Equal sources and tools give equal archives, byte by byte.
"""

import gzip
import os
import re
import shlex
import shutil
import sys
import tarfile
from pathlib import Path
from typing import Any

import Cython
import numpy as np
import pybind11
from Cython.Build import cythonize
from pybind11.setup_helpers import ParallelCompile
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.command.sdist import sdist
from setuptools.errors import PlatformError

# The time of all files in archives; 1980 is the first year that a wheel can hold.
EPOCH = int(os.environ.setdefault("SOURCE_DATE_EPOCH", "315532800"))

IS_RELEASE = "-O" not in os.environ.get("CXXFLAGS", "")  # sanitized builds ask for less
RELEASE = ["-O3", "-g0"] if IS_RELEASE else []
FOLDERS = {".": Path.cwd(), "numpy": np.get_include(), "pybind11": pybind11.get_include()}
NO_PATHS = [f"-ffile-prefix-map={path}={name}" for name, path in FOLDERS.items() if IS_RELEASE]


def sources(pattern: str) -> list[str]:
    return sorted(path.as_posix() for path in Path("csrc").glob(pattern))


SIMD = sources("*/*_simd.cpp")
CORE = Extension(
    "kernelcore._core",
    sources=[path for path in sources("*/*.cpp") if path not in SIMD],
    include_dirs=["csrc", pybind11.get_include()],
    depends=sources("*/*.hpp") + SIMD,
    language="c++",
)
CYTHON = Extension(
    "*",
    sources=["kernelcore/**/*.pyx"],
    include_dirs=[np.get_include()],
    define_macros=[("NPY_NO_DEPRECATED_API", "NPY_1_7_API_VERSION")],
)


def instruction_sets(platform: str) -> list[str]:
    """Return the names of the instruction sets that the inner loops are compiled for."""
    flags = os.environ.get("ARCHFLAGS", "") if platform.startswith("macosx") else ""
    processors = re.findall(r"-arch\s+(\S+)", flags) or [platform.rpartition("-")[2]]
    return ["v2", "v3", "v4"] if {*processors} <= {"x86_64", "amd64"} else ["portable"]


def use_clang_cl(compiler: Any, platform: str) -> None:
    """Replace cl.exe by clang-cl, which has vector types and takes the same options."""
    wanted = os.environ.get("CC", "clang-cl")
    found = shutil.which(wanted) or ""
    if "clang-cl" not in Path(found).name.lower():
        raise PlatformError(
            "kernelcore needs clang-cl, as cl.exe has no vector types: install LLVM, and put "
            f"clang-cl.exe into PATH or its path into CC, got {wanted!r}, found {found or None}"
        )
    if not compiler.initialized:
        compiler.initialize(platform)
    compiler.cc = found
    compiler.linker = str(Path(found).with_name("lld-link.exe"))  # finds Clang's libraries
    compiler.compile_options.remove("/GL")  # of cl.exe alone


class BuildExtensions(build_ext):
    """Choose the flags, and compile what changed; the inner loops for each instruction set."""

    def finalize_options(self) -> None:
        super().finalize_options()
        if self.editable_mode:  # setuptools would not keep the objects
            self.build_temp = f"build/temp.{self.plat_name}-{sys.implementation.cache_tag}"

    def build_extensions(self) -> None:
        if self.compiler.compiler_type == "msvc":
            use_clang_cl(self.compiler, self.plat_name)
            c = ["/clang:-O3", "/Brepro"]  # leaves out times
            cxx, link = ["/std:c++17"], ["/Brepro", "/DEFAULTLIB:clang_rt.builtins-x86_64.lib"]
            self.level = "/clang:-march=x86-64-{}"
        else:  # GCC and Clang; -MMD notes which files an object is made of
            c, link = [*NO_PATHS, *RELEASE, "-MMD"], ["-pthread"]
            cxx = ["-Wall", "-Wextra", "-Wno-psabi", "-std=c++17", "-fvisibility=hidden"]
            self.level = "-march=x86-64-{}"
        self.levels = instruction_sets(self.plat_name)
        CORE.define_macros = [("KERNELCORE_X86", str(int(self.levels != ["portable"])))]
        for ext in self.extensions:
            ext.extra_compile_args = [*c, *cxx] if ext is CORE else c
            ext.extra_link_args = link
        programs = ("compiler_so", "compiler_so_cxx", "linker_so", "linker_so_cxx", "cc")
        parts = [getattr(self.compiler, name, None) for name in programs]
        tools = [sys.version, Cython.__version__, pybind11.__version__]
        flags = [flag for flag in c if flag not in NO_PATHS]  # pip builds in folders of its own
        command = repr((parts, flags, cxx, link, self.levels, tools))  # of all objects
        stamp = Path(self.build_temp, "command.txt")
        if not stamp.is_file() or stamp.read_text("utf-8") != command:
            self.force = True
            stamp.unlink(missing_ok=True)
        with ParallelCompile(default=0, needs_recompile=self.is_stale):  # files side by side
            super().build_extensions()
        stamp.write_text(command, "utf-8")

    def is_stale(self, compiled: str, source: str) -> bool:
        """Whether a file that an object was made of has changed, or is not known.

        Headers of tools that pip installed for one build are gone: their versions are compared.
        """
        notes = Path(compiled).with_suffix(".d")
        if self.force or not notes.is_file():
            return True
        rule = notes.read_text("utf-8").replace("\\\n", " ")
        made = Path(compiled).stat().st_mtime
        read = [Path(name) for name in shlex.split(rule.partition(": ")[2])]
        kept = [path for path in read if path.exists() or not path.is_absolute()]
        return not all(path.is_file() and path.stat().st_mtime < made for path in kept)

    def build_extension(self, ext: Extension) -> None:
        if ext is CORE:
            ext.extra_objects = [path for level in self.levels for path in self.loops(level)]
        super().build_extension(ext)

    def loops(self, level: str) -> list[str]:
        """Compile the inner loops for one instruction set; return their objects."""
        own = [] if level == "portable" else [self.level.format(level)]
        objects: list[str] = self.compiler.compile(
            SIMD,
            output_dir=str(Path(self.build_temp, level)),
            macros=[*CORE.define_macros, ("KERNELCORE_ISA", level)],
            include_dirs=CORE.include_dirs,
            extra_postargs=[*CORE.extra_compile_args, *own],
        )
        return objects


class SourceArchive(sdist):
    """Write a .tar.gz without owners, times and the umask of the machine."""

    def make_archive(self, base_name: str, *_: Any, base_dir: str = ".", **__: Any) -> str:
        def plain(entry: tarfile.TarInfo) -> tarfile.TarInfo:
            entry.uid = entry.gid = 0
            entry.uname = entry.gname = ""
            entry.mtime, entry.mode = EPOCH, 0o755 if entry.mode & 0o100 else 0o644
            return entry

        target = Path(f"{base_name}.tar.gz")
        target.parent.mkdir(parents=True, exist_ok=True)
        with (
            target.open("wb") as file,
            gzip.GzipFile("", "wb", fileobj=file, mtime=EPOCH) as packed,
            tarfile.open(fileobj=packed, mode="w") as archive,
        ):
            archive.add(base_dir, filter=plain)
        return str(target)


if __name__ == "__main__":
    setup(
        ext_modules=[CORE, *cythonize(CYTHON, compiler_directives={"language_level": 3})],
        options={"build_ext": {"parallel": os.cpu_count()}},
        cmdclass={"build_ext": BuildExtensions, "sdist": SourceArchive},
    )
