#!/usr/bin/env bash
# Builds RocksDB in release mode from the distribution's own source package, as a static library in
# build/peers/rocksdb/{include,lib}. The packaged librocksdb has assertions on and no SSE4.2 and
# reads at under half the speed, so every published comparison uses this one.
#
#   PEERS_MARCH=native   instruction set to build for (x86-64-v3 to carry it to another machine)
#   PEERS_JOBS=N         parallel compile jobs (default: all cores)
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
out=$root/build/peers
march=${PEERS_MARCH:-native}
jobs=${PEERS_JOBS:-$(nproc)}
mkdir -p "$out/src" "$out/apt/lists/partial" "$out/apt/parts"

if [ -z "$(find "$out/src" -maxdepth 1 -name 'rocksdb-*' -type d)" ]; then
  # The source entries of the machine's own package sources, whether or not they are enabled.
  for f in /etc/apt/sources.list /etc/apt/sources.list.d/*; do
    case $f in
      *.sources) sed 's/^Types:.*/Types: deb-src/' "$f" >"$out/apt/parts/$(basename "$f")" ;;
      *.list) [ ! -f "$f" ] || sed -n 's/^\(# *\)\{0,1\}deb\(-src\)\{0,1\} /deb-src /p' "$f" | sort -u \
        >"$out/apt/parts/$(basename "$f")" ;;
    esac
  done
  apt=(-o Dir::Etc::sourcelist=/dev/null -o "Dir::Etc::sourceparts=$out/apt/parts"
       -o "Dir::State::lists=$out/apt/lists" -o APT::Get::List-Cleanup=0 -o "Dir::Cache=$out/apt")
  apt-get "${apt[@]}" update || true
  (cd "$out/src" && apt-get "${apt[@]}" source rocksdb)
fi
src=$(find "$out/src" -maxdepth 1 -name 'rocksdb-*' -type d | sort -V | tail -n 1)

cmake -S "$src" -B "$out/rocksdb-build" -DCMAKE_BUILD_TYPE=Release -DPORTABLE=ON \
  -DCMAKE_CXX_FLAGS="-march=$march -mpclmul -DHAVE_SSE42 -DHAVE_PCLMUL" -DFAIL_ON_WARNINGS=OFF -DROCKSDB_BUILD_SHARED=OFF \
  -DWITH_TESTS=OFF -DWITH_TOOLS=OFF -DWITH_CORE_TOOLS=OFF -DWITH_BENCHMARK_TOOLS=OFF \
  -DWITH_GFLAGS=OFF -DWITH_LIBURING=OFF -DWITH_SNAPPY=ON -DWITH_LZ4=ON -DWITH_ZSTD=OFF
cmake --build "$out/rocksdb-build" --target rocksdb -j "$jobs"
mkdir -p "$out/rocksdb/lib"
cp "$out/rocksdb-build/librocksdb.a" "$out/rocksdb/lib/"
rm -rf "$out/rocksdb/include" && cp -r "$src/include" "$out/rocksdb/include"
echo "${march} $(basename "$src")" >"$out/rocksdb/VERSION"
echo "built $(basename "$src") for $march in $out/rocksdb"
