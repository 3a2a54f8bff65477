#include "storage/status.h"

#include <cerrno>
#include <cstring>

#include "storage/quoted.h"

namespace stride {

namespace {

struct ErrnoMeaning {
  StatusCode code;
  const char* remedy;
};

ErrnoMeaning meaning_of(int error) {
  switch (error) {
    case ENOSPC:
      return {StatusCode::no_space, "free some space on this disk and try again"};
    case EDQUOT:
      return {StatusCode::no_space, "free some space within the disk quota and try again"};
    case EFBIG:
      return {StatusCode::no_space, "raise the file size limit (ulimit -f)"};
    case EACCES:
    case EPERM:
      return {StatusCode::permission_denied,
              "check the owner and mode of the file and of its directory"};
    case EROFS:
      return {StatusCode::permission_denied,
              "the file system is mounted read-only: remount it, or open the database read-only"};
    case ENOENT:
      return {StatusCode::not_found, ""};
    case EEXIST:
      return {StatusCode::already_exists, ""};
    case ENOTDIR:
    case EISDIR:
      return {StatusCode::invalid_argument, "give the path of a directory"};
    case EMFILE:
    case ENFILE:
      return {StatusCode::resource_exhausted, "raise the limit of open files (ulimit -n)"};
    case ENOMEM:
      return {StatusCode::resource_exhausted, "free some memory"};
    case EIO:
      return {StatusCode::io_error, "the disk may be failing: check the system log"};
    default:
      return {StatusCode::io_error, ""};
  }
}

const std::string& empty_string() {
  static const std::string empty;
  return empty;
}

// Made when the library is loaded, while there is memory.
const Status& prepared_out_of_memory() {
  static const Status status =
      Status(StatusCode::resource_exhausted, "out of memory")
          .with_remedy("use smaller batches or transactions, or give the process more memory");
  return status;
}
[[maybe_unused]] const Status& out_of_memory_at_load = prepared_out_of_memory();

}  // namespace

Status Status::out_of_memory() noexcept { return prepared_out_of_memory(); }

std::string_view to_string(StatusCode code) {
  switch (code) {
    case StatusCode::ok:
      return "ok";
    case StatusCode::not_found:
      return "not_found";
    case StatusCode::already_exists:
      return "already_exists";
    case StatusCode::invalid_argument:
      return "invalid_argument";
    case StatusCode::corruption:
      return "corruption";
    case StatusCode::unsupported_version:
      return "unsupported_version";
    case StatusCode::io_error:
      return "io_error";
    case StatusCode::no_space:
      return "no_space";
    case StatusCode::permission_denied:
      return "permission_denied";
    case StatusCode::locked:
      return "locked";
    case StatusCode::read_only:
      return "read_only";
    case StatusCode::poisoned:
      return "poisoned";
    case StatusCode::resource_exhausted:
      return "resource_exhausted";
    case StatusCode::closed:
      return "closed";
    case StatusCode::unavailable:
      return "unavailable";
    case StatusCode::cancelled:
      return "cancelled";
    case StatusCode::conflict:
      return "conflict";
  }
  return "unknown";
}

Status::Status(StatusCode code, std::string message) {
  if (code == StatusCode::ok) return;
  detail_ = std::make_shared<Detail>();
  detail_->code = code;
  detail_->message = std::move(message);
}

Status Status::corruption(std::string file, uint64_t offset, std::string message) {
  return Status(StatusCode::corruption, std::move(message))
      .with_file(std::move(file))
      .with_offset(offset);
}

Status Status::from_errno(int error, std::string_view what, std::string file) {
  ErrnoMeaning meaning = meaning_of(error);
  char buffer[128];
  // The GNU variant: returns the text, which need not be in the buffer.
  std::string message = std::string(what) + ": " + ::strerror_r(error, buffer, sizeof buffer);
  return Status(meaning.code, std::move(message))
      .with_file(std::move(file))
      .with_remedy(meaning.remedy);
}

Status::Detail* Status::own() {
  if (detail_ && detail_.use_count() > 1) detail_ = std::make_shared<Detail>(*detail_);
  return detail_.get();
}

Status&& Status::with_file(std::string file) && {
  if (Detail* d = own()) d->file = std::move(file);
  return std::move(*this);
}

Status&& Status::with_offset(uint64_t offset) && {
  if (Detail* d = own()) d->offset = offset;
  return std::move(*this);
}

Status&& Status::with_remedy(std::string remedy) && {
  if (Detail* d = own()) d->remedy = std::move(remedy);
  return std::move(*this);
}

Status&& Status::with_key(std::string key) && {
  if (Detail* d = own()) d->key = std::move(key);
  return std::move(*this);
}

const std::string& Status::message() const { return detail_ ? detail_->message : empty_string(); }

const std::string& Status::file() const { return detail_ ? detail_->file : empty_string(); }

std::optional<uint64_t> Status::offset() const { return detail_ ? detail_->offset : std::nullopt; }

const std::string& Status::remedy() const { return detail_ ? detail_->remedy : empty_string(); }

std::optional<std::string_view> Status::key() const {
  if (!detail_ || !detail_->key) return std::nullopt;
  return *detail_->key;
}

// What is told of the table comes before the key.
std::string Status::message_with_key(std::string_view shown) const {
  std::string text = message();
  if (!key()) return text;
  const std::string before = in_quotes(as_bytes(*key()));
  const size_t at = text.rfind(before);
  if (at != std::string::npos) text.replace(at, before.size(), shown);
  return text;
}

std::string Status::to_string() const {
  if (!detail_) return "ok";
  std::string text(stride::to_string(detail_->code));
  if (!detail_->message.empty()) text += ": " + detail_->message;
  if (!detail_->file.empty()) {
    text += " (" + detail_->file;
    if (detail_->offset) text += ", offset " + std::to_string(*detail_->offset);
    text += ")";
  }
  if (!detail_->remedy.empty()) text += ": " + detail_->remedy;
  return text;
}

}  // namespace stride
