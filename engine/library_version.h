// The version of the library: semantic (semver.org).
#pragma once

#include "storage/export.h"

namespace stride {

// The version of the header.
inline constexpr int version_major = 0, version_minor = 1, version_patch = 0;

// The version of the library that runs, as "0.1.0".
STRIDE_API const char* version() noexcept;

}  // namespace stride
