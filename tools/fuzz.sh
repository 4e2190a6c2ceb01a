#!/usr/bin/env bash
# Fuzz every harness in native/fuzz under AddressSanitizer: tools/fuzz.sh [SECONDS for each].
set -euo pipefail
cd "$(dirname "$0")/.."

seconds="${1:-60}"
compiler="${FUZZ_CXX:-clang++}"
out=fuzz-out

command -v "$compiler" >/dev/null || {
    echo "trnscope: fuzzing needs clang with libFuzzer (Debian, Ubuntu: apt-get install clang and the matching libclang-rt-NN-dev), or set FUZZ_CXX" >&2
    exit 1
}

# All but the bindings: those need Python.
sources=()
for source in native/*.cpp; do
    case "$source" in
        native/bindings*.cpp | native/module.cpp) ;;
        *) sources+=("$source") ;;
    esac
done

objects="$out/objects"
mkdir -p "$objects"
flags=(-std=c++17 -O1 -g -fno-omit-frame-pointer -fsanitize=fuzzer-no-link,address -Inative)
printf '%s\n' "${sources[@]}" | xargs -P "$(nproc)" -I{} sh -c \
    '"$0" "$@" -c {} -o "'"$objects"'/$(basename {} .cpp).o"' "$compiler" "${flags[@]}"

for harness in native/fuzz/*.cpp; do
    name="$(basename "$harness" .cpp)"
    corpus="$out/corpus-$name"
    seeds=(docs/examples)
    [ -d native/fuzz/seeds ] && seeds+=(native/fuzz/seeds)
    mkdir -p "$corpus" "$out/found"
    "$compiler" "${flags[@]}" -fsanitize=fuzzer "$harness" "$objects"/*.o -o "$out/$name" -pthread
    echo "trnscope: fuzzing $name for $seconds s"
    "$out/$name" "$corpus" "${seeds[@]}" -max_total_time="$seconds" -timeout=20 -rss_limit_mb=2048 \
        -max_len=65536 -print_final_stats=1 -artifact_prefix="$out/found/" -verbosity=0
done
