#!/usr/bin/env bash
# Runs programs of an old glibc under memscope: that the preload loads there is one thing (its symbol versions say so), that it records
# and changes nothing another. Not part of the checks, because the packages come from a mirror that drops old suites.
#
#   tests/old-glibc.sh MEMSCOPE [SUITE]      MEMSCOPE: the binary; SUITE: of Debian, bullseye if not given (glibc 2.31)
#
# Owns: a temporary folder into which the packages are unpacked. Nothing is installed. Prints one line for each program.
set -euo pipefail
memscope=$(realpath "${1:?the memscope binary}")
suite=${2:-bullseye}
root=$(cd "$(dirname "$0")/.." && pwd)
mirror=${DEBIAN_MIRROR:-$(apt-get indextargets --format '$(REPO_URI)' | grep -m 1 '/debian/*$')}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work"/{lists/partial,cache/archives/partial,packages,old,driver,home}
touch "$work/status"
echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror $suite main" >"$work/sources.list"
apt=(apt-get -qq -o Dir::Etc::sourcelist="$work/sources.list" -o Dir::Etc::sourceparts=- -o Dir::State::lists="$work/lists"
    -o Dir::Cache="$work/cache" -o Dir::State::status="$work/status" -o Acquire::Check-Valid-Until=false -o APT::Sandbox::User=root)
"${apt[@]}" update
(cd "$work/packages" && "${apt[@]}" download libc6 busybox python3.9-minimal libpython3.9-minimal zlib1g libexpat1 libgcc-s1)
for package in "$work"/packages/*.deb; do dpkg-deb -x "$package" "$work/old"; done

libraries=$work/old/lib/x86_64-linux-gnu
loader=$(realpath "$libraries/ld-linux-x86-64.so.2")
version=$("$loader" "$libraries/libc.so.6" | head -n 1 | grep -oE 'version [0-9.]+[0-9]' | cut -d' ' -f2)
echo "glibc $version of $suite"

# Without the start files of this system, which want its own glibc. The driver needs libdl, as NVIDIA's does.
build() {
    cc -O1 -nostdlib -I "$root/tests/programs" "$@" -Wl,--as-needed "$libraries"/lib{c.so.6,dl.so.2,pthread.so.0} "$loader"
}
build -shared -fPIC -Wl,-Bsymbolic,-soname,libcuda.so.1 -o "$work/driver/libcuda.so.1" "$root/tests/programs/null_driver.c" \
    -Wl,--no-as-needed "$libraries/libdl.so.2"
cat >"$work/linked.c" <<'C'
#include "driver_api.h"
#include <stdio.h>
int calls(CUresult (*init)(unsigned), CUresult (*allocate)(CUdeviceptr *, size_t), CUresult (*release)(CUdeviceptr)) {
    CUdeviceptr kept[12];
    int bad = init(0);
    for (int i = 0; i < 12; i++) bad |= allocate(&kept[i], 1000);
    for (int i = 0; i < 7; i++) bad |= release(kept[i]);
    printf("%d\n", bad);
    return 4;
}
#ifndef FIND
int main(void) { return calls(cuInit, cuMemAlloc_v2, cuMemFree_v2); }
#else
#include <dlfcn.h>
int main(void) {
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    return calls(dlsym(driver, "cuInit"), dlsym(driver, "cuMemAlloc_v2"), dlsym(driver, "cuMemFree_v2"));
}
#endif
C
cat >"$work/alone.c" <<'C'
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
int main(void) {
    char name[16] = "";
    int set = prctl(PR_SET_NAME, "another"), got = prctl(PR_GET_NAME, name), refused = prctl(-1, 0, 0, 0, 0);
    printf("%d %d %s %d %s\n", set, got, name, refused, strerror(errno));
    return 5;
}
C
cat >"$work/start.c" <<'C'
void exit(int status);
int main(int count, char **arguments);
static __attribute__((used)) void begin(long *stack) { exit(main((int)*stack, (char **)(stack + 1))); }
__asm__(".globl _start\n_start: mov %rsp, %rdi\n and $-16, %rsp\n call begin\n");
C
# program NAME SOURCE FLAGS...
program() {
    local name=$1 source=$2
    shift 2
    build -no-pie -fno-pie -o "$work/$name" "$work/start.c" "$work/$source" "$@" \
        -Wl,-dynamic-linker,"$loader",--disable-new-dtags,-rpath,"$libraries:$work/driver"
}
program linked linked.c "$work/driver/libcuda.so.1"
program finds linked.c -DFIND
program alone alone.c

bad=0
export XDG_CACHE_HOME=$work/home XDG_CONFIG_HOME=$work/home XDG_RUNTIME_DIR=$work/home
# check NAME EXPECTED COMMAND...: same output and status; EXPECTED is allocations and frees, or part of the reason why there are none.
check() {
    local name=$1 expected=$2 plain status=0 recorded under=0
    shift 2
    plain=$("$@" 2>&1) || status=$?
    recorded=$("$memscope" run -q -f -o "$work/p.mscope" --json "$work/r.json" -- "$@" 2>&1) || under=$?
    if [ "$plain/$status" != "$recorded/$under" ]; then
        echo "  $name: DIFFERS: status $status, under memscope $under"; diff <(echo "$plain") <(echo "$recorded") || true; bad=1
        return
    fi
    local found
    found=$(python3 -c 'import json, sys; r = json.load(open(sys.argv[1])); t = r["totals"]
print(t["allocations"], t["frees"], *(f["text"] if "text" in f else json.dumps(f) for f in r["findings"]))' "$work/r.json")
    case $found in
        *"$expected"*) echo "  $name: status $status and output as ever; $expected" ;;
        *) echo "  $name: expected '$expected', found: $found"; bad=1 ;;
    esac
}
nothing="no process of the program loaded the CUDA driver"
check "program linked with the driver" "12 7" "$work/linked"
check "program that looks the driver up" "12 7" "$work/finds"
check "program without libdl" "$nothing" "$work/alone"
run=("$loader" --library-path "$libraries:$work/old/usr/lib/x86_64-linux-gnu")
check "busybox" "$nothing" "${run[@]}" "$work/old/bin/busybox" sh -c 'echo $((6 * 7)); exit 5'
check "Python 3.9" "$nothing" env PYTHONHOME="$work/old/usr" "${run[@]}" \
    "$work/old/usr/bin/python3.9" -S -c 'import threading; t = threading.Thread(target=print, args=(42,)); t.start(); t.join(); raise SystemExit(6)'
if [ "$bad" = 0 ]; then echo "glibc $version: all as expected"; else echo "glibc $version: FAILED"; fi
exit "$bad"
