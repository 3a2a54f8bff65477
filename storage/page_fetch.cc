#include "storage/page_fetch.h"

#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <memory>
#include <new>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#ifdef STRIDE_HAVE_URING
#include <liburing.h>
#endif

#include "storage/first_failure.h"

namespace stride {

namespace {

using Pieces = std::vector<FileRange>;

// Where all that is read goes, each part on top of the one before: it stays in the processor's
// cache, so that a copy costs as little as it can.
class Sink {
 public:
  Sink() { parts_.fill({bytes_, part_bytes}); }
  Sink(const Sink&) = delete;
  Sink& operator=(const Sink&) = delete;

  const iovec* parts() const { return parts_.data(); }
  // Takes at least so many bytes, up to long_piece_bytes.
  static unsigned parts_for(uint64_t bytes) {
    return static_cast<unsigned>((bytes + part_bytes - 1) / part_bytes);
  }

 private:
  static constexpr uint64_t part_bytes = 4096;
  alignas(64) std::byte bytes_[part_bytes];
  std::array<iovec, long_piece_bytes / part_bytes> parts_;
};

// Pieces begin at pages, so that what a sink takes beyond a piece is the rest of its last page.
void cut(const FileRange& range, uint64_t piece_bytes, Pieces* pieces) {
  uint64_t end = range.offset + range.bytes;
  uint64_t at = range.offset / fetch_page_bytes * fetch_page_bytes;
  for (; range.bytes && at < end; at += piece_bytes)
    pieces->push_back({at, std::min(piece_bytes, end - at)});
}

Status read_piece(int fd, const std::string& path, FileRange piece, const Sink& sink) {
  while (piece.bytes) {
    ssize_t n = ::preadv(fd, sink.parts(), static_cast<int>(Sink::parts_for(piece.bytes)),
                         static_cast<off_t>(piece.offset));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return Status::from_errno(errno, "read", path).with_offset(piece.offset);
    if (n == 0) {
      return Status::corruption(path, piece.offset, "the file ends early")
          .with_remedy("restore the file from a backup");
    }
    piece.offset += static_cast<uint64_t>(n);
    piece.bytes -= std::min(static_cast<uint64_t>(n), piece.bytes);
  }
  return {};
}

// The calling thread is one of them.
Status fetch_by_threads(int fd, const std::string& path, const Pieces& pieces,
                        unsigned most_threads) {
  std::atomic<size_t> next{0};
  FirstFailure failure;
  auto work = [&] {
    Sink sink;
    while (!failure.failed()) {
      size_t i = next.fetch_add(1, std::memory_order_relaxed);
      if (i >= pieces.size()) return;
      failure.report(read_piece(fd, path, pieces[i], sink), i);
    }
  };
  std::vector<std::thread> threads;
  size_t wanted = std::min<size_t>(most_threads, pieces.size() / 2);
  threads.reserve(wanted);
  try {
    while (threads.size() + 1 < wanted) threads.emplace_back(work);
  } catch (const std::exception&) {
    // No more to be had: those that are there do the work.
  }
  work();
  for (std::thread& thread : threads) thread.join();
  return failure.status();
}

#ifdef STRIDE_HAVE_URING

class RingFetch {
 public:
  explicit RingFetch(int fd) : fd_(fd) {
    made_ = ::io_uring_queue_init(fetch_depth, &ring_, 0) == 0;
    // A ring must not stand in for a standard stream that is closed.
    if (made_ && ring_.ring_fd > STDERR_FILENO) sink_.reset(new (std::nothrow) Sink);
  }
  ~RingFetch() {
    if (made_) ::io_uring_queue_exit(&ring_);
  }
  RingFetch(const RingFetch&) = delete;
  RingFetch& operator=(const RingFetch&) = delete;

  bool usable() const { return sink_ != nullptr; }
  // Precondition: usable(). Returns the pieces that were not read, whatever kept them from it.
  Pieces fetch(const Pieces& pieces);

