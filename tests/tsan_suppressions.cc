// Built into the tests under ThreadSanitizer. The distribution's TBB is not instrumented, so that
// the order which it keeps between tasks cannot be seen; what runs outside its tasks is checked.
extern "C" const char* __tsan_default_suppressions();
extern "C" const char* __tsan_default_suppressions() { return "race:libtbb\n"; }
