// A lookup service: loads a file of keys and values once, then answers lines of keys. Any program
// can talk to it through a pipe; behind inetd or socat it serves a network.
//
//   g++ -std=c++20 -O2 lookup_service.cc $(pkg-config --cflags --libs stridedb) -o lookup_service
//   printf 'red\t#ff0000\nblue\t#0000ff\n' > colours.tsv
//   ./lookup_service colours.db colours.tsv       # once: each line is a key, a tab and a value
//   printf 'red\nblue pink\n' | ./lookup_service colours.db
//
// The answer is a line for each key: the key, a tab and its value, or `?` where there is none. Keys
// of one line are looked up in one call, so that a client that has many of them sends long lines.
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "engine/database.h"

namespace {

// Rows of any length, one behind the other, as the library takes them: row i is the bytes from
// offsets[i] up to offsets[i + 1].
class Strings {
 public:
  void add(std::string_view row) {
    data_ += row;
    offsets_.push_back(data_.size());
  }
  uint64_t size() const { return offsets_.size() - 1; }
  // A view: valid until the next add().
  stride::Column column() const {
    return stride::Column::variable(data_.data(), offsets_.data(), size());
  }

 private:
  std::string data_;
  std::vector<uint64_t> offsets_{0};
};

// Ends the program where a call has failed. The text says what to do about it.
void check(const stride::Status& status) {
  if (status.ok()) return;
  std::cerr << status.to_string() << "\n";
  std::exit(1);
}
template <class T>
T take(stride::Result<T> result) {
  check(result.status());
  return std::move(*result);
}

// All rows of the file become visible at once, or none does.
void load(stride::Database& db, const char* path) {
  std::ifstream file(path);
  if (!file) {
    std::cerr << path << ": cannot be read\n";
    std::exit(1);
  }
  Strings keys, values;
  for (std::string line; std::getline(file, line);) {
    size_t tab = line.find('\t');
    if (tab == std::string::npos) {
      std::cerr << path << ":" << keys.size() + 1 << ": there is no tab\n";
      std::exit(1);
    }
    keys.add(std::string_view(line).substr(0, tab));
    values.add(std::string_view(line).substr(tab + 1));
  }
  stride::WriteTransaction t = db.begin();
  stride::Table table = take(t.open_or_create_table("rows"));
  // put_view() copies nothing: keys and values have to stay until commit() has returned.
  check(t.put_view(table, keys.column(), values.column()));
  check(t.commit());
  std::cerr << keys.size() << " rows loaded\n";
}

void answer(std::istream& in, std::ostream& out, const stride::Database& db) {
  const stride::Table table = take(db.open_table("rows"));
  // A snapshot never changes; a service that sees later loads takes a new one now and then.
  const stride::Snapshot now = db.snapshot();
  stride::GetResult found;  // used again for each line, it keeps its memory
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    Strings keys;
    for (std::string key; words >> key;) keys.add(key);
    stride::Column queries = keys.column();
    check(now.get(table, queries, &found));
    for (uint64_t i = 0; i < queries.size; ++i) {
      out << stride::as_text(queries[i]) << "\t"
          << (found.found[i] ? stride::as_text(found.values[i]) : "?") << "\n";
    }
    out.flush();  // the client waits for it
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2 && argc != 3) {
    std::cerr << "usage: " << argv[0] << " DATABASE [FILE-TO-LOAD]\n";
    return 2;
  }
  // One process writes a database; any number of services may read it beside that one.
  const bool loads = argc == 3;
  auto db = take(stride::Database::open(argv[1], {.read_only = !loads}));
  if (loads) {
    load(*db, argv[2]);
  } else {
    answer(std::cin, std::cout, *db);
  }
  check(db->close());
}
