// Who may include whom, and where CUDA may be spoken of: docs/architecture.md, "Folders". A room is
// a folder of the top level. The checker reads the sources themselves, so that what breaks a rule
// fails here and not in a review.
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <iterator>
#include <regex>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/catch.h"

namespace {

namespace fs = std::filesystem;

using std::string;
using std::string_view;

const std::set<string, std::less<>> kRooms = {"storage",  "gpu",       "engine",
                                              "adapters", "benchmark", "tests"};
const std::set<string, std::less<>> kSourceExtensions = {".h",  ".hh",  ".hpp", ".inc", ".c",
                                                         ".cc", ".cpp", ".cu",  ".cuh"};
// What gpu may see of storage.
const std::set<string, std::less<>> kStorageForGpu = {
    "storage/status.h",        "storage/column.h",     "storage/block_guard.h",
    "storage/number.h",        "storage/prefix_key.h", "storage/prefetch.h",
    "storage/stream_store.h",  "storage/export.h",     "storage/no_throw.h",
    "storage/first_failure.h", "storage/key_filter.h", "storage/spin_pause.h",
    "storage/work_watch.h"};
// The backend's interface is what lies at the top of gpu; of the folders below it the planner
// alone.
bool is_backend_interface(const string& name) {
  if (!name.starts_with("gpu/") || !name.ends_with(".h")) return false;
  return name.rfind('/') == name.find('/') || name == "gpu/plan/tree_planner.h" ||
         name == "gpu/plan/tree_estimate.h";
}
// The folders of gpu, from the ground up: a folder knows those before it, and the interface.
const std::vector<string> kGpuFloors = {"host",  "keys", "device",  "sort",    "tree",    "plan",
                                        "match", "set",  "scatter", "several", "backends"};
// The folders of benchmark, from the ground up, likewise; its top, with main(), knows all of them.
const std::vector<string> kBenchmarkFloors = {"harness", "datasets", "limits", "peers",
                                              "workloads"};

// What the engine's public headers speak in, and so everybody who calls them, and how
// failures are gathered and told.
const std::set<string, std::less<>> kVocabulary = {
    "storage/status.h",     "storage/column.h",      "storage/number.h",
    "storage/prefetch.h",   "storage/prefix_key.h",  "storage/first_failure.h",
    "storage/quoted.h",     "storage/integer_key.h", "storage/schema.h",
    "storage/row_format.h", "storage/key_format.h",  "storage/utf8.h",
    "storage/key_order.h"};
// The engine's public headers.
const std::set<string, std::less<>> kPublicEngine = {
    "engine/backup.h",           "engine/watched_call.h",
    "engine/database.h",         "engine/dedup_table.h",
    "engine/group_by.h",         "engine/library_version.h",
    "engine/lookup_result.h",    "engine/options.h",
    "engine/prefixes.h",         "engine/scan.h",
    "engine/result_buffer.h",    "engine/scatter_plan.h",
    "engine/row_set.h",          "engine/table.h",
    "engine/row_columns.h",      "engine/snapshot.h",
    "engine/key_columns.h",      "engine/write_transaction.h",
    "engine/stridedb_version.h", "engine/make_vector_set.h",
    "engine/metrics.h",          "engine/event_listener.h",
    "engine/logger.h",           "engine/diagnosis.h",
    "engine/cursor.h",           "engine/transaction.h",
    "engine/damage.h",           "engine/salvage.h"};

// What the folders of the engine may see of its top: what the public interface takes and returns,
// and none of what stands on the folders.
const std::set<string, std::less<>> kEngineWords = {
    "engine/backup.h",  "engine/event_listener.h", "engine/logger.h",      "engine/lookup_result.h",
    "engine/metrics.h", "engine/options.h",        "engine/row_columns.h", "engine/result_buffer.h",
    "engine/scan.h",    "engine/table.h",          "engine/cursor.h",      "engine/damage.h",
    "engine/salvage.h"};

bool starts_with_any(string_view text, std::initializer_list<string_view> prefixes) {
  return std::any_of(prefixes.begin(), prefixes.end(),
                     [&](string_view prefix) { return text.starts_with(prefix); });
}

string read_file(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

// The source with comments blanked, and the same with string and character literals blanked too.
// Offsets stay those of the source.
struct Stripped {
  string without_comments;
  string code;
};

Stripped strip(const string& source) {
  Stripped out{source, source};
  const auto blank = [&](string& text, size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      if (text[i] != '\n') text[i] = ' ';
    }
  };
  // The end of what starts at `from` and ends with `end`, which belongs to it.
  const auto past = [&](string_view end, size_t from) {
    const size_t found = source.find(end, from);
    return found == string::npos ? source.size() : found + end.size();
  };
  const auto is_word = [&](size_t i) {
    return std::isalnum(static_cast<unsigned char>(source[i])) != 0 || source[i] == '_';
  };
  for (size_t i = 0; i < source.size();) {
    const string_view rest = string_view(source).substr(i);
    size_t end = i + 1;
    if (rest.starts_with("//") || rest.starts_with("/*")) {
      end = rest[1] == '/' ? std::min(source.find('\n', i), source.size()) : past("*/", i + 2);
      blank(out.without_comments, i, end);
      blank(out.code, i, end);
    } else if (rest.starts_with("R\"") && (i == 0 || !is_word(i - 1))) {
      const size_t open = std::min(source.find('(', i), source.size());
      end = past(")" + source.substr(i + 2, open - i - 2) + "\"", open);
      blank(out.code, i, end);
    } else if (rest[0] == '"' || (rest[0] == '\'' && (i == 0 || !is_word(i - 1)))) {
      while (end < source.size() && source[end] != rest[0] && source[end] != '\n') {
        end += source[end] == '\\' ? 2 : 1;
      }
      end = std::min(end + 1, source.size());
      if (source[end - 1] == '\n') --end;
      blank(out.code, i, end);
    }
    i = end;
  }
  return out;
}

struct Include {
  size_t line;
  bool quoted;
  string name;
};

std::vector<Include> includes_of(const Stripped& source) {
  static const std::regex directive(R"(^\s*#\s*include\b)");
  static const std::regex target(R"(include\s*([<"])([^>"]+)[>"])");
  std::vector<Include> found;
  size_t line = 1;
  for (size_t begin = 0; begin < source.code.size(); ++line) {
    const size_t end = std::min(source.code.find('\n', begin), source.code.size());
    if (std::regex_search(source.code.substr(begin, end - begin), directive)) {
      const string text = source.without_comments.substr(begin, end - begin);
      std::smatch match;
      if (std::regex_search(text, match, target)) {
        found.push_back({line, match[1] == "\"", match[2]});
      } else {
        found.push_back({line, true, "(a macro)"});
      }
    }
    begin = end + 1;
  }
  return found;
}

