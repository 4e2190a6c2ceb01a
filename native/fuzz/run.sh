#!/bin/sh
# Fuzz the trace scanner: native/fuzz/run.sh [SECONDS] [WORK FOLDER]
# Needs clang++ with libFuzzer; exits with 77 where there is none. Crashes are left in the folder.
set -eu

seconds=${1:-60}
here=$(cd "$(dirname "$0")" && pwd)
native=$(dirname "$here")
work=${2:-"$native/../build/fuzz"}

if ! command -v clang++ >/dev/null 2>&1; then
    echo "fuzz: no clang++ here; the scanner is not fuzzed" >&2
    exit 77
fi

mkdir -p "$work/seeds" "$work/corpus"
clang++ -std=c++17 -O1 -g -fno-omit-frame-pointer -fsanitize=fuzzer,address,undefined \
    -fno-sanitize-recover=undefined -I"$native" -o "$work/scan_fuzz" "$here/scan_fuzz.cpp" \
    "$native"/scan*.cpp "$native"/string_table.cpp -lpthread

# A seed is 4 bytes that choose threads, window and chunk size, then a document.
seed() {
    printf '%b%s' "$2" "$3" >"$work/seeds/$1"
}
event='{"ph":"X","cat":"cpu_op","name":"aten::mm","pid":1,"tid":2,"ts":1.5,"dur":2.25,"args":{"correlation":7,"Input Dims":[[2,3],[]],"kind":"a"}}'
flow='{"ph":"f","id":"0x1f","bp":"e","pid":0,"tid":7,"ts":"2","cat":"ac2g","name":"ac2g"}'
counter='{"ph":"C","pid":"GPU 0","tid":"","ts":-1e3,"name":"n","args":{"a":1.5,"b":-2}}'
kineto=$(printf '{\n  "schemaVersion": 1,\n  "traceEvents": [\n  {\n    "ph": "X",\n    "name": "k"\n    ,\n    "args": {\n      "kind": "x"\n    }\n  },\n  {\n    "ph": "i", "s": "g"\n  }\n  ],\n  "traceName": "a]b"\n}\n')
seed object '\001\040\001\007' "{\"h\":{\"a\":[1]},\"traceEvents\":[$event,$flow,$counter],\"traceName\":\"]\"}"
seed array '\002\010\000\003' "[$event, $event, $flow]"
seed kineto '\001\100\000\020' "$kineto"
seed damaged '\002\020\000\005' "[$event,{\"ph\":\"X\",\"name\":\"a\"b\"},$flow,{\"ph\":\"X\",\"name\":\"c\\d\"},$counter]"
seed repaired '\002\020\000\005' '[{"ph":"X","name":"\ud800","ts":NaN,"dur":null,},{"name":"\u00e9\ud83d\ude00","ph":"C","args":{"a":-inf}}'
seed nested '\001\004\000\002' '[{"args":{"l":[{"ph":"X"},{"name":"no"},{"ts":1}]},"ph":"X"},{"ph":"b","id2":{"local":"x"}}]'
seed documents '\001\012\000\011' "{\"traceEvents\":[$flow]}{\"traceEvents\":[$flow]}"
seed cut '\001\012\000\011' "{\"traceEvents\":[$event,{\"ph\":\"X\",\"name\":\"},{\\\"ph\\\":"

cat >"$work/words.dict" <<'DICT'
"\"ph\":\"X\""
"\"name\":"
"\"args\":{"
"\"ts\":"
"\"id2\":{\"local\":"
"\"traceEvents\":["
"},{\"ph\":"
"},\x0a  {\x0a    \"name\": "
"\\ud83d\\ude00"
"\\u"
"-Infinity"
"null"
"18446744073709551615"
"1e-400"
"\xef\xbb\xbf"
DICT

cd "$work"
exec ./scan_fuzz -max_total_time="$seconds" -max_len=4096 -timeout=120 -rss_limit_mb=2048 \
    -dict=words.dict -print_final_stats=1 corpus seeds
