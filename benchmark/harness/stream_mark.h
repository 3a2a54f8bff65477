// Waits for a stream of a device with what a backend's interface has.
//
//   for (...) STRIDE_TRY(backend->scatter().apply(s, r, t, {.stream = StreamMark::stream()}));
//   STRIDE_TRY(mark.wait());   // mark: a StreamMark of that backend
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "gpu/backend.h"
#include "storage/status.h"

namespace stride::benchmark {

// The last call on the stream adds to a number, which is looked at until it shows that. Must not
// outlive its backend.
class StreamMark {
 public:
  // CUDA's name for the calling thread's own default stream, on which nobody else works.
  static void* stream() { return reinterpret_cast<void*>(uintptr_t{2}); }

  static Result<StreamMark> make(Backend* backend) {
    // The number, and its place among the numbers, which is 0.
    const int64_t zeros[2] = {0, 0};
    auto memory = backend->allocate(sizeof zeros);
    if (!memory.ok()) return memory.status();
    if (Status s = backend->copy((*memory)->data(), zeros, sizeof zeros); !s.ok()) return s;
    return StreamMark(backend, std::move(*memory));
  }

  // Returns when all that was started on stream() is done. Copies have a stream of their own: they
  // are repeated until they bring the last thing that this one has done.
  Status wait() {
    ++set_;
    auto* number = reinterpret_cast<int64_t*>(memory_->data());
    STRIDE_TRY(backend_->scatter().apply(Numbers::ones(NumberType::i64, 1), {number + 1, 1, 8},
                                         MutableNumbers::of(std::span<int64_t>(number, 1)),
                                         {.stream = stream()}));
    int64_t found = 0;
    while (found != set_) STRIDE_TRY(backend_->copy(&found, number, sizeof found));
    return {};
  }

 private:
  StreamMark(Backend* backend, std::unique_ptr<BackendMemory> memory)
      : backend_(backend), memory_(std::move(memory)) {}

  Backend* backend_;
  std::unique_ptr<BackendMemory> memory_;
  int64_t set_ = 0;
};

}  // namespace stride::benchmark
