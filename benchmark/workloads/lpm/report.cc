#include "benchmark/workloads/lpm/report.h"

#include <algorithm>

#include "benchmark/harness/arguments.h"
#include "benchmark/harness/text_table.h"

namespace stride::benchmark {
namespace {

const std::string& table_of(const ResultRow& row) { return row.texts.at("table"); }

// What stands in `list` already is not added again.
void add_once(const std::string& text, std::vector<std::string>* list) {
  if (std::find(list->begin(), list->end(), text) == list->end()) list->push_back(text);
}

// The rows of one table of prefixes.
class Lines {
 public:
  Lines(const std::vector<ResultRow>& rows, const std::string& table) {
    for (const ResultRow& row : rows) {
      if (table_of(row) != table) continue;
      rows_.push_back(&row);
      add_once(row.engine_name(), &engines_);
      bool alone = row.phase.starts_with("match_") && row.phase != "match_alone" &&
                   row.phase != "match_meanwhile";
      if (alone) add_once(row.phase, &matches_);
    }
  }
  const std::vector<std::string>& engines() const { return engines_; }
  const std::vector<std::string>& matches() const { return matches_; }
  const ResultRow& any() const { return *rows_[0]; }
  // Null: there is none.
  const ResultRow* find(const std::string& engine, const std::string& phase) const {
    auto row = std::find_if(rows_.begin(), rows_.end(), [&](const ResultRow* r) {
      return r->engine_name() == engine && r->phase == phase;
    });
    return row == rows_.end() ? nullptr : *row;
  }
  // Records a second; 0: there is no such row.
  double rate(const std::string& engine, const std::string& phase) const {
    const ResultRow* row = find(engine, phase);
    return row ? row->records_per_second() : 0;
  }

