#include "engine/catalog/unsynced_files.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <span>
#include <thread>

#include "engine/catalog/reserve_one_more.h"
#include "storage/first_failure.h"
#include "storage/no_throw.h"
#include "storage/work_watch.h"

namespace stride {
namespace {

// What is discarded was added lately.
template <class T, class IsIt>
void erase_last(std::vector<T>* list, const IsIt& is_it) {
  auto found = std::find_if(list->rbegin(), list->rend(), is_it);
  if (found != list->rend()) list->erase(std::next(found).base());
}

Status write_again(File& file) {
  constexpr uint64_t step_bytes = 1 << 20;
  auto bytes = file.size();
  if (!bytes.ok()) return bytes.status();
  std::vector<std::byte> buffer(std::min(*bytes, step_bytes));
  for (uint64_t at = 0; at < *bytes; at += step_bytes) {
    std::span<std::byte> step = std::span(buffer).first(std::min(step_bytes, *bytes - at));
    STRIDE_TRY(file.read_at(at, step));
    STRIDE_TRY(file.write_at(at, step));
  }
  return {};
}

}  // namespace

void UnsyncedFiles::reserve(size_t segments) {
  std::lock_guard lock(mutex_);
  reserve_more(&paths_, segments);
  reserve_more(&being_written_, segments);
}

void UnsyncedFiles::add(std::shared_ptr<Segment> segment, std::string path) noexcept {
  std::lock_guard lock(mutex_);
  paths_.push_back(std::move(path));
  being_written_.push_back(std::move(segment));
}

void UnsyncedFiles::add_file(std::string path) {
  std::lock_guard lock(mutex_);
  paths_.push_back(std::move(path));
}

void UnsyncedFiles::add_found(std::string path) {
  std::lock_guard lock(mutex_);
  found_.insert(path);
  paths_.push_back(std::move(path));
}

void UnsyncedFiles::discard(const Segment& segment) noexcept {
  {
    std::lock_guard lock(mutex_);
    erase_last(&paths_, [&](const std::string& path) { return path == segment.path(); });
    erase_last(&being_written_, [&](const auto& s) { return s.get() == &segment; });
  }
  Status ignored = no_throw([&] { return fs_.remove(segment.path()); });
}

void UnsyncedFiles::add_log(std::shared_ptr<LogWriter> log) {
  std::lock_guard lock(mutex_);
  logs_.push_back(std::move(log));
}

void UnsyncedFiles::drop_log(uint64_t number) noexcept {
  std::lock_guard lock(mutex_);
  std::erase_if(logs_, [&](const auto& log) { return log->record().number == number; });
}

// In their order: what is in a log counts only where all before it is there.
Status UnsyncedFiles::bring_logs(LogWriter::Reach reach) {
  for (const auto& log : logs_) {
    Status s = no_throw([&] { return log->reach(reach); });
    if (!s.ok()) return log->poisoned() ? poison_.set(std::move(s)) : s;
  }
  return {};
}

bool UnsyncedFiles::has_unsynced_log() const {
  std::lock_guard lock(mutex_);
  return std::any_of(logs_.begin(), logs_.end(),
                     [](const auto& log) { return log->has_unsynced(); });
}

std::optional<uint64_t> UnsyncedFiles::logs_end() const {
  std::lock_guard lock(mutex_);
  if (logs_.empty()) return std::nullopt;
  return logs_.back()->position();
}

Status UnsyncedFiles::sync_logs() {
  std::lock_guard lock(mutex_);
  return bring_logs(LogWriter::Reach::disk);
}

Status UnsyncedFiles::finish_writes(bool wait, bool logs) {
  std::lock_guard lock(mutex_);
  Status failure;
  if (logs) failure = bring_logs(LogWriter::Reach::system);
  std::erase_if(being_written_, [&](const std::shared_ptr<Segment>& segment) {
    if (!wait && segment->being_written()) return false;
    Status s = no_throw([&] { return segment->finish_write(); });
    if (!s.ok() && failure.ok()) failure = poison_.set(std::move(s));
    return true;
  });
  return failure;
}

Status UnsyncedFiles::sync(bool new_names, bool logs) {
  std::lock_guard syncing(syncing_);
  STRIDE_TRY(poison_.status());
  std::lock_guard lock(mutex_);
  if (logs) STRIDE_TRY(bring_logs(LogWriter::Reach::disk));
  STRIDE_TRY(sync_files(paths_, found_));
  if (new_names || !paths_.empty()) STRIDE_TRY(sync_directory());
  paths_.clear();
  found_.clear();
  return {};
}

// Files are dropped from the list only once their names are synced, too.
Status UnsyncedFiles::sync_ahead() {
  std::lock_guard syncing(syncing_);
  STRIDE_TRY(poison_.status());
  std::unordered_set<std::string> ahead;
  {
    std::lock_guard lock(mutex_);
    ahead.insert(paths_.begin(), paths_.end());
    for (const std::string& path : found_) ahead.erase(path);
    for (const auto& segment : being_written_)
      if (segment->being_written()) ahead.erase(segment->path());
  }
  if (ahead.empty()) return {};
  STRIDE_TRY(sync_files(std::vector<std::string>(ahead.begin(), ahead.end()), {}));
  STRIDE_TRY(sync_directory());
  std::lock_guard lock(mutex_);
  std::erase_if(paths_, [&](const std::string& path) { return ahead.contains(path); });
  return {};
}

// A disk takes many syncs at once in not much more time than one.
Status UnsyncedFiles::sync_files(const std::vector<std::string>& paths,
                                 const std::unordered_set<std::string>& written_again) {
  constexpr size_t files_per_thread = 16, max_threads = 16;
  FirstFailure failure;
  std::atomic<size_t> next{0};
  const WorkWatch* watch = WorkWatch::current();
  auto work = [&] {
    for (size_t i; (i = next.fetch_add(1)) < paths.size() && !failure.failed();) {
      if (watch && watch->is_stopped()) return failure.report(WorkWatch::cancelled());
      failure.report(
          no_throw([&] { return sync_file(paths[i], written_again.contains(paths[i])); }));
    }
  };
  std::vector<std::thread> threads;
  try {
    const size_t useful = std::min(max_threads, paths.size() / files_per_thread);
    threads.reserve(useful);
    while (threads.size() < useful) threads.emplace_back(work);
  } catch (const std::exception&) {
    // Those that there are do it all.
  }
  work();
  for (std::thread& thread : threads) thread.join();
  return failure.status();
}

Status UnsyncedFiles::sync_file(const std::string& path, bool write_it_again) {
  auto file = fs_.open(path, OpenMode::write);
  if (file.status().code() == StatusCode::not_found) return {};  // compacted or dropped since
  // Nothing was synced, so nothing is lost.
  if (file.status().code() == StatusCode::resource_exhausted) return file.status();
  Status s = file.status();
  if (s.ok() && write_it_again) s = no_throw([&] { return write_again(**file); });
  if (s.code() == StatusCode::resource_exhausted) return s;
  if (s.ok()) s = no_throw([&] { return (*file)->sync(); });
  return s.ok() ? s : poison_.set(std::move(s));
}

Status UnsyncedFiles::sync_directory() {
  bool returned = false;
  Status s = no_throw([&] {
    Status synced = fs_.sync_directory(directory_);
    returned = true;
    return synced;
  });
  // The directory could not be opened. Of a call that threw nobody knows how far it came.
  if (returned && s.code() == StatusCode::resource_exhausted) return s;
  return s.ok() ? s : poison_.set(std::move(s));
}

}  // namespace stride
