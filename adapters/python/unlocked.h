// Work without Python's global lock.
#pragma once

#include <nanobind/nanobind.h>

namespace stride::python {

// Other threads may run Python for as long as it lives.
//
// A daemon thread whose work goes on when the interpreter ends must not come back: Python up
// to 3.13 ends it in the middle of a destructor, which C++ answers by ending the process. It waits
// here for the end of the process in place of that.
class Unlocked {
 public:
  Unlocked() : state_(PyEval_SaveThread()) {}
  ~Unlocked();
  Unlocked(const Unlocked&) = delete;
  Unlocked& operator=(const Unlocked&) = delete;

 private:
  PyThreadState* state_;
};

// Whether the interpreter is about to end, and this thread is not the one that ends it: it must not
// ask for the lock.
bool is_left_behind();

// From now on threads other than this one are left behind. Returns once none of them is about to
// come back. The GIL is held.
void leave_others_behind();

}  // namespace stride::python
