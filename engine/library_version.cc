#include "engine/library_version.h"

namespace stride {

const char* version() noexcept { return STRIDE_VERSION_TEXT; }

}  // namespace stride
