#include "storage/piece_writer.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "storage/checksum.h"
#include "storage/no_throw.h"

namespace stride {

PieceWriter::PieceWriter(File& file, const std::byte* image, uint64_t max_bytes, IoThreads& io)
    : file_(file),
      image_(image),
      io_(io),
      watch_(WorkWatch::current() ? WorkWatch::current()->shared_from_this() : nullptr),
      checksums_(blocks_of(max_bytes)),
      page_checksums_(pages_of(max_bytes)) {}

void PieceWriter::submit(uint64_t piece) {
  start([this, piece] { return write(piece); });
}

void PieceWriter::then(std::function<Status()> last) {
  start([this, last = std::move(last)] {
    {
      // The others are running by now, each on a thread of its own.
      std::unique_lock lock(mutex_);
      ended_.wait(lock, [&] { return unfinished_ == 1; });
      if (failure_.failed()) return Status();
    }
    return last();
  });
}

void PieceWriter::start(std::function<Status()> task) {
  {
    std::lock_guard lock(mutex_);
    ++unfinished_;
  }
  try {
    io_.submit(this, [this, task = std::move(task)] {
      end(failure_.failed() ? Status() : no_throw(task));
    });
  } catch (const std::bad_alloc&) {
    end(Status::out_of_memory());
  }
}

void PieceWriter::end(Status status) {
  failure_.report(std::move(status));
  std::lock_guard lock(mutex_);
  --unfinished_;
  ended_.notify_all();
}

Status PieceWriter::drain(const WorkWatch* watch) {
  std::unique_lock lock(mutex_);
  auto ended = [&] { return unfinished_ == 0; };
  if (!watch) ended_.wait(lock, ended);
  while (!ended_.wait_for(lock, std::chrono::milliseconds(10), ended)) {
    if (!watch->is_stopped()) continue;
    lock.unlock();
    cancel();
    return WorkWatch::cancelled();
  }
  return failure();
}

void PieceWriter::cancel() {
  uint64_t dropped = io_.drop(this);
  std::unique_lock lock(mutex_);
  unfinished_ -= dropped;
  ended_.wait(lock, [&] { return unfinished_ == 0; });
}

bool PieceWriter::busy() const {
  std::lock_guard lock(mutex_);
  return unfinished_ > 0;
}

Status PieceWriter::write(uint64_t piece) {
  uint64_t offset = piece * piece_bytes;
  STRIDE_TRY(reserve(offset + piece_bytes));
  Bytes bytes{image_ + offset, piece_bytes};
  for (uint64_t at = 0; at < piece_bytes; at += segment_block_bytes) {
    const Bytes block = bytes.subspan(at, segment_block_bytes);
    checksums_[(offset + at) / segment_block_bytes] = checksum(block);
    for (uint64_t page = 0; page < block.size(); page += segment_page_bytes)
      page_checksums_[(offset + at + page) / segment_page_bytes] =
          page_checksum(block.subspan(page, segment_page_bytes));
  }
  STRIDE_TRY(file_.write_at(offset, bytes));
  if (watch_) {
    watch_->add(piece_bytes);
    watch_->add_written(piece_bytes);
  }
  return {};
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
