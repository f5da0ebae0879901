#!/usr/bin/env bash
# What only a real GPU can prove, in under 4 minutes. Prints a short table; says clearly when there is no GPU.
# Exits with 0 when nothing failed, and without a GPU, where nothing is checked; with 1 when a row failed.
#
# Usage: tests/gpu/check.sh [MEMSCOPE] [KERNEL_TESTS]
#   MEMSCOPE      the memscope binary           (default: target/release/memscope)
#   KERNEL_TESTS  the test binary of the kernels (default: the newest target/release/deps/numbers-*)
# Both are built on any machine:
#   cargo build --release && cargo test --release -p memscope-kernels --test numbers --no-run
# nvcc and PyTorch are used where they are.
set -uo pipefail
cd "$(dirname "$0")/../.."
memscope=${1:-target/release/memscope}
kernel_tests=${2:-$(ls -t target/release/deps/numbers-* 2>/dev/null | grep -v '\.d$' | head -1)}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

if ! command -v nvidia-smi >/dev/null || ! nvidia-smi -L >/dev/null 2>&1; then
    echo "no GPU on this machine: nothing was checked (nvidia-smi finds no device)"
    exit 0
fi

row() { printf '%-34s %-7s %s\n' "$1" "$2" "$3"; [ "$2" = failed ] && failed=1; }

# json FILE EXPRESSION: one value of a report, by Python.
json() { python3 -c 'import json,sys; r=json.load(open(sys.argv[1])); print(eval(sys.argv[2]))' "$1" "$2"; }

# same NAME EXPECTED ACTUAL
same() { if [ "$2" = "$3" ]; then row "$1" ok "$3"; else row "$1" failed "expected $2, got $3"; fi; }

nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader | head -1
printf '%-34s %-7s %s\n' check result detail

"$memscope" doctor >"$work/doctor" 2>&1 && row doctor ok "$(grep -c '^ok' "$work/doctor") of $(grep -cE '^(ok|limited|problem)' "$work/doctor") lines good" \
    || row doctor failed "$(grep -m1 -E '^problem' "$work/doctor")"

# 1. Kernels against their host references.
if [ -x "$kernel_tests" ]; then
    "$kernel_tests" gpu --nocapture >"$work/kernels" 2>&1
    status=$?
    detail=$(grep -m1 -E 'SKIPPED|panicked|agrees with' "$work/kernels" || grep 'test result' "$work/kernels")
    if [ $status -ne 0 ]; then row "kernels = host references" failed "$detail"
    elif grep -q SKIPPED "$work/kernels"; then row "kernels = host references" skipped "$detail"
    else row "kernels = host references" ok "$detail"; fi
else
    row "kernels = host references" skipped "the test binary of the kernels is not there"
fi

# 2. The sample on the GPU: byte-exact categories, falling loss.
"$memscope" run -q -f -o "$work/g.mscope" --json "$work/g.json" -- "$memscope" sample gpt --model gpt2-124m --batch 4 --seq 1024 --steps 2 >"$work/g.out" 2>&1
same "gpt2-124m: status" 0 $?
if [ -s "$work/g.json" ]; then
    same "gpt2-124m: weights" 497759232 "$(json "$work/g.json" 'r["category_peaks"]["weights"]["bytes"]')"
    same "gpt2-124m: gradients" 497759232 "$(json "$work/g.json" 'r["category_peaks"]["gradients"]["bytes"]')"
    same "gpt2-124m: optimizer" 995518464 "$(json "$work/g.json" 'r["category_peaks"]["optimizer"]["bytes"]')"
    same "gpt2-124m: events dropped" 0 "$(json "$work/g.json" 'r["dropped_events"]')"
    row "gpt2-124m: unexplained" info "$(json "$work/g.json" 'r["devices"][0]["ledger_at_peak"]["device"]')"
