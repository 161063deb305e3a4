#!/usr/bin/env bash
# install.sh: gets Apache Flink 2.3.0 from Maven Central and builds the jobs against it.
# Needs a JDK (17 or 21) and Maven. Everything lands in $WEIR_FLINK, by default ~/.cache/weir-bench-flink (some 70 MB); Maven
# keeps its own copies in ~/.m2. Run it again after a change of the jobs.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
to=${WEIR_FLINK:-$HOME/.cache/weir-bench-flink}
for tool in java mvn; do
  command -v "$tool" >/dev/null || { echo "install.sh: there is no $tool: install a JDK (17 or 21) and Maven" >&2; exit 1; }
done
mkdir -p "$to"
cp -R "$here/jobs/." "$to/"
rm -rf "$to/target"
(cd "$to" && mvn -q -B -Dstyle.color=never package)
echo "Flink and the jobs are in $to/target"
