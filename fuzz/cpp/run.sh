#!/usr/bin/env bash
# Fuzzes csrc without Python, under the address and undefined-behaviour sanitizers: each harness
# for so many seconds, with libFuzzer where clang is found, else with random bytes. Executions
# go into the ledger. Inputs that reach something new stay in CORPUS, outside of the tree; those
# in fuzz/corpus/cpp.HARNESS found a fault once and are run first.
#
#     fuzz/cpp/run.sh [SECONDS [HARNESS...]]
set -euo pipefail
cd "$(dirname "$0")/../.."
seconds=${1:-60}
shift || true
CORPUS=${CORPUS:-${XDG_CACHE_HOME:-$HOME/.cache}/kernelcore/fuzz}
build=${BUILD:-$(mktemp -d)}
[[ -n ${BUILD:-} ]] || trap 'rm -rf "$build"' EXIT
mkdir -p "$build"

CLANG=${CLANG:-$(command -v clang++ || ls -v /usr/lib/llvm-*/bin/clang++ 2> /dev/null | tail -n 1 || true)}
sanitize=(-O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all -DKERNELCORE_ASSERT=1)
if [[ -n $CLANG ]] && echo 'extern "C" int LLVMFuzzerTestOneInput(const unsigned char*, unsigned long) { return 0; }' |
  "$CLANG" -x c++ -fsanitize=fuzzer - -o "$build/probe" 2> /dev/null; then
  CXX=$CLANG instrument=(-fsanitize=fuzzer-no-link) link=(-fsanitize=fuzzer) driver=()
else
  CXX=${CXX:-g++} instrument=() link=() driver=(fuzz/cpp/driver.cpp)
fi

flags=(-std=c++17 -Icsrc -Ifuzz/cpp -Wall -Wextra -Wno-psabi -Wno-deprecated-declarations -pthread "${sanitize[@]}")
if [[ $(uname -m) == x86_64 ]]; then
  x86=1 levels=(v2 v3 v4)
else
  x86=0 levels=(portable)
fi
compile() { # object source flags...
  local object=$1 source=$2
  shift 2
  [[ $object -nt $source ]] ||
    "$CXX" "${flags[@]}" "${instrument[@]}" -DKERNELCORE_X86=$x86 "$@" -c "$source" -o "$object"
  objects+=("$object")
}

echo "== build with $CXX"
objects=()
for source in csrc/{assignment,captions,common,histograms,ranks,scan}/*.cpp; do
  name=$(basename "$source" .cpp)
  if [[ $name != *_simd ]]; then
    compile "$build/$name.o" "$source"
    continue
  fi
  for level in "${levels[@]}"; do
    march=()
    [[ $x86 == 1 ]] && march=("-march=x86-64-$level")
    compile "$build/$level-$name.o" "$source" -DKERNELCORE_ISA="$level" "${march[@]}"
  done
done

harnesses=("$@")
[[ $# -gt 0 ]] || harnesses=(histogram_intersection word_sequence tag_rank word_assignment
  assignment set_similarity count_ranks)
failed=0
for name in "${harnesses[@]}"; do
  "$CXX" "${flags[@]}" "${instrument[@]}" "${link[@]}" -DKERNELCORE_X86=$x86 \
    "fuzz/cpp/$name.cpp" "${driver[@]}" "${objects[@]}" -o "$build/fuzz-$name"
  mkdir -p "$CORPUS/$name"
  log=$build/$name.log
  if [[ ${#driver[@]} -gt 0 ]]; then
    arguments=("$seconds")
  else
    arguments=(-max_total_time="$seconds" -timeout=30 -rss_limit_mb=4096 -max_len=4096
      -print_final_stats=1 -artifact_prefix="$CORPUS/$name-" "$CORPUS/$name")
  fi
  findings=0
  found_before=(fuzz/corpus/cpp."$name"/*)
  if [[ -e ${found_before[0]} ]]; then
    "$build/fuzz-$name" "${found_before[@]}" > "$log" 2>&1 || findings=1
  fi
  [[ $findings == 1 ]] || "$build/fuzz-$name" "${arguments[@]}" > "$log" 2>&1 || findings=1
  executions=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log" | tail -n 1)
  echo "cpp.$name: ${executions:-0} executions in $seconds s, $findings findings"
  python -m fuzz.ledger --add "cpp.$name" "${executions:-0}" "$seconds" "$findings"
  if [[ $findings == 1 ]]; then
    failed=1
    grep -v '^#[0-9]*.*cov:' "$log" | tail -n 40
  fi
done
exit $failed