// Headers of C++ have neither a dot nor a folder; of C, POSIX and the processor's intrinsics these.
bool is_system_header(const string& name) {
  static const std::set<string, std::less<>> c_and_posix = {
      "assert.h", "dirent.h", "errno.h",  "fcntl.h",   "fnmatch.h", "inttypes.h",
      "limits.h", "math.h",   "poll.h",   "pthread.h", "sched.h",   "signal.h",
      "spawn.h",  "stdarg.h", "stddef.h", "stdint.h",  "stdio.h",   "stdlib.h",
      "string.h", "time.h",   "unistd.h", "cpuid.h",   "malloc.h",  "arm_neon.h"};
  if (name.find_first_of("./") == string::npos) return true;
  return c_and_posix.contains(name) || name.ends_with("intrin.h") ||
         starts_with_any(name, {"arpa/", "sys/", "linux/", "asm/"});
}

bool is_cuda_header(const string& name) {
  return starts_with_any(name,
                         {"thrust/", "cub/", "cuda", "cooperative_groups", "nv/", "nvtx", "nvml"});
}

bool is_peer_header(const string& name) {
  return name.starts_with("rocksdb/") || name == "lmdb.h" || name == "lmdb++.h";
}

// The walls between the folders of the engine. Its top stands on all of them, and analytics/ on the
// public interface.
bool may_include_engine_header(const string& file, const string& name) {
  const size_t end = file.find('/', string("engine/").size());
  const string folder = end == string::npos ? "" : file.substr(0, end + 1);
  if (folder.empty() || folder == "engine/analytics/") return true;
  if (name.find('/') == name.rfind('/')) return kEngineWords.contains(name);
  if (name.starts_with("engine/build/"))
    return starts_with_any(folder, {"engine/build/", "engine/write/", "engine/merge/",
                                    "engine/memtable/", "engine/salvage/"});
  if (name.starts_with("engine/write/"))
    return !starts_with_any(folder, {"engine/read/", "engine/merge/", "engine/build/"});
  return true;
}