fi
"$memscope" run -q -f -o "$work/t.mscope" -- "$memscope" sample gpt --model tiny --steps 30 >"$work/t.out" 2>&1
same "tiny: status" 0 $?
row "tiny: loss" info "$(grep -m1 loss "$work/t.out") … $(grep loss "$work/t.out" | tail -1)"
# learns FLAGS: the tiny GPT trains, and its loss falls.
learns() {
    local fallen
    # shellcheck disable=SC2086
    "$memscope" run -q -f -o "$work/t.mscope" -- "$memscope" sample gpt --model tiny --steps 30 $1 >"$work/t.out" 2>&1
    fallen=$(awk '$3 == "loss" { if (!first) first = $4; last = $4 } END { print (last < first - 0.5) ? "fell" : "stayed", first, last }' "$work/t.out")
    case $fallen in fell*) row "tiny $1" ok "loss $fallen" ;; *) row "tiny $1" failed "loss $fallen" ;; esac
}
for flags in "--optimizer sgd" "--optimizer momentum" "--optimizer adamw8bit" "--optimizer adafactor" "--foreach" \
    "--optimizer-in-backward" "--accumulate 4" "--zero-grad zero" "--offload optimizer" "--checkpoint every=2" \
    "--checkpoint selective" "--attention flash" "--chunked-loss 4" "--compress-activations int8" "--share-layers 2" \
    "--share-qk" "--lora 8 --lr 0.02" "--precision amp-fp16" "--precision amp-bf16" "--precision bf16" \
    "--precision amp-bf16 --attention flash --chunked-loss 4" "--allocator caching" \
    "--allocator caching --workload varying --empty-cache"; do
    learns "$flags"
done
# Ranks, each on a GPU of its own, which exchange through NCCL where it is installed; a line of the sample says so.
if [ "$(nvidia-smi -L | grep -c '^GPU')" -ge 2 ]; then
    for flags in "--parallel ddp" "--parallel zero1" "--parallel zero2" "--parallel zero3" "--parallel zero3 --precision amp-fp16"; do
        learns "--ranks 2 $flags"
    done
    row "ranks: exchange" info "$(grep -m1 'ranks exchange' "$work/t.out")"
    "$memscope" run -q -f -o "$work/z.mscope" --json "$work/z.json" -- "$memscope" sample gpt --model gpt2-124m --batch 4 --seq 1024 \
        --steps 2 --ranks 2 --parallel zero2 >"$work/z.out" 2>&1
    same "gpt2-124m zero2: status" 0 $?
    if [ -s "$work/z.json" ]; then
        # At most: the token table's gradient and half of the others but the position table's; half of both moments.
        same "gpt2-124m zero2: gradients" 401696256 "$(json "$work/z.json" 'r["category_peaks"]["gradients"]["bytes"]')"
        same "gpt2-124m zero2: optimizer" 497759232 "$(json "$work/z.json" 'r["category_peaks"]["optimizer"]["bytes"]')"
        same "gpt2-124m zero2: events dropped" 0 "$(json "$work/z.json" 'r["dropped_events"]')"
    fi
else
    row "ranks" skipped "there is one GPU, and each rank needs one"
fi
"$memscope" run -q -f -o "$work/c.mscope" --json "$work/c.json" -- "$memscope" sample resnet --model 18 --batch 2 --steps 2 >"$work/c.out" 2>&1
same "resnet 18: status" 0 $?
if [ -s "$work/c.json" ]; then
    same "resnet 18: weights" 46796448 "$(json "$work/c.json" 'r["category_peaks"]["weights"]["bytes"]')"
    same "resnet 18: activations" 43201856 "$(json "$work/c.json" 'r["category_peaks"]["activations"]["bytes"]')"
fi
"$memscope" run -q -f -o "$work/t.mscope" -- "$memscope" sample resnet --model tiny --steps 30 >"$work/t.out" 2>&1
same "tiny resnet: status" 0 $?
row "tiny resnet: loss" info "$(grep -m1 loss "$work/t.out") … $(grep loss "$work/t.out" | tail -1)"

# 3. A CUDA runtime, linked statically, reaches the driver by cuGetProcAddress: every call is seen.
if command -v nvcc >/dev/null; then
    cat >"$work/r.cu" <<'END'
#include <cstdio>
int main() {
    void *held[64];
    int bad = 0;
    for (int i = 0; i < 64; i++) bad |= cudaMalloc(&held[i], (i + 1) << 20);
    for (int i = 0; i < 64; i++) bad |= cudaFree(held[i]);
    for (int i = 0; i < 32; i++) { bad |= cudaMallocAsync(&held[0], 1 << 20, 0); bad |= cudaFreeAsync(held[0], 0); }
    cudaDeviceSynchronize();
    printf("%d\n", bad);
    return bad;
}
END
    for kind in static shared; do
        if nvcc -cudart "$kind" -o "$work/r" "$work/r.cu" 2>"$work/nvcc"; then
            "$memscope" run -q -f -o "$work/r.mscope" --json "$work/r.json" -- "$work/r" >/dev/null 2>&1
            same "cudart $kind: allocations" 96 "$(json "$work/r.json" 'r["totals"]["allocations"]')"
            same "cudart $kind: peak bytes" $((64 * 65 / 2 * 1048576)) "$(json "$work/r.json" 'r["devices"][0]["peak"]["live"]["bytes"]')"
        else
            row "cudart $kind" failed "$(head -1 "$work/nvcc")"
        fi
    done
