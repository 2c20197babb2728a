#!/usr/bin/env bash
# Builds tests/cpp/stress.cpp with the address and undefined-behaviour sanitizers, or the one given
# (thread), and the assertions of csrc/common/check.hpp, and runs it; without an argument also each
# harness of fuzz/cpp for a second. Then looks for symbols that the linker could merge across
# instruction sets. Objects are compiled on all cores.
set -euo pipefail
cd "$(dirname "$0")/../.."
CXX=${CXX:-g++}
build=$(mktemp -d)
trap 'rm -rf "$build"' EXIT

flags=(-std=c++17 -Icsrc -Wall -Wextra -Wno-psabi -Werror -pthread)
simd=(csrc/*/*_simd.cpp)
mapfile -t portable < <(printf '%s\n' csrc/{assignment,captions,common,histograms,ranks,scan}/*.cpp | grep -v '_simd\.cpp$')
if [[ $(uname -m) == x86_64 ]]; then
  x86=1 levels=(v2 v3 v4)
else
  x86=0 levels=(portable)
fi

commands=$build/commands # one a line
queue() { # object, source, flags...: adds a command, and prints the object
  local object=$build/$1 source=$2
  shift 2
  echo "$CXX ${flags[*]} $* -c $source -o $object" >> "$commands"
  echo "$object"
}
queue_simd() { # prefix, flags...
  local prefix=$1 level source
  shift
  for level in "${levels[@]}"; do
    local march=""
    [[ $x86 == 0 ]] || march=-march=x86-64-$level
    for source in "${simd[@]}"; do
      queue "$prefix-$level-$(basename "$source" .cpp).o" "$source" \
        "$@" $march "-DKERNELCORE_X86=$x86" "-DKERNELCORE_ISA=$level"
    done
  done
}
compile() { # all commands, on all cores
  xargs -P "$(nproc)" -d '\n' -n 1 sh -c < "$commands"
}

sanitizer=${1:-address,undefined}
echo "== sanitizer: $sanitizer"
sanitize=(-O1 -g -DKERNELCORE_ASSERT=1 "-fsanitize=$sanitizer" -fno-sanitize-recover=all)
x86flag=-DKERNELCORE_X86=$x86
stress=$(queue stress.o tests/cpp/stress.cpp "${sanitize[@]}" "$x86flag") # first: it takes longest
objects=$(queue_simd sanitized "${sanitize[@]}")
for source in "${portable[@]}"; do
  objects+=" $(queue "$(basename "$source" .cpp).o" "$source" "${sanitize[@]}" "$x86flag")"
done
harnesses=()
if [[ $sanitizer == address,undefined ]]; then
  for source in fuzz/cpp/*.cpp; do
    harnesses+=("$(basename "$source" .cpp)")
    queue "harness-${harnesses[-1]}.o" "$source" "${sanitize[@]}" "$x86flag" -Ifuzz/cpp \
      -Wno-deprecated-declarations > /dev/null
  done
fi
inner=$(queue_simd plain -O3 -fvisibility=hidden)
compile

# shellcheck disable=SC2086 # one object a word
"$CXX" "${sanitize[@]}" -pthread "$stress" $objects -o "$build/stress"
"$build/stress"
for name in "${harnesses[@]}"; do
  [[ $name != driver ]] || continue
  echo "== harness: $name"
  # shellcheck disable=SC2086
  "$CXX" "${sanitize[@]}" -pthread "$build/harness-$name.o" "$build/harness-driver.o" $objects -o "$build/harness"
  "$build/harness" 1
done

echo "== linkage of the inner loops"
# shellcheck disable=SC2086
if nm -C $inner | grep -E ' [WVu] '; then
  echo "an inner loop defines symbols that the linker may merge across instruction sets" >&2
  exit 1
fi
echo "inner loops: internal linkage only"
