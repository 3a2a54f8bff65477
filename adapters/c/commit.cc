// Commits, and what they report.
#include <iterator>
#include <optional>

#include "adapters/c/error.h"
#include "adapters/c/objects.h"

using namespace stride;
using namespace stride::c;

static_assert(sizeof(stride_commit_options) == 32);
static_assert(sizeof(stride_commit_progress) == 48);

namespace {

// The size of the first version has no member past these.
constexpr size_t min_commit_bytes = 16;

Status read_durability(int given, std::optional<Durability>* durability) {
  if (given < STRIDE_DURABILITY_DEFAULT || given > STRIDE_DURABILITY_NONE)
    return Status::invalid("durability " + std::to_string(given) +
                           ": -1 to 2 are possible (STRIDE_DURABILITY_)");
  if (given != STRIDE_DURABILITY_DEFAULT) *durability = static_cast<Durability>(given);
  return {};
}

Status read_options(const stride_commit_options* given, CommitOptions* options) {
  if (!given) return {};
  stride_commit_options o{};
  STRIDE_TRY(read_struct(given, "stride_commit_options", min_commit_bytes, sizeof o, &o));
  STRIDE_TRY(read_durability(o.durability, &options->durability));
  options->refuse_equal_keys = o.refuse_equal_keys != 0;
  if (!o.progress) return {};
  options->progress = [call = o.progress, context = o.progress_context](const CommitProgress& p) {
    const stride_commit_progress progress = {sizeof progress, p.share, p.rows,
                                             p.total_rows,    p.bytes, p.total_bytes};
    return call(&progress, context) != 0;
  };
  return {};
}

// A handle whose object is filled before anybody else has it; ends it unless it is kept.
class NewReport {
 public:
  explicit NewReport(stride_commit_report** handle) : handle_(handle) {}
  ~NewReport() {
    if (!handle_ || !*handle_) return;
    Status ignored = release_handle<CommitReportObject>(*handle_);
    *handle_ = nullptr;
  }
  Status make() {
    if (!handle_) return {};
    auto object = std::make_unique<CommitReportObject>();
    report_ = &object->report;
    return make_handle(std::move(object), handle_);
  }
  CommitReport* get() const { return report_; }
  void keep() { handle_ = nullptr; }

 private:
  stride_commit_report** handle_;
  CommitReport* report_ = nullptr;
};

}  // namespace

int stride_commit_options_init(stride_commit_options* options, size_t size) {
  return run([&] {
    STRIDE_TRY(check_pointer(options, "options"));
    stride_commit_options o{sizeof o, STRIDE_DURABILITY_DEFAULT, 0, nullptr, nullptr};
    return write_struct(&o, "stride_commit_options", sizeof o, min_commit_bytes, size, options);
  });
}

int stride_commit(stride_transaction* transaction, int durability) {
  return run([&]() -> Status {
    std::optional<Durability> d;
    STRIDE_TRY(read_durability(durability, &d));
    std::unique_ptr<TransactionObject> object;
    STRIDE_TRY(consume_object(transaction, &object));
    return object->commit({.durability = d});
  });
}

int stride_commit_with(stride_transaction* transaction, const stride_commit_options* options,
                       stride_commit_report** report) {
  if (report) *report = nullptr;
  return run([&]() -> Status {
    CommitOptions o;
    STRIDE_TRY(read_options(options, &o));
    std::unique_ptr<TransactionObject> object;
    STRIDE_TRY(consume_object(transaction, &object));
    // Made first: once the commit has succeeded, nothing may fail.
    NewReport made(report);
    STRIDE_TRY(made.make());
    STRIDE_TRY(object->commit(o, made.get()));
    made.keep();
    return {};
  });
}

int stride_commit_report_keys(stride_commit_report* report, const char* table, uint64_t* keys) {
  return run([&] {
    Use<CommitReportObject> r;
    STRIDE_TRY(r.begin(report));
    STRIDE_TRY(check_pointer(table, "table"));
    STRIDE_TRY(check_pointer(keys, "keys"));
    auto found = r->report.keys.find(table);
    *keys = found == r->report.keys.end() ? 0 : found->second;
    return Status();
  });
}

int stride_commit_report_size(stride_commit_report* report, uint64_t* size) {
  return run([&] {
    Use<CommitReportObject> r;
    STRIDE_TRY(r.begin(report));
    STRIDE_TRY(check_pointer(size, "size"));
    *size = r->report.keys.size();
    return Status();
  });
}

int stride_commit_report_get(stride_commit_report* report, uint64_t i, const char** table,
                             uint64_t* keys) {
  return run([&] {
    Use<CommitReportObject> r;
    STRIDE_TRY(r.begin(report));
    const auto& tables = r->report.keys;
    if (i >= tables.size())
      return Status::invalid("there is no table " + std::to_string(i) + " in a report of " +
                             std::to_string(tables.size()));
    auto at = std::next(tables.begin(), static_cast<int64_t>(i));
    if (table) *table = at->first.c_str();
    if (keys) *keys = at->second;
    return Status();
  });
}

int stride_commit_report_release(stride_commit_report* report) {
  return run([&] { return release_handle<CommitReportObject>(report); });
}