 private:
  // Waiting for a quarter keeps the ring well filled, and lets one system call serve a number of
  // reads.
  static constexpr unsigned wait_for = fetch_depth / 4;

  void enqueue(const Pieces& pieces);
  unsigned reap(const Pieces& pieces);
  unsigned in_kernel() { return in_ring_ - ::io_uring_sq_ready(&ring_); }
  void wait_for_all(const Pieces& pieces);

  const int fd_;
  bool made_ = false;
  io_uring ring_;
  std::unique_ptr<Sink> sink_;
  std::vector<bool> read_;  // by piece
  size_t next_ = 0;         // piece
  unsigned in_ring_ = 0;    // pieces that are queued or in flight
};

void RingFetch::enqueue(const Pieces& pieces) {
  while (next_ < pieces.size() && in_ring_ < fetch_depth) {
    io_uring_sqe* entry = ::io_uring_get_sqe(&ring_);
    if (!entry) return;
    ::io_uring_prep_readv(entry, fd_, sink_->parts(), Sink::parts_for(pieces[next_].bytes),
                          pieces[next_].offset);
    entry->user_data = next_++;
    ++in_ring_;
  }
}

// How many have come back.
unsigned RingFetch::reap(const Pieces& pieces) {
  unsigned count = 0;
  io_uring_cqe* entry;
  while (::io_uring_peek_cqe(&ring_, &entry) == 0) {
    size_t piece = entry->user_data;
    read_[piece] = entry->res >= 0 && static_cast<uint64_t>(entry->res) >= pieces[piece].bytes;
    ::io_uring_cqe_seen(&ring_, entry);
    ++count;
  }
  in_ring_ -= count;
  return count;
}

// The kernel writes into the sink until then.
void RingFetch::wait_for_all(const Pieces& pieces) {
  while (in_kernel()) {
    io_uring_cqe* entry;
    int r = ::io_uring_wait_cqe(&ring_, &entry);
    if (r == 0) {
      reap(pieces);
    } else if (r != -EINTR && r != -EAGAIN) {
      (void)sink_.release();  // better lost than written to by a read that nobody waited for
      return;
    }
  }
}

Pieces RingFetch::fetch(const Pieces& pieces) {
  read_.assign(pieces.size(), false);
  for (;;) {
    enqueue(pieces);
    if (in_ring_ == 0) break;
    int r = ::io_uring_submit_and_wait(&ring_, std::min(wait_for, in_ring_));
    if (reap(pieces) == 0 && r < 0 && r != -EINTR) break;
  }
  wait_for_all(pieces);
  Pieces left;
  for (size_t i = 0; i < pieces.size(); ++i) {
    if (!read_[i]) left.push_back(pieces[i]);
  }
  return left;
}

Pieces fetch_by_ring(int fd, Pieces pieces) {
  // A ring costs more to make than a read or two.
  if (pieces.size() < 4) return pieces;
  RingFetch ring(fd);
  return ring.usable() ? ring.fetch(pieces) : pieces;
}

#else

Pieces fetch_by_ring(int, Pieces pieces) { return pieces; }

#endif

}  // namespace

Status fetch_pages(int fd, const std::string& path, std::span<const FileRange> ranges, FetchBy by) {
  Pieces pieces, large;
  for (const FileRange& range : ranges) {
    if (range.bytes >= long_range_bytes)
      cut(range, long_piece_bytes, &large);
    else
      cut(range, fetch_piece_bytes, &pieces);
  }
  Status of_large;
  if (!large.empty()) {
    ::posix_fadvise(fd, 0, 0, POSIX_FADV_NORMAL);
    of_large = fetch_by_threads(fd, path, large, long_range_threads);
  }
  ::posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM);
  if (!of_large.ok()) return of_large;
  if (by == FetchBy::anything) pieces = fetch_by_ring(fd, std::move(pieces));
  // What a ring failed to read is read once more, so that there is one place that says why.
  return pieces.empty() ? Status() : fetch_by_threads(fd, path, pieces, fetch_threads);
}

}  // namespace stride
