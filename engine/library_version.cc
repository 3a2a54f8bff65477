#include "engine/library_version.h"

namespace stride {

#define STRIDE_TEXT_OF(x) #x
#define STRIDE_TEXT(x) STRIDE_TEXT_OF(x)
#define STRIDE_VERSION_TEXT \
  STRIDE_TEXT(STRIDE_MAJOR) "." STRIDE_TEXT(STRIDE_MINOR) "." STRIDE_TEXT(STRIDE_PATCH)

static_assert(version_major == STRIDE_MAJOR && version_minor == STRIDE_MINOR &&
                  version_patch == STRIDE_PATCH,
              "the build file has another version");

const char* version() noexcept { return STRIDE_VERSION_TEXT; }

}  // namespace stride
