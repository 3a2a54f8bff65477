#include "adapters/c/objects.h"

#include <algorithm>
#include <cstring>

namespace stride::c {

Status check_pointer(const void* pointer, const char* what) {
  return pointer ? Status() : Status::invalid(std::string(what) + " is NULL");
}

Status take_column(const stride_column* given, const char* what, Column* column) {
  STRIDE_TRY(check_pointer(given, what));
  *column = {static_cast<const std::byte*>(given->data), given->offsets, given->size,
             given->offsets ? 0 : given->width};
  constexpr uint64_t most_rows = uint64_t{1} << 56;
  uint64_t row_bytes = given->offsets ? 8 : std::max<uint64_t>(given->width, 1);
  if (given->size > most_rows / row_bytes)
    return Status::invalid(std::string(what) + " has " + std::to_string(given->size) +
                           " rows, which no memory holds");
  if (!given->data && column->bytes() > 0)
    return Status::invalid("the data of " + std::string(what) + " is NULL");
  return {};
}

Status read_struct(const void* given, const char* what, size_t least, size_t size, void* ours) {
  size_t given_size;
  std::memcpy(&given_size, given, sizeof given_size);
  // A size that was never set would lead far astray.
  constexpr size_t most = 4096;
  if (given_size < least || given_size > most)
    return Status::invalid("the size of " + std::string(what) + " is " +
                           std::to_string(given_size) + ": it is no " + what)
        .with_remedy("set it, or call the function that sets the defaults");
  auto* bytes = static_cast<const unsigned char*>(given);
  if (given_size > size &&
      std::any_of(bytes + size, bytes + given_size, [](unsigned char c) { return c != 0; }))
    return Status(StatusCode::unavailable, std::string(what) + " sets what this library lacks")
        .with_remedy("use the library that the header belongs to, or a newer one");
  std::memcpy(ours, given, std::min(given_size, size));
  return {};
}

Status write_struct(const void* ours, const char* what, size_t size, size_t least,
                    size_t given_size, void* given) {
  if (given_size < least)
    return Status::invalid("a " + std::string(what) + " has " + std::to_string(least) +
                           " bytes at least, not " + std::to_string(given_size));
  std::memset(given, 0, given_size);
  std::memcpy(given, ours, std::min(size, given_size));
  std::memcpy(given, &given_size, sizeof given_size);
  return {};
}

}  // namespace stride::c
