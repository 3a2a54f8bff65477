// Checksums and writes the image of a file, piece by piece, on a few threads in the background.
//
//   PieceWriter pieces(*file, image, bound, /*threads=*/4);
//   pieces.plan(end);           // the file will be about this long
//   pieces.submit(3);           // bytes [6 MiB, 8 MiB) of the image are final
//   Status s = pieces.drain();  // all submitted pieces are written
//
// Internal to storage.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

#include "storage/file.h"
#include "storage/segment_format.h"
#include "storage/status.h"

namespace stride {

// submit() and plan() may be called from any thread; drain() once, when no more are to come.
class PieceWriter {
 public:
  static constexpr uint64_t piece_bytes = 2 << 20;

  // `image` and `file` outlive this; the image has at least `max_bytes`, in whole pages.
  PieceWriter(File& file, const std::byte* image, uint64_t max_bytes, unsigned threads);
  // Drops what is still queued.
  ~PieceWriter();
  PieceWriter(const PieceWriter&) = delete;
  PieceWriter& operator=(const PieceWriter&) = delete;

  // Disk space is reserved up to here before the next piece is written.
  void plan(uint64_t bytes) { planned_.store(bytes, std::memory_order_relaxed); }
  void submit(uint64_t piece);
  // The calling thread helps. Returns the first failure; after one nothing more was written.
  Status drain();

  // Of block `index` of the image, once its piece is written.
  std::vector<uint64_t>& checksums() { return checksums_; }
  // Size of the file as reserved.
  uint64_t allocated() const { return allocated_.load(std::memory_order_relaxed); }

 private:
  void run();
  Status write(uint64_t piece);
  Status reserve(uint64_t end);
  void stop(bool drop_queue);

  File& file_;
  const std::byte* const image_;
  const unsigned max_threads_;
  std::vector<uint64_t> checksums_;
  std::atomic<uint64_t> planned_{0};

  std::mutex allocate_mutex_;
  std::atomic<uint64_t> allocated_{0};

  std::mutex mutex_;  // guards what follows
  std::condition_variable wake_;
  std::deque<uint64_t> queue_;
  unsigned idle_ = 0;
  bool stopping_ = false;
  Status failure_;
  std::vector<std::thread> threads_;
};

}  // namespace stride