// The number of a file's folder among the floors of its room; `top` for a file of no folder.
size_t floor_of(const std::vector<string>& floors, const string& file, size_t top) {
  const size_t begin = file.find('/') + 1, end = file.find('/', begin);
  if (end == string::npos) return top;
  return 1 + static_cast<size_t>(
                 std::find(floors.begin(), floors.end(), file.substr(begin, end - begin)) -
                 floors.begin());
}

// A file at the top of gpu, the interface, is above no folder; one of benchmark is above all.
bool is_not_above(const string& room, const string& name, const string& file) {
  const bool gpu = room == "gpu";
  const std::vector<string>& floors = gpu ? kGpuFloors : kBenchmarkFloors;
  const size_t top = gpu ? 0 : 1 + floors.size();
  return floor_of(floors, name, top) <= floor_of(floors, file, top);
}

bool may_include_project_header(const string& room, const string& file, const string& name) {
  const string from = name.substr(0, name.find('/'));
  if (from == room) {
    if (room == "gpu" || room == "benchmark") return is_not_above(room, name, file);
    return room != "engine" || may_include_engine_header(file, name);
  }
  if (room == "gpu") return kStorageForGpu.contains(name);
  if (room == "engine") return from == "storage" || is_backend_interface(name);
  if (room == "adapters") return kPublicEngine.contains(name) || kVocabulary.contains(name);
  if (room == "benchmark") {
    return from == "adapters" || from == "engine" || is_backend_interface(name) ||
           kVocabulary.contains(name);
  }
  if (room == "tests") return from != "benchmark" || file.starts_with("tests/benchmark/");
  return false;  // storage
}

bool may_include_foreign_header(const string& room, const string& file, const string& name) {
  if (is_peer_header(name)) return file.starts_with("benchmark/peers/");
  if (is_cuda_header(name)) return room == "gpu" || file.starts_with("tests/gpu/");
  if (is_system_header(name)) return true;
  if (room == "storage") {
    return name == "xxhash.h" || name == "xxh_x86dispatch.h" || name == "liburing.h";
  }
  if (room == "gpu") return starts_with_any(name, {"tbb/", "oneapi/tbb", "omp.h", "xxhash.h"});
  return room == "adapters" || room == "benchmark" || room == "tests";
}

// What is wrong with one include of `file`, or nothing.
string wrong_with(const fs::path& root, const string& file, const Include& include) {
  const string room = file.substr(0, file.find('/'));
  if (!include.quoted) {
    const string first = include.name.substr(0, include.name.find('/'));
    if (kRooms.contains(first) && fs::exists(root / include.name)) {
      return "is one of ours: write it in quotes";
    }
    return may_include_foreign_header(room, file, include.name) ? "" : "is not for this room";
  }
  // The C headers lie beside one another where they are installed.
  const auto is_c_header = [](string_view name) {
    return name.starts_with("stridedb") && name.ends_with(".h");
  };
  if (file.starts_with("adapters/c/stridedb") && is_c_header(include.name) &&
      fs::is_regular_file(root / "adapters/c" / include.name)) {
    return "";
  }
  // CMake makes some headers, of a file that has .in behind its name.
  const bool there = fs::is_regular_file(root / include.name) ||
                     fs::is_regular_file(root / (include.name + ".in"));
  if (!there || include.name.find("..") != string::npos ||
      !kRooms.contains(include.name.substr(0, include.name.find('/')))) {
    return "is not a path from the repository's root";
  }
  if (include.name.ends_with(".cuh") && room != "gpu" && !file.starts_with("tests/gpu/")) {
    return "is device code";
  }
  return may_include_project_header(room, file, include.name) ? "" : "is not for this room";
}

