#!/usr/bin/env bash
# Builds tests/cpp/stress.cpp with the address, undefined-behaviour and thread sanitizers and
# the assertions of csrc/common/check.hpp, and runs it; so for a second each harness of fuzz/cpp.
# Then looks for symbols that the linker could merge across instruction sets.
set -euo pipefail
cd "$(dirname "$0")/../.."
CXX=${CXX:-g++}
build=$(mktemp -d)
trap 'rm -rf "$build"' EXIT

flags=(-std=c++17 -Icsrc -Wall -Wextra -Wno-psabi -Werror -pthread)
simd=(csrc/*/*_simd.cpp)
mapfile -t portable < <(printf '%s\n' csrc/{checks,common,evaluation,gram,matching}/*.cpp | grep -v '_simd\.cpp$')
if [[ $(uname -m) == x86_64 ]]; then
  x86=1 levels=(v2 v3 v4)
else
  x86=0 levels=(portable)
fi

compile_simd() { # flags...; prints the objects
  local level source object
  for level in "${levels[@]}"; do
    local march=()
    [[ $x86 == 1 ]] && march=("-march=x86-64-$level")
    for source in "${simd[@]}"; do
      object=$build/$level-$(basename "$source" .cpp).o
      "$CXX" "${flags[@]}" "$@" "${march[@]}" -DKERNELCORE_X86=$x86 -DKERNELCORE_ISA="$level" \
        -c "$source" -o "$object"
      echo "$object"
    done
  done
}

for sanitizer in address,undefined thread; do
  echo "== sanitizer: $sanitizer"
  sanitize=(-O1 -g -DKERNELCORE_ASSERT=1 -fsanitize="$sanitizer" -fno-sanitize-recover=all)
  objects=$(compile_simd "${sanitize[@]}")
  for source in "${portable[@]}"; do
    object=$build/$(basename "$source" .cpp).o
    "$CXX" "${flags[@]}" "${sanitize[@]}" -DKERNELCORE_X86=$x86 -c "$source" -o "$object"
    objects+=" $object"
  done
  # shellcheck disable=SC2086 # one object a word
  "$CXX" "${flags[@]}" "${sanitize[@]}" -DKERNELCORE_X86=$x86 tests/cpp/stress.cpp $objects \
    -o "$build/stress"
  "$build/stress"
  [[ $sanitizer == address,undefined ]] || continue
  for harness in fuzz/cpp/*.cpp; do
    [[ $harness != */driver.cpp ]] || continue
    echo "== harness: $(basename "$harness" .cpp)"
    # shellcheck disable=SC2086
    "$CXX" "${flags[@]}" -Ifuzz/cpp -Wno-deprecated-declarations "${sanitize[@]}" \
      -DKERNELCORE_X86=$x86 "$harness" fuzz/cpp/driver.cpp $objects -o "$build/harness"
    "$build/harness" 1
  done
done

echo "== linkage of the inner loops"
objects=$(compile_simd -O3 -fvisibility=hidden)
# shellcheck disable=SC2086
if nm -C $objects | grep -E ' [WVu] '; then
  echo "an inner loop defines symbols that the linker may merge across instruction sets" >&2
  exit 1
fi
echo "inner loops: internal linkage only"
