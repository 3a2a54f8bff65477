// Tells a process from its forked children, which have copies of its objects but not its threads.
//
//   class Writer { ProcessMark made_in_; ... };
//   if (!made_in_.is_here()) return left_in_parent(path);   // a child leaves them alone
//
// Where objects own threads, locks or files, a child must neither use nor destroy its copy: its
// mutexes may be locked by threads that the child does not have.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "storage/status.h"

namespace stride {

// The process in which it was made. A copy names the same process. Thread-safe. Children made by
// vfork() or by clone() itself, past the handlers of pthread_atfork(), count as the same process.
class ProcessMark {
 public:
  ProcessMark() : forks_(forks()) {}
  bool is_here() const { return forks_ == forks(); }

 private:
  // How many forks there were from the process that loaded the library down to this one.
  static uint64_t forks();
  uint64_t forks_;
};

// What a child's copy of a database answers to every call.
Status left_in_parent(const std::string& path);

// As std::make_shared; but the last owner in a forked child gives the object up without destroying
// it.
template <class T, class... Args>
std::shared_ptr<T> make_shared_here(Args&&... args) {
  return std::shared_ptr<T>(new T(std::forward<Args>(args)...),
                            [made_in = ProcessMark()](T* object) {
                              if (made_in.is_here()) delete object;
                            });
}

// Closes the descriptor in children that are forked while it is kept: a lock of the kernel lives as
// long as any copy of its descriptor, and a child must not hold a lock on when the parent has died.
// Throws std::bad_alloc.
void close_in_children(int descriptor);
// Forgets the descriptor, which is about to be closed.
void stop_closing_in_children(int descriptor) noexcept;

}  // namespace stride
