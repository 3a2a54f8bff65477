// A file or the standard input as a stream of bytes, unpacked where it is gzip or zstd.
//
//   std::unique_ptr<InputStream> in;
//   STRIDE_CLI_TRY(InputStream::open("rows.tsv.gz", 0, Compression::automatic, &in));
//   STRIDE_CLI_TRY(in->read(buffer, sizeof buffer, &got));   // got < size: the end
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "adapters/cli/exit_status.h"

namespace stride::cli {

enum class Compression : uint8_t { automatic, none, gzip, zstd };  // automatic: by the first bytes

// For one thread at a time. Read, not mapped: a file that shrinks meanwhile is short, and no crash.
class InputStream {
 public:
  // path "-": the descriptor standard_input.
  static ExitStatus open(const std::string& path, int standard_input, Compression compression,
                         std::unique_ptr<InputStream>* stream);
  virtual ~InputStream() = default;

  // Fills `to` unless the stream ends before that. bad_input: broken compressed data.
  ExitStatus read(std::byte* to, size_t bytes, size_t* got);
  // These count bytes of the file as it is stored: those that were read, and all from where it
  // began (0: unknown). May be called from another thread.
  uint64_t stored_bytes_read() const { return stored_read_.load(std::memory_order_relaxed); }
  uint64_t stored_bytes() const { return stored_bytes_; }
  // "-" is "standard input".
  const std::string& name() const { return name_; }

 protected:
  // At least one byte, or none at the end.
  virtual ExitStatus read_some(std::byte* to, size_t bytes, size_t* got) = 0;

  std::string name_;
  std::atomic<uint64_t> stored_read_{0};
  uint64_t stored_bytes_ = 0;
};

// What is on disk of these, to know how far a job is; 0 where one is a pipe.
uint64_t stored_bytes_of(const std::string& path);

}  // namespace stride::cli
