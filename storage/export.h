// Marks what the shared library shows to programs that use it. All else is hidden.
#pragma once

#if defined(__GNUC__)
#define STRIDE_API [[gnu::visibility("default")]]
// Marks what belongs to the library alone in a class that is shown.
#define STRIDE_INTERNAL [[gnu::visibility("hidden")]]
#else
#define STRIDE_API
#define STRIDE_INTERNAL
#endif
