#include "benchmark/limits/write.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <functional>
#include <random>
#include <thread>
#include <vector>

#include "benchmark/harness/engine_run.h"
#include "benchmark/harness/scratch_directory.h"
#include "gpu/backend.h"

namespace stride::benchmark {
namespace {

constexpr uint64_t piece_bytes = 8 << 20;
constexpr unsigned writers = 4;
constexpr int attempts = 2;

// Nothing that a disk could store as less.
BulkVector<uint64_t> random_piece() {
  BulkVector<uint64_t> piece(piece_bytes / 8);
  std::mt19937_64 random(1);
  std::generate(piece.begin(), piece.end(), std::ref(random));
  return piece;
}

int create(const std::string& path) {
  int flags = O_WRONLY | O_CREAT | O_TRUNC;
  int file = ::open(path.c_str(), flags | O_DIRECT, 0644);
  return file < 0 && errno == EINVAL ? ::open(path.c_str(), flags, 0644) : file;
}

// Returns the first failure's errno, or 0.
int write_pieces(int file, const BulkVector<uint64_t>& piece, uint64_t pieces) {
  std::atomic<uint64_t> next{0};
  std::atomic<int> failure{0};
  auto write = [&] {
    for (uint64_t i; failure == 0 && (i = next++) < pieces;) {
      ssize_t done = ::pwrite(file, piece.data(), piece_bytes, static_cast<off_t>(i * piece_bytes));
      if (done != static_cast<ssize_t>(piece_bytes)) failure = done < 0 ? errno : ENOSPC;
    }
  };
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < writers; ++t) threads.emplace_back(write);
  for (std::thread& thread : threads) thread.join();
  return failure;
}

Status write_file(const std::string& path, const BulkVector<uint64_t>& piece, uint64_t pieces) {
  int file = create(path);
  if (file < 0) return Status::from_errno(errno, "open", path);
  int error = ::posix_fallocate(file, 0, static_cast<off_t>(pieces * piece_bytes));
  if (error == 0 || error == EOPNOTSUPP || error == EINVAL) {
    error = write_pieces(file, piece, pieces);
  }
  if (error == 0 && ::fsync(file) != 0) error = errno;
  ::close(file);
  return error ? Status::from_errno(error, "write", path) : Status();
}

}  // namespace

Result<double> disk_bytes_per_second(const std::string& directory, uint64_t bytes) {
  uint64_t pieces = std::max<uint64_t>(1, bytes / piece_bytes);
  BulkVector<uint64_t> piece = random_piece();
  double best = 0;
  for (int attempt = 0; attempt < attempts; ++attempt) {
    Result<ScratchDirectory> scratch = ScratchDirectory::create(directory, "limit");
    if (!scratch.ok()) return scratch.status();
    Stopwatch watch;
    STRIDE_TRY(write_file(scratch->path() + "/data", piece, pieces));
    best = std::max(best, static_cast<double>(pieces * piece_bytes) / watch.seconds());
  }
  return best;
}

double copy_bytes_per_second(const KeyColumn& keys, const ValueColumn& values, Parallel* parallel) {
  uint64_t bytes = keys.bytes() + values.bytes();
  Stopwatch watch;
  for (const Column& column : {keys, values}) {
    uint64_t size = column.bytes();
    if (size == 0) continue;
    BulkVector<std::byte> copy(size);
    parallel->for_parts(size, 1 << 20, [&](unsigned, uint64_t begin, uint64_t end) {
      std::memcpy(copy.data() + begin, column.data + column.begin(0) + begin, end - begin);
    });
  }
  return static_cast<double>(bytes) / watch.seconds();
}

}  // namespace stride::benchmark
