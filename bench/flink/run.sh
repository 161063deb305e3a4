#!/usr/bin/env bash
# run.sh --workload NAME --records N [--parallelism P] [--interval-ms I] [--shuffle true] [--conf.KEY VALUE]...
#
# Runs one bounded job on Apache Flink, the whole engine in one JVM, and prints a RESULT line. The process becomes the JVM, so
# that `time` and a parent's rusage are about it.
#   NAME     wordcount, q0, q1, q2, q3, q5, q7, q8; or events: the generator of q0 to q8 in a loop, without Flink
#   I        milliseconds between checkpoints; 0, the default: there are none
#   WEIR_FLINK, where install.sh put Flink, by default ~/.cache/weir-bench-flink; HEAP, the JVM's -Xmx, by default 2g
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
target=${WEIR_FLINK:-$HOME/.cache/weir-bench-flink}/target
[ -f "$target/jobs.jar" ] || { echo "run.sh: there is no Flink in $target: run $here/install.sh first" >&2; exit 1; }
open=()
for package in lang lang.reflect io net nio text time util util.concurrent util.concurrent.atomic util.concurrent.locks; do
  open+=("--add-opens=java.base/java.$package=ALL-UNNAMED")
done
exec java "-Xmx${HEAP:-2g}" "${open[@]}" --add-opens=java.base/sun.nio.ch=ALL-UNNAMED \
  "-Dlog4j.configurationFile=$here/log4j2.properties" -cp "$target/jobs.jar:$target/lib/*" bench.Main "$@"