void check_source(const fs::path& root, const string& file, const string& text,
                  std::vector<string>& violations) {
  const Stripped source = strip(text);
  for (const Include& include : includes_of(source)) {
    const string wrong = wrong_with(root, file, include);
    if (wrong.empty()) continue;
    violations.push_back(file + ":" + std::to_string(include.line) + ": " + include.name + " " +
                         wrong);
  }
  if (file.starts_with("gpu/") || file.starts_with("tests/gpu/")) return;
  static const std::regex token(
      R"(<<<|\b__(device|global|host|shared|constant)__\b|\bcuda([A-Z]\w*|_\w*|::)|\b(thrust|cub)::)");
  std::smatch match;
  if (std::regex_search(source.code, match, token)) {
    const auto line = 1 + std::count(match.prefix().first, match.prefix().second, '\n');
    violations.push_back(file + ":" + std::to_string(line) + ": " + match.str() +
                         " is for gpu/ and tests/gpu/ only");
  }
}

void check_paths(const string& file, const string& text, std::vector<string>& violations) {
  static const std::regex home(R"((^|[^\w.}$)/-])/(home|Users)/\w|(^|[^\w.}$)/-])/)"
                               R"(root/\w)");
  if (text.find('\0') != string::npos) return;
  size_t line = 1;
  for (size_t begin = 0; begin < text.size(); ++line) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    // A line that is longer than any source's is data.
    const string one = text.substr(begin, std::min<size_t>(end - begin, 2000));
    if (one.find('/') != string::npos && std::regex_search(one, home)) {
      violations.push_back(file + ":" + std::to_string(line) + ": a path of somebody's home");
    }
    begin = end + 1;
  }
}

// Every broken rule in the tree at `root`, as "file:line: what".
std::vector<string> check_tree(const fs::path& root) {
  constexpr std::uintmax_t kLargestText = 1 << 20;
  const std::set<string, std::less<>> skipped = {".git", ".cache", "data"};
  std::vector<string> violations;
  for (auto entry = fs::recursive_directory_iterator(root); entry != fs::end(entry); ++entry) {
    if (entry->is_directory()) {
      // engine/build is source.
      if (skipped.contains(entry->path().filename().string()) || entry->path() == root / "build")
        entry.disable_recursion_pending();
      continue;
    }
    if (!entry->is_regular_file() || entry->file_size() > kLargestText) continue;
    const string file = fs::relative(entry->path(), root).generic_string();
    const string text = read_file(entry->path());
    if (kRooms.contains(file.substr(0, file.find('/'))) &&
        kSourceExtensions.contains(entry->path().extension().string())) {
      check_source(root, file, text, violations);
    }
    check_paths(file, text, violations);
  }
  std::sort(violations.begin(), violations.end());
  return violations;
}

TEST_CASE("ArchitectureTest.TheTreeKeepsTheRules", "[ArchitectureTest]") {
  const char* given = std::getenv("STRIDE_SOURCE_DIR");
  const fs::path root = given != nullptr ? given : STRIDE_SOURCE_DIR;
  if (!fs::exists(root / "CMakeLists.txt")) SKIP("no sources at " << root);
  for (const string& violation : check_tree(root)) FAIL_CHECK(violation);
}

