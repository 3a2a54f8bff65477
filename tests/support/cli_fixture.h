// Runs stride as a person does, and keeps what it prints.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "adapters/cli/command_line.h"
#include "engine/database.h"
#include "tests/support/catch.h"

namespace stride::cli {

// An unnamed file that a command reads or writes.
class MemoryFile {
 public:
  explicit MemoryFile(const std::string& content = "") : fd_(memfd_create("stride-test", 0)) {
    if (::write(fd_, content.data(), content.size()) != static_cast<ssize_t>(content.size()))
      abort();
    lseek(fd_, 0, SEEK_SET);
  }
  ~MemoryFile() { ::close(fd_); }
  int fd() const { return fd_; }
  std::string text() const {
    std::string text(static_cast<size_t>(lseek(fd_, 0, SEEK_END)), '\0');
    if (pread(fd_, text.data(), text.size(), 0) != static_cast<ssize_t>(text.size())) abort();
    return text;
  }

 private:
  int fd_;
};

class CliFixture {
 protected:
  CliFixture() {
    std::string name = std::filesystem::temp_directory_path().string() + "/stride-cli-XXXXXX";
    if (mkdtemp(name.data()) == nullptr) abort();
    directory_ = name;
    database_ = directory_ + "/db";
  }
  ~CliFixture() { std::filesystem::remove_all(directory_); }

  // The exit code; what was printed is in out_ and error_.
  int run(const std::vector<std::string>& arguments, const std::string& input = "") {
    std::vector<const char*> argv = {"stride"};
    for (const std::string& argument : arguments) argv.push_back(argument.c_str());
    MemoryFile in(input), out, error;
    int code = cli::run(static_cast<int>(argv.size()), argv.data(),
                        {.in = in.fd(),
                         .out = out.fd(),
                         .err = error.fd(),
                         .file_system = files_,
                         .meminfo = meminfo_});
    out_ = out.text();
    error_ = error.text();
    return code;
  }
  // load DB t FILE, and then these.
  int load(const std::string& file, const std::vector<std::string>& options = {},
           const std::string& table = "t") {
    std::vector<std::string> all = {"load", database_, table, file};
    all.insert(all.end(), options.begin(), options.end());
    return run(all);
  }
  std::string scan(const std::vector<std::string>& options = {}, const std::string& table = "t") {
    std::vector<std::string> all = {"scan", database_, table};
    all.insert(all.end(), options.begin(), options.end());
    CHECK_MESSAGE(run(all) == 0, error_);
    return out_;
  }

  std::string file(const std::string& name, const std::string& content) {
    std::string path = directory_ + "/" + name;
    std::ofstream(path, std::ios::binary) << content;
    return path;
  }
  static std::string read(const std::string& path) {
    std::stringstream text;
    text << std::ifstream(path, std::ios::binary).rdbuf();
    return text.str();
  }
  // Names and sizes of the database's files, but for the lock: equal before and after what must not
  // change it.
  std::map<std::string, uint64_t> state() const {
    std::map<std::string, uint64_t> files;
    if (!std::filesystem::exists(database_)) return files;
    for (const auto& entry : std::filesystem::directory_iterator(database_))
      if (entry.path().filename() != "LOCK") files[entry.path().filename()] = entry.file_size();
    return files;
  }
  void expect_error(int code, const std::string& message) {
    CHECK_MESSAGE(code_ == code, error_);
    CHECK_MESSAGE(error_.find(message) != std::string::npos, error_);
  }
  // A command that fails in this way, prints no data and leaves the database as it was.
  void expect_refused(const std::vector<std::string>& arguments, int code,
                      const std::string& message, const std::string& input = "") {
    auto before = state();
    code_ = run(arguments, input);
    expect_error(code, message);
    CHECK(out_ == "");
    CHECK_MESSAGE(state() == before, message);
  }
  void expect_load_refused(const std::string& file, const std::vector<std::string>& options,
                           int code, const std::string& message) {
    std::vector<std::string> all = {"load", database_, "t", file};
    all.insert(all.end(), options.begin(), options.end());
    expect_refused(all, code, message);
  }

  std::string directory_, database_;
  std::string out_, error_;
  int code_ = 0;
  FileSystem* files_ = nullptr;
  std::string meminfo_ = "/proc/meminfo";
};

inline std::string gzip(const std::string& text) {
  z_stream stream{};
  deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
  std::string packed(deflateBound(&stream, text.size()) + 32, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  deflate(&stream, Z_FINISH);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

inline std::string zstd(const std::string& text) {
  std::string packed(ZSTD_compressBound(text.size()), '\0');
  packed.resize(ZSTD_compress(packed.data(), packed.size(), text.data(), text.size(), 3));
  return packed;
}

}  // namespace stride::cli
