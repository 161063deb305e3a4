#!/usr/bin/env bash
# install.sh: puts the command line of Apache Flink 2.3.0 into $WEIR_TEST_FLINK, by default ~/.cache/weir-flink/flink-2.3.0, and prints where
# it is. It comes from PyPI: the source package has the jars, the wheel the scripts; some 330 MB are downloaded, and nothing the second time.
# Needs a JDK or JRE (17 or 21) and Python with pip. Exit status 3: something of that is missing, as the last line says.
set -euo pipefail
version=2.3.0
home=${WEIR_TEST_FLINK:-$HOME/.cache/weir-flink/flink-$version}

lacking() {
  echo "$1" >&2
  exit 3
}

java -version >/dev/null 2>&1 || lacking "there is no Java: install a JDK, 17 or 21"
if [ -x "$home/bin/flink" ]; then
  echo "$home"
  exit
fi
python3 -m pip --version >/dev/null 2>&1 || lacking "there is no pip to fetch Flink with: install python3-pip"

mkdir -p "$(dirname "$home")"
tmp=$(mktemp -d "$home.XXXXXX")
trap 'rm -rf "$tmp"' EXIT
fetch() {
  python3 -m pip download -q --disable-pip-version-check --no-deps -d "$tmp" "$@" >&2 || lacking "Flink cannot be fetched from PyPI"
}
fetch --no-binary :all: "apache-flink-libraries==$version"
fetch --only-binary :all: "apache-flink==$version"

mkdir "$tmp/jars" "$tmp/flink"
tar -xzf "$tmp"/apache*flink*libraries*.tar.gz -C "$tmp/jars"
mkdir "$tmp/flink/lib"
cp "$(find "$tmp/jars" -type d -path '*deps/lib' | head -1)"/{flink-dist,log4j}-*.jar "$tmp/flink/lib/"
python3 -m zipfile -e "$tmp"/apache_flink-*.whl "$tmp/scripts"
cp -r "$tmp/scripts/pyflink/bin" "$tmp/scripts/pyflink/conf" "$tmp/flink/"
chmod +x "$tmp"/flink/bin/*
rm -rf "$home"
mv "$tmp/flink" "$home"
echo "$home"