// A small tree in a folder of its own.
class PlantedTreeTest {
 protected:
  PlantedTreeTest() {
    string name = (fs::temp_directory_path() / "stride_architecture_XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp " + name);
    root_ = name;
    for (const char* file :
         {"storage/status.h", "storage/file.h", "gpu/backend.h", "gpu/tree/tree_ref.cuh",
          "gpu/sort/sort.h", "engine/database.h", "engine/options.h", "engine/build/row_source.h",
          "engine/write/commit_queue.h", "adapters/sts/sts.h", "benchmark/harness/report.h",
          "benchmark/datasets/route_tables.h", "benchmark/workloads/measurement.h",
          "tests/support/printed_seed.h"}) {
      plant(file, "#pragma once\n");
    }
  }
  ~PlantedTreeTest() { fs::remove_all(root_); }

  void plant(const string& file, const string& text) {
    fs::create_directories((root_ / file).parent_path());
    std::ofstream(root_ / file) << text;
  }

  fs::path root_;
};

struct Planted {
  const char* file;
  const char* text;
};

TEST_CASE_METHOD(PlantedTreeTest, "PlantedTreeTest.AllowsWhatTheRulesAllow", "[PlantedTreeTest]") {
  REQUIRE(check_tree(root_) == std::vector<string>{});
  const Planted allowed[] = {
      {"storage/a.cc", "#include <fcntl.h>\n#include <sys/mman.h>\n#include <xxhash.h>\n"},
      {"gpu/a.cc",
       "#include <thrust/sort.h>\n#include <tbb/task_arena.h>\n#include <vector>\n"
       "#include \"storage/status.h\"\n"},
      {"gpu/tree/a.cu",
       "#include \"gpu/tree/tree_ref.cuh\"\n__global__ void f(); void g() { f<<<1, 1>>>(); }\n"},
      {"engine/a.cc", "#include \"storage/file.h\"\n#include \"gpu/backend.h\"\n"},
      {"engine/a.cc",
       "#include \"engine/database.h\"\n#include \"engine/build/row_source.h\"\n"
       "#include \"engine/write/commit_queue.h\"\n"},
      {"engine/read/a.cc", "#include \"engine/options.h\"\n"},
      {"engine/merge/a.cc", "#include \"engine/build/row_source.h\"\n"},
      {"engine/write/a.cc", "#include \"engine/build/row_source.h\"\n"},
      {"engine/memtable/a.cc", "#include \"engine/build/row_source.h\"\n"},
      {"engine/analytics/a.cc", "#include \"engine/database.h\"\n"},
      {"adapters/a.cc", "#include \"engine/database.h\"\n#include <nlohmann/json.hpp>\n"},
      {"benchmark/peers/a.cc", "#include <rocksdb/db.h>\n#include <lmdb.h>\n"},
      {"benchmark/a.cc", "#include \"adapters/sts/sts.h\"\n#include \"gpu/backend.h\"\n"},
      {"benchmark/main.cc", "#include \"benchmark/workloads/measurement.h\"\n"},
      {"benchmark/peers/b.cc",
       "#include \"benchmark/datasets/route_tables.h\"\n#include \"benchmark/harness/report.h\"\n"},
      {"tests/gpu/a.cu", "#include \"gpu/tree/tree_ref.cuh\"\n#include <cub/cub.cuh>\n"},
      {"tests/benchmark/a.cc",
       "#include \"benchmark/harness/report.h\"\n#include <nlohmann/json.hpp>\n"},
      // Comments and literals are no code; a digit separator starts no literal.
      {"engine/b.cc",
       "// #include <lmdb.h>\n/* __device__ */ int n = 1'000; const char* s = "
       "\"cudaMalloc <<<\";\nconst char* r = R\"(\n#include <lmdb.h>\n)\";\n"},
  };
  for (const Planted& planted : allowed) {
    plant(planted.file, planted.text);
    CHECK_MESSAGE(check_tree(root_) == std::vector<string>{}, planted.text);
  }
}

