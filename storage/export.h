// Marks what the shared library shows to programs that use it. All else is hidden.
#pragma once

#if defined(__GNUC__)
#define STRIDE_API __attribute__((visibility("default")))
#else
#define STRIDE_API
#endif
