// Checksums and writes the image of a file, piece by piece, on threads in the background.
//
//   PieceWriter pieces(*file, image, bound, io_threads);
//   pieces.plan(end);           // the file will be about this long
//   pieces.submit(3);           // bytes [6 MiB, 8 MiB) of the image are final
//   Status s = pieces.drain();  // all submitted pieces are written
//
// Internal to storage.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "storage/file.h"
#include "storage/first_failure.h"
#include "storage/io_threads.h"
#include "storage/segment_format.h"
#include "storage/status.h"
#include "storage/work_watch.h"

namespace stride {

// Thread-safe, but for checksums().
class PieceWriter {
 public:
  static constexpr uint64_t piece_bytes = 2 << 20;

  // All outlive this; the image has at least `max_bytes`, in whole pages.
  PieceWriter(File& file, const std::byte* image, uint64_t max_bytes, IoThreads& io);
  ~PieceWriter() { cancel(); }
  PieceWriter(const PieceWriter&) = delete;
  PieceWriter& operator=(const PieceWriter&) = delete;

  // Disk space is reserved up to here before the next piece is written.
  void plan(uint64_t bytes) { planned_.store(bytes, std::memory_order_relaxed); }
  // Reserves disk space now.
  Status reserve(uint64_t end);
  void submit(uint64_t piece);
  // Called in the background once all pieces are written, unless that failed. Nothing is submitted
  // after it, and the file may be closed in it.
  void then(std::function<Status()> last);
  // Waits for all that was submitted. Returns the first failure: after one nothing more was
  // written. watch: null, or what ends the wait, with nothing queued: cancelled.
  Status drain(const WorkWatch* watch = nullptr);
  // Drops what is still queued, and waits for the rest.
  void cancel();
  bool busy() const;
  Status failure() const { return failure_.status(); }

  // Entry `index` is the checksum of that block of the image, once its piece is written.
  std::vector<uint64_t>& checksums() { return checksums_; }
  // Likewise of pages (page_checksum()).
  std::vector<uint32_t>& page_checksums() { return page_checksums_; }
  // Size of the file as reserved.
  uint64_t allocated() const { return allocated_.load(std::memory_order_relaxed); }

 private:
  void start(std::function<Status()> task);
  void end(Status status);
  Status write(uint64_t piece);

  File& file_;
  const std::byte* const image_;
  IoThreads& io_;
  const std::shared_ptr<WorkWatch> watch_;  // of the thread that has made this; null: none
  std::vector<uint64_t> checksums_;
  std::vector<uint32_t> page_checksums_;
  std::atomic<uint64_t> planned_{0};

  FirstFailure failure_;

  std::mutex allocate_mutex_;
  std::atomic<uint64_t> allocated_{0};

  mutable std::mutex mutex_;  // guards what follows
  std::condition_variable ended_;
  uint64_t unfinished_ = 0;  // tasks, queued or running
};

}  // namespace stride
