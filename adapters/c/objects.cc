#include "adapters/c/objects.h"

#include <algorithm>
#include <cstring>

#include "adapters/c/error.h"

namespace stride::c {

Status TransactionObject::get(WriteTransaction** writing) {
  *writing = std::get_if<WriteTransaction>(&transaction);
  if (*writing) return {};
  return Status::invalid("a transaction that reads does not take this change")
      .with_remedy("make it in one of stride_begin()");
}

Status TransactionObject::get(Transaction** reading) {
  *reading = std::get_if<Transaction>(&transaction);
  if (*reading) return {};
  return Status::invalid("the transaction does not read")
      .with_remedy("begin it with stride_begin_reading()");
}

Status check_pointer(const void* pointer, const char* what) {
  return pointer ? Status() : Status::invalid(std::string(what) + " is NULL");
}

Status check_choice(int value, int last, const char* what) {
  if (value >= 0 && value <= last) return {};
  return Status::invalid(std::string(what) + " " + std::to_string(value) + ": 0 to " +
                         std::to_string(last) + " are possible");
}

Status read_bytes(const void* data, uint64_t size, const char* what, Bytes* bytes) {
  if (size > 0) STRIDE_TRY(check_pointer(data, what));
  *bytes = {static_cast<const std::byte*>(data), size};
  return {};
}

Status read_buffers(stride_buffers* given, uint64_t rows) {
  stride_buffers checked;
  STRIDE_TRY(check_pointer(given, "buffers"));
  STRIDE_TRY(read_struct(given, "stride_buffers", sizeof checked, sizeof checked, &checked));
  given->needed = 0;
  STRIDE_TRY(check_pointer(given->offsets, "the offsets of buffers"));
  if (rows) STRIDE_TRY(check_pointer(given->validity, "the validity of buffers"));
  return given->data_bytes ? check_pointer(given->data, "the data of buffers") : Status();
}

Status read_column(const stride_column* given, const char* what, Column* column) {
  STRIDE_TRY(check_pointer(given, what));
  *column = {static_cast<const std::byte*>(given->data), given->offsets, given->size,
             given->offsets ? 0 : given->width};
  constexpr uint64_t max_rows = uint64_t{1} << 56;
  uint64_t row_bytes = given->offsets ? 8 : std::max<uint64_t>(given->width, 1);
  if (given->size > max_rows / row_bytes)
    return Status::invalid(std::string(what) + " has " + std::to_string(given->size) +
                           " rows, which no memory holds");
  if (!given->data && column->bytes() > 0)
    return Status::invalid("the data of " + std::string(what) + " is NULL");
  return {};
}

Status read_keys(const stride_column* given, const Table& table, Column* keys) {
  STRIDE_TRY(read_column(given, "keys", keys));
  if (keys->size == 0) *keys = Column::fixed(nullptr, table.key_width(), 0);
  return {};
}

Status read_queries(const stride_column* given, const char* what, Column* column) {
  STRIDE_TRY(read_column(given, what, column));
  for (uint64_t i = 0; !column->is_fixed() && i < column->size; ++i)
    if (column->offsets[i + 1] < column->offsets[i])
      return Status::invalid("row " + std::to_string(i) + ": the offsets of " + what + " descend");
  return {};
}

namespace {

// A size that was never set would lead far astray.
constexpr size_t max_struct_bytes = 4096;

}  // namespace

Status read_struct(const void* given, const char* what, size_t min_size, size_t size, void* ours) {
  size_t given_size;
  std::memcpy(&given_size, given, sizeof given_size);
  if (given_size < min_size || given_size > max_struct_bytes)
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

Status write_struct(const void* ours, const char* what, size_t size, size_t min_size,
                    size_t given_size, void* given) {
  if (given_size < min_size || given_size > max_struct_bytes)
    return Status::invalid("a " + std::string(what) + " has " + std::to_string(min_size) +
                           " bytes at least, not " + std::to_string(given_size))
        .with_remedy("set its size to sizeof(" + std::string(what) + ")");
  std::memset(given, 0, given_size);
  std::memcpy(given, ours, std::min(size, given_size));
  std::memcpy(given, &given_size, sizeof given_size);
  return {};
}

int values_too_large(const stride_buffers& buffers, const char* instead) noexcept {
  return fail_too_small([&] {
    return Status(StatusCode::resource_exhausted,
                  "the values have " + std::to_string(buffers.needed) + " bytes and the buffer " +
                      std::to_string(buffers.data_bytes))
        .with_remedy("give a buffer of `needed` bytes, or use " + std::string(instead));
  });
}

stride_bytes present(Bytes found) {
  static const char empty = 0;
  return {found.empty() ? static_cast<const void*>(&empty) : found.data(), found.size()};
}

const uint64_t* words_of(const Bitmap& found) {
  return found.size() ? found.words().data() : nullptr;
}

Status check_found(const ReferencesObject& references) {
  if (references.snapshot) return {};
  return Status::invalid("the stride_references hold no result")
      .with_remedy("call stride_find() or stride_match_references() with it first");
}

Status check_rows(const ReferencesObject& references, uint64_t first, uint64_t n) {
  uint64_t size = references.found().size();
  if (first <= size && n <= size - first) return {};
  return Status::invalid((references.matched ? "addresses " : "keys ") + std::to_string(first) +
                         " and " + std::to_string(n) + " in all were asked for, of " +
                         std::to_string(size));
}

}  // namespace stride::c
