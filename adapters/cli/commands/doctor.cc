// stride doctor: what is unusual about a database; or what this machine has, and what will be fast
// on it and what not.
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <random>
#include <string>

#include "adapters/cli/commands/database_doctor.h"
#include "adapters/cli/commands/machine_memory.h"
#include "adapters/cli/context.h"
#include "adapters/cli/input/pipeline.h"
#include "adapters/cli/output/progress.h"
#include "adapters/cli/subcommands.h"

namespace stride::cli {
namespace {

struct DoctorArguments {
  std::string directory = ".";
  uint64_t megabytes = 256;
};

double seconds_of(const std::function<void()>& work) {
  auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

std::string first_line(const std::string& path) {
  std::ifstream in(path);
  std::string line;
  std::getline(in, line);
  return line;
}

// A directory that is removed with all that is in it.
class Scratch {
 public:
  explicit Scratch(const std::string& parent) : path_(parent + "/.stride-doctor-XXXXXX") {
    if (!mkdtemp(path_.data())) error_ = errno;
  }
  ~Scratch() {
    std::error_code ignored;
    if (error_ == 0) std::filesystem::remove_all(path_, ignored);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  const std::string& path() const { return path_; }
  int error() const { return error_; }

 private:
  std::string path_;
  int error_ = 0;
};

void look_at_machine(const std::string& meminfo, std::vector<Finding>* findings) {
  unsigned threads = available_threads();
  findings->push_back({"processors", std::to_string(threads),
                       threads < 2 ? "loads and batches use all processors: more are faster" : ""});
  uint64_t free = memory_bytes(meminfo, "MemAvailable");
  findings->push_back(
      {"memory", byte_text(memory_bytes(meminfo, "MemTotal")) + ", " + byte_text(free) + " free",
       free < (uint64_t{1} << 30) ? "little is free: load with --commit-every" : ""});
  std::string huge = first_line("/sys/kernel/mm/transparent_hugepage/enabled");
  bool never = huge.empty() || huge.find("[never]") != std::string::npos;
  findings->push_back({"huge pages", huge.empty() ? "unknown" : huge,
                       never ? "large batches miss the address cache: set them to madvise" : ""});
  struct rlimit files {};
  getrlimit(RLIMIT_NOFILE, &files);
  findings->push_back({"open files", std::to_string(files.rlim_cur),
                       files.rlim_cur < 1024 ? "each segment takes one: raise ulimit -n" : ""});
  std::string maps = first_line("/proc/sys/vm/max_map_count");
  findings->push_back({"memory maps", maps.empty() ? "unknown" : maps, ""});
}

void look_at_device(const std::string& directory, std::vector<Finding>* findings) {
  Options options;
  options.backend = BackendKind::cuda;
  auto database = Database::open(directory + "/device", options);
  if (database.ok()) {
    findings->push_back({"device", (*database)->backend_name(), ""});
  } else {
    findings->push_back(
        {"device", "none: " + database.status().message(),
         "all is done by the processors; batches of millions would gain from a device"});
  }
}

// Random numbers as keys and values of 44 bytes.
struct Sample {
  std::vector<uint64_t> keys;
  std::vector<char> values;
  KeyColumn key_column() const { return Column::fixed(keys.data(), 8, keys.size()); }
  ValueColumn value_column() const { return Column::fixed(values.data(), 44, keys.size()); }
};

ExitStatus try_database(const std::string& directory, uint64_t bytes,
                        std::vector<Finding>* findings) {
  Sample sample;
  std::mt19937_64 random(1);
  sample.keys.resize(std::max<uint64_t>(bytes / 52, 1000));
  for (uint64_t& key : sample.keys) key = random();
  sample.values.resize(sample.keys.size() * 44);
  for (char& c : sample.values) c = static_cast<char>(random());
  auto database = Database::open(directory + "/db", {.backend = BackendKind::host});
  if (!database.ok()) return database.status();
  auto table = (*database)->create_table("t", {.key_width = 8});
  if (!table.ok()) return table.status();
  Status status;
  auto rate = [&](double seconds) {
    return byte_text(
               static_cast<uint64_t>(static_cast<double>(sample.keys.size() * 52) / seconds)) +
           "/s";
  };
  auto millions = [&](double seconds) {
    char text[32];
    std::snprintf(text, sizeof text, "%.3g M/s",
                  static_cast<double>(sample.keys.size()) / seconds / 1e6);
    return std::string(text);
  };
  double small = seconds_of([&] {
                   for (int i = 0; i < 5 && status.ok(); ++i) {
                     WriteTransaction t = (*database)->begin();
                     status = t.put(*table, "smallkey", "value");
                     if (status.ok()) status = t.commit();
                   }
                 }) /
                 5;
  STRIDE_CLI_TRY(status);
  findings->push_back({"small commit", seconds_text(small),
                       small > 0.02 ? "syncing is slow here: commit in bulk" : ""});
  double load = seconds_of([&] {
    WriteTransaction t = (*database)->begin();
    status = t.put_view(*table, sample.key_column(), sample.value_column());
    if (status.ok()) status = t.commit();
  });
  STRIDE_CLI_TRY(status);
  double bytes_a_second = static_cast<double>(sample.keys.size() * 52) / load;
  findings->push_back({"bulk load", millions(load) + ", " + rate(load),
                       bytes_a_second < 200e6 ? "the disk is slow: loads will wait for it" : ""});
  GetResult result;
  double get = seconds_of(
      [&] { status = (*database)->snapshot().get(*table, sample.key_column(), &result); });
  STRIDE_CLI_TRY(status);
  findings->push_back({"batch lookup", millions(get), ""});
  return (*database)->close();
}

ExitStatus look_at_disk(const std::string& directory, uint64_t bytes,
                        std::vector<Finding>* findings) {
  struct statvfs disk {};
  if (statvfs(directory.c_str(), &disk) != 0)
    return ExitStatus::from_errno(errno, directory, "statvfs");
  uint64_t free = uint64_t{disk.f_bavail} * disk.f_frsize;
  findings->push_back({"disk", byte_text(free) + " free",
                       free < 4 * bytes ? "too little to try it: give another directory" : ""});
  if (free < 4 * bytes) return {};
  return try_database(directory, bytes, findings);
}

void add_doctor(CLI::App* command, DoctorArguments* a) {
  command->add_option("DIR", a->directory, "A database, or where databases are to lie")
      ->capture_default_str();
  command
      ->add_option("--megabytes", a->megabytes, "To write there for the measurement; removed again")
      ->check(CLI::Range(1u, 1u << 16))
      ->capture_default_str()
      ->type_name("N");
  command->footer(
      "Of a database: what is unusual about it, and what to do. Exit code 0: nothing; 9, or that "
      "of\n"
      "what reads or writes would end with: something. It changes nothing, and reads as much as\n"
      "opening does; stride verify reads every byte.\n"
      "Of another directory: how fast a database would be there, with a small one that is removed\n"
      "again.\n\n"
      "Examples:\n  stride doctor /var/lib/app/db\n  stride doctor /var/lib/app");
}

ExitStatus run_doctor(Context* context, const DoctorArguments& arguments) {
  if (is_database(*context, arguments.directory))
    return examine_database(context, arguments.directory);
  std::vector<Finding> findings;
  Scratch scratch(arguments.directory);
  if (scratch.error())
    return ExitStatus::from_errno(scratch.error(), arguments.directory, "make a directory");
  look_at_machine(context->environment.meminfo, &findings);
  look_at_device(scratch.path(), &findings);
  STRIDE_CLI_TRY(look_at_disk(scratch.path(), arguments.megabytes * 1000000, &findings));
  return print_findings(context, findings);
}

const bool doctor_registered =
    Subcommands::add(460, "doctor", "What is unusual about a database, or will be fast here",
                     &add_doctor, &run_doctor);

}  // namespace
}  // namespace stride::cli
