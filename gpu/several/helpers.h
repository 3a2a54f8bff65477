// Threads that wait for the pieces of batches: while one device works on its piece, the caller's
// thread is busy with another one.
//
//   Helpers helpers;
//   helpers.run_each(2, [&](uint64_t i) { results[i] = search(i); });
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

namespace stride {

// Thread-safe. Threads are started when they are first needed, and wait for further work until this
// goes.
class Helpers {
 public:
  Helpers();
  ~Helpers();
  Helpers(const Helpers&) = delete;

  // Calls work(i) for each i below n, each on a thread of its own, of which one is the caller's,
  // and returns when all are done. The caller's WorkWatch watches all of them. work throws nothing.
  // Throws std::bad_alloc and std::system_error, before anything was called.
  void run_each(uint64_t n, const std::function<void(uint64_t)>& work);

 private:
  class Helper;

  std::unique_ptr<Helper> take();

  std::atomic<uint64_t> helpers_{0};  // all that there are; grows under the mutex
  std::mutex mutex_;                  // guards what follows
  std::vector<std::unique_ptr<Helper>> idle_;
};

}  // namespace stride
