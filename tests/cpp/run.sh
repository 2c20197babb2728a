#!/usr/bin/env bash
# Builds the C++ tests with sanitizers and the assertions of csrc/common/check.hpp, on all cores, and
# runs them:
#   tests/cpp/run.sh                 # stress.cpp, and each harness fuzz_*.cpp on random bytes for a second,
#                                    # under the address and undefined-behaviour sanitizers; then looks for
#                                    # symbols that the linker could merge across instruction sets
#   tests/cpp/run.sh thread          # stress.cpp under the thread sanitizer
#   tests/cpp/run.sh fuzzer SECONDS  # each harness under libFuzzer; CXX is Clang. Inputs that reach
#                                    # something new stay in CORPUS, a folder outside of the tree
set -euo pipefail
cd "$(dirname "$0")/../.."
CXX=${CXX:-g++}
sanitizer=${1:-address,undefined}
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
program() { # name, flags...: links one, and prints it
  local name=$1
  shift
  # shellcheck disable=SC2086 # one object a word
  "$CXX" "${sanitize[@]}" -pthread "$@" "$build/$name.o" $objects -o "$build/$name"
  echo "$build/$name"
}

echo "== sanitizer: $sanitizer"
sanitize=(-O1 -g -DKERNELCORE_ASSERT=1 "-fsanitize=${sanitizer/fuzzer/address,undefined}" -fno-sanitize-recover=all)
[[ $sanitizer != fuzzer ]] || sanitize+=(-fsanitize=fuzzer-no-link -DKERNELCORE_LIBFUZZER)
tests=(fuzz_assignment fuzz_word_sequence)
[[ $sanitizer != thread ]] || tests=()
[[ $sanitizer == fuzzer ]] || tests=(stress "${tests[@]}")
for name in "${tests[@]}"; do # first: they take longest
  queue "$name.o" "tests/cpp/$name.cpp" "${sanitize[@]}" "-DKERNELCORE_X86=$x86" > /dev/null
done
objects=$(queue_simd sanitized "${sanitize[@]}")
for source in "${portable[@]}"; do
  objects+=" $(queue "$(basename "$source" .cpp).o" "$source" "${sanitize[@]}" "-DKERNELCORE_X86=$x86")"
done
inner=""
[[ $sanitizer != address,undefined ]] || inner=$(queue_simd plain -O3 -fvisibility=hidden)
compile

if [[ $sanitizer == fuzzer ]]; then
  CORPUS=${CORPUS:-${XDG_CACHE_HOME:-$HOME/.cache}/kernelcore/fuzz}
  for name in "${tests[@]}"; do
    mkdir -p "$CORPUS/$name"
    "$(program "$name" -fsanitize=fuzzer)" -max_total_time="${2:-60}" -timeout=30 -rss_limit_mb=4096 \
      -max_len=4096 -print_final_stats=1 -artifact_prefix="$CORPUS/$name-" "$CORPUS/$name"
  done
  exit
fi
for name in "${tests[@]}"; do
  echo "== $name"
  "$(program "$name")"
done
[[ -n $inner ]] || exit 0

echo "== linkage of the inner loops"
# shellcheck disable=SC2086
if nm -C $inner | grep -E ' [WVu] '; then
  echo "an inner loop defines symbols that the linker may merge across instruction sets" >&2
  exit 1
fi
echo "inner loops: internal linkage only"