TEST_CASE_METHOD(PlantedTreeTest, "PlantedTreeTest.CatchesEveryKindOfViolation",
                 "[PlantedTreeTest]") {
  const string home = string("cd ") + "/home" + "/somebody/src\n";
  const Planted forbidden[] = {
      {"storage/a.cc", "#include \"engine/database.h\"\n"},
      {"storage/a.cc", "#include <tbb/parallel_for.h>\n"},
      {"storage/a.cc", "#include <nlohmann/json.hpp>\n"},
      {"gpu/a.cc", "#include \"storage/file.h\"\n"},
      {"gpu/a.h", "#include \"gpu/sort/sort.h\"\n"},
      {"gpu/sort/a.cc", "#include \"gpu/tree/tree_ref.cuh\"\n"},
      {"gpu/a.cc", "#include \"engine/database.h\"\n"},
      {"gpu/a.cc", "#include <nlohmann/json.hpp>\n"},
      {"engine/a.cc", "#include \"gpu/sort/sort.h\"\n"},
      {"engine/a.cc", "#include \"gpu/tree/tree_ref.cuh\"\n"},
      {"engine/a.cc", "#include \"adapters/sts/sts.h\"\n"},
      {"engine/catalog/a.cc", "#include \"engine/database.h\"\n"},
      {"engine/read/a.cc", "#include \"engine/write/commit_queue.h\"\n"},
      {"engine/merge/a.cc", "#include \"engine/write/commit_queue.h\"\n"},
      {"engine/build/a.cc", "#include \"engine/write/commit_queue.h\"\n"},
      {"engine/read/a.cc", "#include \"engine/build/row_source.h\"\n"},
      {"engine/prefix/a.cc", "#include \"engine/build/row_source.h\"\n"},
      {"engine/a.cc", "#include <thrust/sort.h>\n"},
      {"engine/a.cc", "#include <lmdb.h>\n"},
      {"engine/a.cc", "__device__ int f();\n"},
      {"engine/a.cc", "int n = 1'000; void f() { cudaMalloc(); }\n"},
      {"engine/a.cc", "const char q = '\"'; void f() { g<<<1, 2>>>(); }\n"},
      {"engine/a.cc", "#include \"database.h\"\n"},
      {"engine/a.cc", "#include \"../storage/file.h\"\n"},
      {"engine/a.cc", "#include <storage/file.h>\n"},
      {"engine/a.cc", "  #  include /* why */ \"gpu/sort/sort.h\"\n"},
      {"adapters/a.cc", "#include \"storage/file.h\"\n"},
      {"adapters/a.cc", "#include \"engine/write/commit_queue.h\"\n"},
      {"adapters/a.cc", "#include \"benchmark/harness/report.h\"\n"},
      {"benchmark/a.cc", "#include \"gpu/sort/sort.h\"\n"},
      {"benchmark/a.cc", "#include \"storage/file.h\"\n"},
      {"benchmark/harness/a.cc", "#include \"benchmark/datasets/route_tables.h\"\n"},
      {"benchmark/datasets/a.cc", "#include \"benchmark/workloads/measurement.h\"\n"},
      {"benchmark/a.cc", "#include <rocksdb/db.h>\n"},
      {"benchmark/a.cc", "#include \"tests/support/printed_seed.h\"\n"},
      {"tests/engine/a.cc", "#include <rocksdb/db.h>\n"},
      {"tests/engine/a.cc", "#include \"benchmark/harness/report.h\"\n"},
      {"tests/engine/a.cc", "#include \"gpu/tree/tree_ref.cuh\"\n"},
      {"benchmark/run.sh", home.c_str()},
  };
  for (const Planted& planted : forbidden) {
    plant(planted.file, planted.text);
    const std::vector<string> found = check_tree(root_);
    CHECK_MESSAGE(found.size() == 1U, planted.file << ": " << planted.text);
    for (const string& violation : found) {
      CHECK_MESSAGE(violation.starts_with(string(planted.file) + ":1: "), violation);
    }
    fs::remove(root_ / planted.file);
  }
}

TEST_CASE_METHOD(PlantedTreeTest, "PlantedTreeTest.NamesTheLine", "[PlantedTreeTest]") {
  plant("engine/a.cc", "#include <vector>\n\n/* two\nlines */\n#include <lmdb.h>\n");
  CHECK(check_tree(root_) == std::vector<string>{"engine/a.cc:5: lmdb.h is not for this room"});
}

}  // namespace