else
    row "cudart" skipped "no nvcc"
fi

# 4. PyTorch, unchanged: its own counter of reserved bytes is the driver's allocations.
if python3 -c 'import torch; assert torch.cuda.is_available()' 2>/dev/null; then
    cat >"$work/p.py" <<'END'
import torch
model = torch.nn.Sequential(*[torch.nn.Linear(2048, 2048) for _ in range(8)]).cuda()
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(3):
    model(torch.randn(256, 2048, device="cuda")).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
print(torch.cuda.max_memory_reserved())
END
    reserved=$("$memscope" run -q -f -o "$work/p.mscope" --json "$work/p.json" -- python3 "$work/p.py" 2>"$work/p.err")
    same "PyTorch: peak reserved" "$reserved" "$(json "$work/p.json" 'r["devices"][0]["peak"]["reserved"]["bytes"]')"
else
    row "PyTorch" skipped "not installed, or it finds no GPU"
fi

# 5. An OOM of the real driver.
"$memscope" run -q -f -o "$work/o.mscope" --json "$work/o.json" -- "$memscope" sample gpt --model gpt2-xl --batch 512 --steps 1 >/dev/null 2>&1
status=$?
[ $status -ne 0 ] && row "OOM: status" ok "$status" || row "OOM: status" failed 0
same "OOM: found" True "$(json "$work/o.json" 'any(f["kind"] == "oom" for f in r["findings"])')"

# 6. top against nvidia-smi, and the dashboard on a pseudo-terminal.
"$memscope" top --once --json >"$work/top.json" 2>"$work/top.err"
same "top: status" 0 $?
smi() { nvidia-smi --query-gpu="$1" --format=csv,noheader,nounits | head -1 | tr -d ' '; }
if [ -s "$work/top.json" ]; then
    same "top: GPUs" "$(nvidia-smi -L | grep -c '^GPU')" "$(json "$work/top.json" 'len(r["devices"])')"
    same "top: UUID" "$(smi uuid)" "$(json "$work/top.json" 'r["devices"][0]["uuid"]')"
    same "top: MiB in all" "$(smi memory.total)" "$(json "$work/top.json" 'r["devices"][0]["memory_total"] >> 20')"
    same "top: W at most" "$(smi power.limit | cut -d. -f1)" "$(json "$work/top.json" 'r["devices"][0]["power_limit_milliwatts"] // 1000')"
    row "top: now" info "$(json "$work/top.json" '{k: v for k, v in r["devices"][0].items() if v is not None and k not in ("uuid", "name")}')"
fi
cat >"$work/dashboard.py" <<'END'
import fcntl, os, pty, select, signal, struct, sys, termios, time
pid, master = pty.fork()
if pid == 0:
    os.environ.update(TERM="xterm-256color", COLORTERM="truecolor", LANG="C.UTF-8")
    os.execv(sys.argv[1], sys.argv[1:])
fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
seen, keys, begun = b"", [(4, b"p"), (5, b"a"), (6, b"l"), (6.5, b"o"), (9, b"q"), (9.3, b"e")], time.time()
while time.time() - begun < 60:
    if keys and time.time() - begun > keys[0][0]:
        os.write(master, keys.pop(0)[1])
    if select.select([master], [], [], 0.1)[0]:
        try:
            data = os.read(master, 65536)
        except OSError:
            break
        if not data:
            break
        seen += data
        if b"\x1b[6n" in data:
            os.write(master, b"\x1b[1;1R")
open(os.environ["SCREEN_FILE"], "wb").write(seen)
_, status = os.waitpid(pid, 0)
print(os.waitstatus_to_exitcode(status))
END
SCREEN_FILE="$work/screen" timeout 90 python3 "$work/dashboard.py" "$memscope" run --tui -f -o "$work/d.mscope" -- "$memscope" sample gpt --model gpt2-124m --batch 4 --seq 512 --steps 100000 >"$work/d.status" 2>&1
# The program is ended by SIGINT, and memscope dies of it as the program did.
same "dashboard: ended by its key" -2 "$(tail -1 "$work/d.status")"
same "dashboard: profile" True "$([ -s "$work/d.mscope" ] && echo True)"
[ -n "${OUT:-}" ] && cp "$work/screen" "$OUT/screen"

echo "$SECONDS s"
exit $failed
