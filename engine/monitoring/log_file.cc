#include "engine/monitoring/log_file.h"

#include <time.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <utility>

#include "storage/column.h"
#include "storage/no_throw.h"
#include "storage/quoted.h"

namespace stride {
namespace {

const char* level_text(LogLevel level) {
  constexpr std::array names = {"info", "warning", "error"};
  return names[std::min<size_t>(static_cast<size_t>(level), names.size() - 1)];
}

}  // namespace

std::string time_text(std::chrono::system_clock::time_point time) {
  using std::chrono::milliseconds;
  const auto since = std::chrono::floor<milliseconds>(time.time_since_epoch());
  const auto whole = std::chrono::floor<std::chrono::seconds>(since);
  const auto t = static_cast<time_t>(whole.count());
  tm parts{};
  gmtime_r(&t, &parts);
  std::array<char, 64> day{};
  strftime(day.data(), day.size(), "%Y-%m-%dT%H:%M:%S", &parts);
  std::array<char, 80> text{};
  std::snprintf(text.data(), text.size(), "%s.%03dZ", day.data(),
                static_cast<int>((since - whole).count()));
  return text.data();
}

void LogFile::hold(std::string_view line) { held_ = line; }

void LogFile::log(LogLevel level, std::string_view line) {
  auto counted = [&](LogLevel of, std::string_view text) {
    Status s = no_throw([&] { return append(of, text); });
    lost_ += !s.ok();
  };
  if (!held_.empty()) counted(LogLevel::info, std::exchange(held_, {}));
  counted(level, line);
}

Status LogFile::append(LogLevel level, std::string_view line) {
  const auto now = std::chrono::system_clock::now();
  auto text_of = [&](LogLevel of, std::string_view what) {
    std::string shown = printable(what.substr(0, max_line_bytes));
    shown.resize(std::min(shown.size(), max_line_bytes));
    return time_text(now) + " " + level_text(of) + " " + shown + "\n";
  };
  if (lost_ > 0) {
    STRIDE_TRY(write(text_of(LogLevel::warning, std::to_string(lost_) + " lines were lost")));
    lost_ = 0;
  }
  return write(text_of(level, line));
}

// What a write that failed has left is written over, or cut off.
Status LogFile::write(std::string_view text) {
  if (!file_) STRIDE_TRY(open());
  if (end_ > 0 && end_ + text.size() > max_bytes_) STRIDE_TRY(rotate());
  Status s = file_->write_at(end_, as_bytes(text));
  if (s.ok()) {
    end_ += text.size();
    return s;
  }
  Status ignored = file_->truncate(end_);
  return s;
}

Status LogFile::open() {
  auto file = fs_.open(path_, OpenMode::write);
  if (!file.ok() && file.status().code() == StatusCode::not_found)
    file = fs_.open(path_, OpenMode::create);
  if (!file.ok()) return file.status();
  auto size = (*file)->size();
  if (!size.ok()) return size.status();
  file_ = std::move(*file);
  end_ = *size;
  return {};
}

// Where the file keeps its name nothing more is written to it.
Status LogFile::rotate() {
  file_.reset();
  STRIDE_TRY(fs_.rename(path_, old_path_));
  return open();
}

}  // namespace stride
