// A cache of pages that outlives the program, with counters: each line of standard input is the
// address of a page. What is not there is made (a real one would fetch it) and kept; where there
// are too many pages, the one that was asked for least goes.
//
//   g++ -std=c++20 -O2 page_cache.cc $(pkg-config --cflags --libs stridedb) -o page_cache
//   printf '/news\n/help\n/news\n' | ./page_cache pages.db 100
//
// Every request is a small commit. These are cheap: they go to a log and into memory, and threads
// of the database make sorted files of them later.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <optional>
#include <string>
#include <utility>

#include "engine/database.h"

namespace {

void check(const stride::Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "%s\n", status.to_string().c_str());
  std::exit(1);
}
template <class T>
T take(stride::Result<T> result) {
  check(result.status());
  return std::move(*result);
}

// A row of one, as the calls take them that exist for columns alone.
stride::Column row(const std::string& bytes) {
  return stride::Column::fixed(bytes.data(), static_cast<uint32_t>(bytes.size()), 1);
}

class PageCache {
 public:
  PageCache(stride::Database& db, uint64_t max_pages)
      : db_(db),
        pages_(take(db.open_or_create_table("pages"))),
        requests_(take(db.open_or_create_table("requests", {.numbers = stride::NumberType::i64}))),
        max_pages_(max_pages) {}

  // The page, and whether it was there.
  std::pair<std::string, bool> get(const std::string& address) {
    stride::Snapshot now = db_.snapshot();
    std::optional<stride::Bytes> kept = take(now.get(pages_, address));
    stride::WriteTransaction t = db_.begin();
    check(t.accumulate(requests_, address, 1));  // what others add at the same time counts as well
    if (kept) {
      std::string page(stride::as_text(*kept));
      check(t.commit(durability));
      return {page, true};
    }
    const std::string page = make(address);
    // Where another thread was faster its page stays, and bit 0 of the word is 0.
    uint64_t was_new = 0;
    check(t.put_if_absent(pages_, row(address), row(page), {&was_new, 1}));
    check(t.commit(durability));
    if (was_new & 1) evict(address);
    return {page, false};
  }

  void print_counters() {
    stride::Iterator it = take(db_.snapshot().iterate(requests_));
    for (; it.valid(); it.next()) {
      std::printf("%s\t%lld requests\n", std::string(stride::as_text(it.key())).c_str(),
                  static_cast<long long>(number(it.value())));
    }
    check(it.status());
  }

 private:
  // A cache may lose its last pages when the power fails, but not when the program ends.
  static constexpr stride::Durability durability = stride::Durability::flush;

  static std::string make(const std::string& address) { return "<h1>" + address + "</h1>"; }
  static int64_t number(stride::Bytes value) {
    int64_t n;
    std::memcpy(&n, value.data(), sizeof n);
    return n;
  }

  // Takes out the page with the fewest requests, other than the newest one, and forgets its count:
  // page and counter go together. Looks at all pages, which is fine for thousands.
  void evict(const std::string& newest) {
    stride::Snapshot now = db_.snapshot();
    if (take(now.count(pages_)) <= max_pages_) return;
    std::string least;
    int64_t fewest = INT64_MAX;
    stride::Iterator it = take(now.iterate(pages_));
    for (; it.valid(); it.next()) {
      std::string_view address = stride::as_text(it.key());
      std::optional<stride::Bytes> count = take(now.get(requests_, address));
      int64_t n = count ? number(*count) : 0;
      if (address == newest || n >= fewest) continue;
      fewest = n;
      least = address;
    }
    check(it.status());
    stride::WriteTransaction t = db_.begin();
    check(t.erase(pages_, least));
    check(t.erase(requests_, least));
    check(t.commit(durability));
  }

  stride::Database& db_;
  const stride::Table pages_;
  const stride::Table requests_;  // address -> how often it was asked for
  const uint64_t max_pages_;
};

}  // namespace

int main(int argc, char** argv) {
  const unsigned long max_pages = argc == 3 ? std::strtoul(argv[2], nullptr, 10) : 0;
  if (max_pages == 0) {
    std::fprintf(stderr, "usage: %s DATABASE PAGES < ADDRESSES\n", argv[0]);
    return 2;
  }
  auto db = take(stride::Database::open(argv[1]));
  PageCache cache(*db, max_pages);
  for (std::string address; std::getline(std::cin, address);) {
    auto [page, was_there] = cache.get(address);
    std::printf("%s\t%s\n", was_there ? "hit" : "miss", page.c_str());
  }
  cache.print_counters();
  check(db->close());
}
