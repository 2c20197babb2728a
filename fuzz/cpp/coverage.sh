#!/usr/bin/env bash
# Lines of csrc that run at all: in the C++ test, in a short run of every fuzz harness, and in
# the Python tests of kernels, matching and ranks. Prints a table by file and fails below LEAST
# per cent. Needs gcc and its gcov. TESTS names other Python tests, BUILD a folder that stays.
#
#     fuzz/cpp/coverage.sh [SECONDS of each harness]
set -euo pipefail
cd "$(dirname "$0")/../.."
seconds=${1:-5}
LEAST=${LEAST:-95}
build=${BUILD:-$(mktemp -d)}
[[ -n ${BUILD:-} ]] || trap 'rm -rf "$build"' EXIT
mkdir -p "$build/kernelcore"
rm -f "$build"/*.gcda

x86=0 levels=(portable)
[[ $(uname -m) != x86_64 ]] || { x86=1 levels=(v2 v3 v4); }
flags=(-std=c++17 -O0 --coverage -fPIC -fprofile-update=atomic -Icsrc -Ifuzz/cpp -Wno-psabi -pthread
  -DKERNELCORE_X86=$x86)
compile() { # object source flags...
  [[ $1 -nt $2 ]] || g++ "${flags[@]}" "${@:3}" -c "$2" -o "$1"
}

echo "== build for gcov"
core=() bindings=()
for source in csrc/{assignment,captions,common,histograms,ranks,scan}/*.cpp; do
  name=$(basename "$source" .cpp)
  if [[ $name != *_simd ]]; then
    compile "$build/$name.o" "$source"
    core+=("$build/$name.o")
    continue
  fi
  for level in "${levels[@]}"; do
    march=()
    [[ $x86 == 1 ]] && march=("-march=x86-64-$level")
    compile "$build/$level-$name.o" "$source" -DKERNELCORE_ISA="$level" "${march[@]}"
    core+=("$build/$level-$name.o")
  done
done
includes=$(python -c 'import pybind11, sysconfig
print("-I" + pybind11.get_include(), "-I" + sysconfig.get_path("include"))')
for source in csrc/bindings/*.cpp; do
  name=$(basename "$source" .cpp)
  # shellcheck disable=SC2086 # two includes
  compile "$build/$name.o" "$source" -fvisibility=hidden $includes
  bindings+=("$build/$name.o")
done

echo "== the C++ test"
g++ "${flags[@]}" tests/cpp/stress.cpp "${core[@]}" -o "$build/stress"
"$build/stress"

echo "== the fuzz harnesses, $seconds s each"
for source in fuzz/cpp/*.cpp; do
  name=$(basename "$source" .cpp)
  [[ $name != driver ]] || continue
  g++ "${flags[@]}" "$source" fuzz/cpp/driver.cpp "${core[@]}" -o "$build/fuzz-$name"
  "$build/fuzz-$name" "$seconds" 1
done

echo "== the Python tests"
suffix=$(python -c 'import sysconfig; print(sysconfig.get_config_var("EXT_SUFFIX"))')
cp -r kernelcore "$build/"
rm -f "$build"/kernelcore/_core*.so
g++ -shared --coverage -pthread "${bindings[@]}" "${core[@]}" -o "$build/kernelcore/_core$suffix"
tests=${TESTS:-tests/kernels tests/matching tests/evaluation/test_ranks.py tests/evaluation/test_streaming.py tests/test_boundary.py tests/test_scan.py tests/fuzz/test_compiled.py}
# shellcheck disable=SC2086 # one file a word
PYTHONPATH=$build pytest -q -p no:cacheprovider $tests

echo "== lines that ran"
python -m fuzz.coverage "$build" "$LEAST"