 private:
  std::vector<const ResultRow*> rows_;
  std::vector<std::string> engines_, matches_;
};

constexpr const char* one_core = "stride:1 thread";
constexpr const char* plain_core = "binary search:1 thread";
constexpr const char* database = "stride:database";
constexpr const char* on_device = "stride:device memory";
constexpr const char* pinned = "stride:pinned memory";

std::string rates(const Lines& lines) {
  TextTable table;
  std::vector<std::string> header = {"M addresses a second"};
  for (const std::string& phase : lines.matches()) header.push_back(phase_title(phase));
  header.insert(header.end(), {"build or load ms", "bytes a prefix"});
  table.add(header);
  table.add_rule();
  for (const std::string& engine : lines.engines()) {
    std::vector<std::string> cells = {engine};
    for (const std::string& phase : lines.matches()) {
      double rate = lines.rate(engine, phase);
      cells.push_back(rate > 0 ? three_digits(rate / 1e6) : "-");
    }
    const ResultRow* build = lines.find(engine, "build");
    const ResultRow* made = build ? build : lines.find(engine, "load");
    cells.push_back(made ? three_digits(made->seconds * 1e3) : "-");
    cells.push_back(build ? three_digits(build->numbers.at("bytes_per_prefix")) : "-");
    table.add(cells);
  }
  return table.to_string();
}

// Nothing where no device has been measured. add(what, wanted, reached, whether that is enough).
template <class Add>
void add_device_goals(const Lines& lines, const Add& add) {
  constexpr double max_build_ms = 5;  // of 1M prefixes
  constexpr double min_of_bus = 0.95;
  bool ipv4 = table_of(lines.any()) == "ipv4";
  for (const std::string& phase : lines.matches()) {
    double rate = lines.rate(on_device, phase);
    double wanted = phase == "match_uniform" ? 60e9 : ipv4 ? 50e9 : 22e9;
    if (rate > 0) {
      add(phase_title(phase) + " on the device, G a second", three_digits(wanted / 1e9), rate / 1e9,
          rate >= wanted);
    }
    if (const ResultRow* row = lines.find(pinned, phase)) {
      double share = row->records_per_second() / row->numbers.at("bus_addresses_per_second");
      add("  from and to pinned memory, of the bus", three_digits(min_of_bus), share,
          share >= min_of_bus);
    }
  }
  if (const ResultRow* build = lines.find(on_device, "build")) {
    // Small builds are mostly fixed costs, and say nothing of large ones.
    constexpr uint64_t min_records = 500'000;
    double ms = build->seconds * 1e3, millions = static_cast<double>(build->records) / 1e6;
    if (build->records >= min_records) {
      add("build of 1M prefixes, ms on the device", three_digits(max_build_ms), ms / millions,
          ms / millions <= max_build_ms);
    }
  }
}

std::string goals(const Lines& lines) {
  constexpr double min_ipv4 = 150e6, min_ipv6 = 100e6;  // addresses a second and core
  constexpr double max_build_ms = 150;                  // of 1M prefixes, on 2 cores
  constexpr double max_bytes = 10;
  constexpr double min_updates = 100e3, min_share = 0.5;
  TextTable table;
  table.add({"goal", "wanted", "reached", ""});
  table.add_rule();
  auto add = [&](const std::string& what, const std::string& wanted, double reached, bool met) {
    table.add({what, wanted, three_digits(reached), met ? "met" : "not met"});
  };
  double wanted = table_of(lines.any()) == "ipv4" ? min_ipv4 : min_ipv6;
  for (const std::string& phase : lines.matches()) {
    double rate = lines.rate(one_core, phase), plain = lines.rate(plain_core, phase);
    if (rate <= 0) continue;
    add(phase_title(phase) + ", M a second and core", three_digits(wanted / 1e6), rate / 1e6,
        rate >= wanted);
    if (plain > 0) table.add({"  times the binary search", "", three_digits(rate / plain), ""});
  }
  if (const ResultRow* build = lines.find(one_core, "build")) {
    double ms = build->seconds * 1e3 * 1e6 / static_cast<double>(build->records);
    add("build of 1M prefixes, ms on one core", three_digits(max_build_ms), ms, ms <= max_build_ms);
    double bytes = build->numbers.at("bytes_per_prefix");
    add("bytes a prefix", three_digits(max_bytes), bytes, bytes <= max_bytes);
  }
  add_device_goals(lines, add);
  double updates = lines.rate(database, "update");
  if (updates > 0) {
    double share = lines.rate(database, "match_meanwhile") / lines.rate(database, "match_alone");
    add("updates a second", with_commas(static_cast<uint64_t>(min_updates)), updates,
        updates >= 0.99 * min_updates);
    add("  matches meanwhile, of those without", three_digits(min_share), share,
        share >= min_share);
  }
  return table.to_string();
}

}  // namespace

std::string lpm_tables(const std::vector<ResultRow>& rows) {
  std::vector<std::string> tables;
  for (const ResultRow& row : rows) add_once(table_of(row), &tables);
  std::string text;
  for (const std::string& table : tables) {
    Lines lines(rows, table);
    auto number = [&](const char* name) {
      return with_commas(static_cast<uint64_t>(lines.any().numbers.at(name)));
    };
    text += table + ": " + number("prefixes") + " prefixes, " + number("boundaries") +
            " intervals\n" + rates(lines) + "\n" + goals(lines) + "\n";
  }
  return text +
         "threads: the index alone, ranks as results; device, pinned and host memory: the same\n"
         "with a device, for addresses and ranks that lie there; database: Snapshot::match() with\n"
         "all threads, references and lengths as results, and the commit that loads all prefixes\n";
}

std::vector<ResultRow> lpm_plot_rows(const std::vector<ResultRow>& rows) {
  std::vector<ResultRow> plot;
  for (ResultRow row : rows) {
    if (!row.phase.starts_with("match_")) continue;
    row.phase = table_of(row) + " " + row.phase.substr(std::string("match_").size());
    plot.push_back(std::move(row));
  }
  return plot;
}

}  // namespace stride::benchmark
