#include "storage/piece_writer.h"

#include <algorithm>
#include <system_error>

#include "storage/checksum.h"

namespace stride {

PieceWriter::PieceWriter(File& file, const std::byte* image, uint64_t max_bytes, unsigned threads)
    : file_(file), image_(image), max_threads_(threads), checksums_(blocks_of(max_bytes)) {}

PieceWriter::~PieceWriter() { stop(true); }

void PieceWriter::submit(uint64_t piece) {
  std::lock_guard lock(mutex_);
  queue_.push_back(piece);
  if (queue_.size() > idle_ && threads_.size() < max_threads_) {
    try {
      threads_.emplace_back([this] { run(); });
    } catch (const std::system_error&) {
      // No thread to be had: drain() does the work.
    }
  }
  wake_.notify_one();
}

Status PieceWriter::drain() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  run();
  stop(false);
  std::lock_guard lock(mutex_);
  return failure_;
}

void PieceWriter::stop(bool drop_queue) {
  std::vector<std::thread> threads;
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
    if (drop_queue) queue_.clear();
    threads.swap(threads_);
  }
  wake_.notify_all();
  for (std::thread& thread : threads) thread.join();
}

void PieceWriter::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    ++idle_;
    wake_.wait(lock, [&] { return stopping_ || !queue_.empty(); });
    --idle_;
    if (queue_.empty()) return;
    uint64_t piece = queue_.front();
    queue_.pop_front();
    if (!failure_.ok()) continue;
    lock.unlock();
    Status status = write(piece);
    lock.lock();
    if (!status.ok() && failure_.ok()) failure_ = std::move(status);
  }
}

Status PieceWriter::write(uint64_t piece) {
  uint64_t offset = piece * piece_bytes;
  STRIDE_TRY(reserve(offset + piece_bytes));
  Bytes bytes{image_ + offset, piece_bytes};
  for (uint64_t at = 0; at < piece_bytes; at += segment_block_bytes) {
    checksums_[(offset + at) / segment_block_bytes] =
        checksum(bytes.subspan(at, segment_block_bytes));
  }
  return file_.write_at(offset, bytes);
}

Status PieceWriter::reserve(uint64_t end) {
  if (end <= allocated()) return {};
  std::lock_guard lock(allocate_mutex_);
  if (end <= allocated()) return {};
  uint64_t bytes = std::max(end, planned_.load(std::memory_order_relaxed));
  STRIDE_TRY(file_.allocate(bytes));
  allocated_.store(bytes, std::memory_order_relaxed);
  return {};
}

}  // namespace stride
