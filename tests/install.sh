#!/usr/bin/env bash
# `cargo install --path .` into an empty prefix, then the binary alone in a folder of its own, with the target folder out of
# the way and an empty cache: `memscope demo` works. Prints one line a check.
set -euo pipefail
cd "$(dirname "$0")/.."
target=$(cargo metadata --format-version 1 --no-deps | python3 -c 'import json,sys; print(json.load(sys.stdin)["target_directory"])')
work=$(mktemp -d)
# The folder is moved within its own file system, so that this costs nothing.
away="$target.away-$$"
trap 'if [ -d "$away" ]; then mv "$away" "$target"; fi; rm -rf "$work"' EXIT

cargo install --quiet --locked --path . --root "$work/prefix"
ls "$work/prefix/bin" | grep -qx memscope && echo "ok      cargo install leaves bin/memscope"

mkdir "$work/alone"
cp "$work/prefix/bin/memscope" "$work/alone/"
rm -rf "$work/prefix"
mv "$target" "$away"
cd "$work/alone"
XDG_CACHE_HOME="$work/cache" ./memscope demo -o demo.mscope --json demo.json >out 2>err || { cat err; exit 1; }
grep -q "Peak" err && [ -s demo.mscope ] && echo "ok      the copied binary alone: demo, profile, report"
python3 - <<'END'
import json
report = json.load(open("demo.json"))
assert report["exit_status"] == 0 and report["dropped_events"] == 0 and report["peak"]["bytes"] > 0, report
print("ok      its report:", report["totals"]["allocations"], "allocations, peak", report["peak"]["bytes"], "bytes")
END
