// The version of the library: semantic (semver.org). CHANGELOG.md says what a version may change.
#pragma once

#include "engine/stridedb_version.h"
#include "storage/export.h"

namespace stride {

// The version of the header.
inline constexpr int version_major = STRIDE_VERSION_MAJOR, version_minor = STRIDE_VERSION_MINOR,
                     version_patch = STRIDE_VERSION_PATCH;

// The version of the library that runs, as "0.1.0".
STRIDE_API const char* version() noexcept;

}  // namespace stride
