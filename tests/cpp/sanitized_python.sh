#!/usr/bin/env bash
# Builds the extensions with the address and undefined-behaviour sanitizers and the assertions of
# csrc, and runs the tests of kernels and matching and their properties, or those given, on them. Needs a Python with the test requirements.
set -euo pipefail
cd "$(dirname "$0")/../.."
root=$PWD
[[ $# -gt 0 ]] || set -- tests/kernels tests/matching tests/properties/test_kernels.py tests/properties/test_matching.py
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

cp -R csrc kernelcore setup.py pyproject.toml README.md LICENSE "$scratch"
find "$scratch" -name '*.so' -delete
sanitize="-O1 -g -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=all -DKERNELCORE_ASSERT=1"
(cd "$scratch" && CFLAGS="$sanitize" CXXFLAGS="$sanitize" LDFLAGS="-fsanitize=address,undefined" \
  python setup.py --quiet build_ext --inplace)

# Python itself is not sanitized: the runtime comes first, and what Python never frees is no leak.
runtime=$(for library in libasan.so libubsan.so libstdc++.so; do "${CC:-gcc}" -print-file-name=$library; done)
# This folder, whose own extensions may be built in place, must not come before the scratch.
sanitized() {
  LD_PRELOAD=${runtime//$'\n'/ } ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1 \
    PYTHONPATH=$scratch PYTHONSAFEPATH=1 python "$@"
}
sanitized -c "import kernelcore; assert kernelcore.__file__.startswith('$scratch'), kernelcore.__file__"
sanitized -m pytest -q -n 2 --dist loadfile -p no:cacheprovider --rootdir "$root" "$@"
