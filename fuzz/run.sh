#!/usr/bin/env bash
# Builds the fuzz targets with the stable toolchain, without cargo-fuzz, and runs them. See README.md.
#
#   fuzz/run.sh SECONDS [TARGET...]       runs each target (default: all) for this many seconds, two at a time
#   fuzz/run.sh --merge [TARGET...]       replaces the corpus by the best inputs of KEEP and the corpus, at most
#                                         MOST=200 per target
#   fuzz/run.sh --reproduce TARGET FILE   runs one input and shows its panic
#   fuzz/run.sh --build                   only builds
#
# Settings (environment variables):
#
#   SEED=1         the seed of libFuzzer, for reproducible inputs; 0 takes a new one each time
#   JOBS=2         number of targets that run in parallel
#   RUNS=0         ends a target after this many executions, if that is earlier; 0 means no limit
#   ASAN=1         builds with the address sanitiser
#   KEEP=folder    where to keep the inputs that a run finds, for --merge; by default they are discarded
#   CARGO_TARGET_DIR, CARGO_BUILD_JOBS as for cargo
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
exec </dev/null

all=(csr losses intercept fits streams svmlight)
host=x86_64-unknown-linux-gnu
target_dir=$(realpath -m "${CARGO_TARGET_DIR:-target}")
[ "${ASAN-}" = 1 ] && target_dir=$target_dir/asan
binaries=$target_dir/$host/release
artifacts=$PWD/artifacts

# What cargo-fuzz passes to rustc. RUSTC_BOOTSTRAP lets a stable compiler take -Z flags.
build() {
    local flags='-Cpasses=sancov-module
        -Cllvm-args=-sanitizer-coverage-level=4
        -Cllvm-args=-sanitizer-coverage-inline-8bit-counters
        -Cllvm-args=-sanitizer-coverage-pc-table
        -Cllvm-args=-sanitizer-coverage-trace-compares
        --cfg fuzzing -Cdebug-assertions'
    [ "${ASAN-}" = 1 ] && flags+=' -Zsanitizer=address'
    # --target keeps these flags away from build scripts.
    RUSTC_BOOTSTRAP=1 RUSTFLAGS=$(tr -s ' \n' ' ' <<<"$flags") CARGO_TARGET_DIR=$target_dir \
        CARGO_INCREMENTAL=0 cargo build --locked --release --target "$host" --bins
}

# Everything a run needs; the seed corpus is copied, so that a run leaves the tree unchanged.
run_one() {
    local target=$1 seconds=$2 status=0 inputs=$scratch/$1
    mkdir -p "$inputs" "corpus/$target" "$artifacts/$target"
    cp -r "corpus/$target/." "$inputs"
    if [ -n "${KEEP-}" ]; then
        mkdir -p "$KEEP/$target"
        inputs=$KEEP/$target
        cp -r "corpus/$target/." "$inputs"
    fi
    RUST_BACKTRACE=0 "$binaries/$target" "$inputs" -max_total_time="$seconds" -runs="$(runs)" -seed="${SEED:-1}" \
        -entropic="$(entropic "$target")" -max_len=400 -len_control=20 -timeout=20 -rss_limit_mb=4096 -print_final_stats=1 -verbosity=1 \
        -artifact_prefix="$artifacts/$target/" >"$scratch/$target.log" 2>&1 || status=$?
    echo "$status" >"$scratch/$target.status"
}

# For executions of microseconds, choosing the next input by the rarity of its coverage takes longer than running it.
entropic() {
    case $1 in
    csr | losses | intercept | svmlight) echo 0 ;;
    *) echo 1 ;;
    esac
}

runs() {
    if [ "${RUNS:-0}" = 0 ]; then echo -1; else echo "$RUNS"; fi
}

# One line per target; the full log of those that failed.
report() {
    local target status log executions coverage failed=0
    for target in "$@"; do
        log=$scratch/$target.log
        status=$(cat "$scratch/$target.status")
        executions=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
        coverage=$(grep -o 'cov: [0-9]* ft: [0-9]* corp: [0-9]*' "$log" | tail -n 1 || true)
        printf '%-10s %s executions, %s%s\n' "$target" "${executions:-?}" "${coverage:-no coverage}" \
            "$(sed -n 's/^fits: /, fits: /p' "$log")"
        if [ "$status" != 0 ]; then
            failed=1
            grep -v -E '^#[0-9]+[[:space:]]+(NEW|REDUCE|pulse|INITED|RELOAD)' "$log" | tail -n 60
            printf '\n%s FAILED. To reproduce:\n    fuzz/run.sh --reproduce %s %s\n\n' "$target" "$target" \
                "$(sed -n 's/.*Test unit written to //p' "$log" | tail -n 1)"
        fi
    done
    return "$failed"
}

# libFuzzer chooses a few inputs with the same coverage as all given ones, those with the most coverage first. Files
# with descriptive names (past bugs) are kept: inputs that a run finds are named after their SHA-1.
merge_one() {
    local target=$1 merged=$scratch/merged/$1 file
    mkdir -p "$merged" "corpus/$target"
    "$binaries/$target" -set_cover_merge=1 -max_len=400 -timeout=20 -rss_limit_mb=4096 "$merged" \
        "corpus/$target" "${KEEP:?names the folder of the inputs to be merged}/$target" >"$scratch/$target.log" 2>&1
    find "corpus/$target" -type f -regextype posix-extended -regex '.*/[0-9a-f]{40}' -delete
    # Not `head`, which would break the pipe of `sort`.
    find "$merged" -type f -printf '%T@ %p\n' | sort -n | sed -n "1,${MOST:-200}p" | while read -r _ file; do
        cp "$file" "corpus/$target/"
    done
    printf '%-10s %s files, %s\n' "$target" "$(find "corpus/$target" -type f | wc -l)" "$(du -bsh "corpus/$target" | cut -f 1)"
}

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

case ${1-} in
--build)
    build
    ;;
--merge)
    shift
    [ $# -gt 0 ] || set -- "${all[@]}"
    build
    for target in "$@"; do
        merge_one "$target"
    done
    ;;
--reproduce)
    build
    # Relative to where the script was called from.
    case $3 in
    /*) file=$3 ;;
    *) file=$OLDPWD/$3 ;;
    esac
    RUST_BACKTRACE=1 "$binaries/$2" -timeout=20 "$file"
    ;;
[1-9]*)
    seconds=$1
    shift
    [ $# -gt 0 ] || set -- "${all[@]}"
    build
    trap 'kill $(jobs -p) 2>/dev/null || true; rm -rf "$scratch"' EXIT
    for target in "$@"; do
        while [ "$(jobs -rp | wc -l)" -ge "${JOBS:-2}" ]; do
            wait -n || true
        done
        run_one "$target" "$seconds" &
    done
    wait
    report "$@"
    ;;
*)
    sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//;p}' "$(basename "${BASH_SOURCE[0]}")"
    exit 2
    ;;
esac
