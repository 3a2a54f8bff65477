#include "adapters/c/error.h"

#include <cstdio>
#include <cstring>
#include <string>

#include "adapters/c/stridedb.h"

namespace stride::c {
namespace {

constexpr bool same(int status, StatusCode code) { return status == static_cast<int>(code); }
static_assert(same(STRIDE_OK, StatusCode::ok));
static_assert(same(STRIDE_NOT_FOUND, StatusCode::not_found));
static_assert(same(STRIDE_ALREADY_EXISTS, StatusCode::already_exists));
static_assert(same(STRIDE_INVALID_ARGUMENT, StatusCode::invalid_argument));
static_assert(same(STRIDE_CORRUPTION, StatusCode::corruption));
static_assert(same(STRIDE_UNSUPPORTED_VERSION, StatusCode::unsupported_version));
static_assert(same(STRIDE_IO_ERROR, StatusCode::io_error));
static_assert(same(STRIDE_NO_SPACE, StatusCode::no_space));
static_assert(same(STRIDE_PERMISSION_DENIED, StatusCode::permission_denied));
static_assert(same(STRIDE_LOCKED, StatusCode::locked));
static_assert(same(STRIDE_READ_ONLY, StatusCode::read_only));
static_assert(same(STRIDE_POISONED, StatusCode::poisoned));
static_assert(same(STRIDE_RESOURCE_EXHAUSTED, StatusCode::resource_exhausted));
static_assert(same(STRIDE_CLOSED, StatusCode::closed));
static_assert(same(STRIDE_UNAVAILABLE, StatusCode::unavailable));
static_assert(same(STRIDE_CANCELLED, StatusCode::cancelled));
static_assert(same(STRIDE_CONFLICT, StatusCode::conflict));

struct LastError {
  Status status;  // owns the strings
  std::string text;
  stride_error view{STRIDE_OK, "", "", "", "ok", 0, 0};
  bool thread_ends = false;  // nobody frees what is kept from now on: only this array is used
  char last_words[512] = "";
};

// Never destroyed, for functions may still be called while a thread or the program ends, by the
// destructors of others.
union Lasting {
  LastError error;
  Lasting() : error() {}
  ~Lasting() {}
};

// Frees what the thread's error holds at its end.
struct Cleared {
  LastError& error;
  ~Cleared() {
    error.status = Status();
    std::string().swap(error.text);  // an assignment would keep the memory
    error.view = stride_error{STRIDE_OK, "", "", "", "ok", 0, 0};
    error.thread_ends = true;
  }
};

LastError& last_error() {
  thread_local Lasting last;
  thread_local Cleared at_the_end{last.error};
  (void)at_the_end;
  return last.error;
}

}  // namespace

int fail(int status, const Status& s) noexcept {
  LastError& last = last_error();
  if (last.thread_ends) {
    const char* name = stride_status_name(status);
    std::snprintf(last.last_words, sizeof last.last_words, "%s: %s", name, s.message().c_str());
    last.view = {status, last.last_words + std::strlen(name) + 2, "", "", last.last_words, 0, 0};
    return status;
  }
  last.status = s;
  last.view = {status,
               last.status.message().c_str(),
               last.status.file().c_str(),
               last.status.remedy().c_str(),
               last.status.message().c_str(),
               last.status.offset().has_value(),
               last.status.offset().value_or(0)};
  try {
    last.text = last.status.to_string();
    std::string_view code = to_string(last.status.code());
    if (status != static_cast<int>(last.status.code()))
      last.text.replace(0, code.size(), stride_status_name(status));
    last.view.text = last.text.c_str();
  } catch (const std::exception&) {  // the message alone, then
  }
  return status;
}

int fail(const Status& s) noexcept { return fail(static_cast<int>(s.code()), s); }

int fail_without_memory() noexcept {
  constexpr const char* message = "out of memory";
  constexpr const char* remedy = "use smaller batches, or give the process more memory";
  last_error().view = {STRIDE_RESOURCE_EXHAUSTED, message, "", remedy, message, 0, 0};
  return STRIDE_RESOURCE_EXHAUSTED;
}

}  // namespace stride::c

using namespace stride::c;

const stride_error* stride_last_error(void) { return &last_error().view; }

const char* stride_status_name(int status) {
  if (status == STRIDE_TOO_SMALL) return "too_small";
  if (status < STRIDE_OK || status > STRIDE_CONFLICT) return "unknown";
  return stride::to_string(static_cast<stride::StatusCode>(status)).data();  // of a literal
}
