#include "benchmark/harness/report.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "benchmark/harness/text_table.h"

namespace stride::benchmark {
namespace {

template <class Name>
std::vector<std::string> distinct(const std::vector<ResultRow>& rows, Name name) {
  std::vector<std::string> names;
  for (const ResultRow& row : rows) {
    if (std::find(names.begin(), names.end(), name(row)) == names.end()) {
      names.push_back(name(row));
    }
  }
  return names;
}

const ResultRow* find_row(const std::vector<ResultRow>& rows, const std::string& engine_name,
                          const std::string& phase) {
  for (const ResultRow& row : rows) {
    if (row.engine_name() == engine_name && row.phase == phase) return &row;
  }
  return nullptr;
}

// The fastest of the rows that `wanted` accepts, or null.
template <class Wanted>
const ResultRow* fastest(const std::vector<ResultRow>& rows, const std::string& phase,
                         Wanted wanted) {
  const ResultRow* best = nullptr;
  for (const ResultRow& row : rows) {
    if (row.phase != phase || !wanted(row)) continue;
    if (best == nullptr || row.records_per_second() > best->records_per_second()) best = &row;
  }
  return best;
}

// Phases with a rate: opening a database has none.
std::vector<std::string> rated_phases(const std::vector<ResultRow>& rows) {
  std::vector<std::string> phases = distinct(rows, [](const ResultRow& r) { return r.phase; });
  std::erase(phases, "open");
  return phases;
}

std::string ratio(double over, double under) {
  return under > 0 ? three_digits(over / under) : "-";
}

bool is_peer(const ResultRow& row) { return row.engine != "stride" && row.is_database; }

// A rate, marked where it is the best of the peers.
std::string rate_cell(const std::vector<ResultRow>& rows, const ResultRow* row) {
  if (row == nullptr) return "-";
  bool best = row == fastest(rows, row->phase, is_peer);
  return three_digits(row->records_per_second() / 1e6) + (best ? "*" : "");
}

void add_rates(const std::vector<ResultRow>& rows, TextTable* table) {
  std::vector<std::string> header = {"M records a second"};
  for (const std::string& phase : rated_phases(rows)) header.push_back(phase_title(phase));
  for (const char* title : {"open ms", "size/raw", "memory/raw"}) header.push_back(title);
  table->add(header);
  table->add_rule();
  for (const std::string& name :
       distinct(rows, [](const ResultRow& r) { return r.engine_name(); })) {
    std::vector<std::string> cells = {name};
    for (const std::string& phase : rated_phases(rows)) {
      cells.push_back(rate_cell(rows, find_row(rows, name, phase)));
    }
    const ResultRow* open = find_row(rows, name, "open");
    const ResultRow* write = find_row(rows, name, "write");
    if (write == nullptr) write = find_row(rows, name, "load");
    cells.push_back(open ? three_digits(open->seconds * 1e3) : "-");
    double raw = write ? static_cast<double>(write->raw_bytes) : 0;
    // A limit of the machine stores nothing.
    bool stores = write && (write->bytes_on_disk || write->peak_rss_bytes);
    cells.push_back(stores ? ratio(static_cast<double>(write->bytes_on_disk), raw) : "-");
    cells.push_back(stores ? ratio(static_cast<double>(write->peak_rss_bytes), raw) : "-");
    table->add(cells);
  }
}

// One line of ratios of StrideDB's fastest configuration to the fastest row that `wanted` accepts.
template <class Wanted>
void add_ratio(const std::vector<ResultRow>& rows, const std::string& title, TextTable* table,
               Wanted wanted) {
  std::vector<std::string> ratios = {title};
  for (const std::string& phase : rated_phases(rows)) {
    const ResultRow* ours =
        fastest(rows, phase, [](const ResultRow& r) { return r.engine == "stride"; });
    const ResultRow* peer = fastest(rows, phase, wanted);
    bool both = ours != nullptr && peer != nullptr;
    ratios.push_back(both ? ratio(ours->records_per_second(), peer->records_per_second()) + "x"
                          : "-");
  }
  table->add(ratios);
}

void add_limits(const std::vector<ResultRow>& rows, TextTable* table) {
  auto limited = [](const ResultRow& r) {
    return r.engine == "stride" && r.numbers.contains("limit_percent");
  };
  if (std::none_of(rows.begin(), rows.end(), limited)) return;
  std::vector<std::string> percentages = {"stride, % of the limit"}, names = {"which is"};
  for (const std::string& phase : rated_phases(rows)) {
    const ResultRow* ours = fastest(rows, phase, limited);
    percentages.push_back(ours ? three_digits(ours->numbers.at("limit_percent")) : "-");
    names.push_back(ours ? ours->texts.at("limit") : "-");
  }
  table->add_rule();
  table->add(percentages);
  table->add(names);
}

void add_ratios(const std::vector<ResultRow>& rows, TextTable* table) {
  bool with_ours = std::any_of(rows.begin(), rows.end(),
                               [](const ResultRow& r) { return r.engine == "stride"; });
  if (!with_ours || std::none_of(rows.begin(), rows.end(), is_peer)) return;
  table->add_rule();
  add_ratio(rows, "stride to the best peer", table, is_peer);
  for (const std::string& engine : distinct(rows, [](const ResultRow& r) { return r.engine; })) {
    auto defaults = [&](const ResultRow& r) {
      return is_peer(r) && r.engine == engine && r.configuration == "defaults";
    };
    if (std::any_of(rows.begin(), rows.end(), defaults)) {
      add_ratio(rows, "stride to " + engine + ":defaults", table, defaults);
    }
  }
}

nlohmann::ordered_json row_to_json(const ResultRow& row) {
  nlohmann::ordered_json json = {
      {"workload", row.workload},
      {"engine", row.engine},
      {"configuration", row.configuration},
      {"backend", row.backend},
      {"phase", row.phase},
      {"records", row.records},
      {"seconds", row.seconds},
      {"records_per_second", row.records_per_second()},
      {"bytes_on_disk", row.bytes_on_disk},
      {"peak_rss_bytes", row.peak_rss_bytes},
      {"raw_bytes", row.raw_bytes},
      {"machine", row.machine},
  };
  for (const auto& [name, value] : row.numbers) {
    if (value == std::floor(value) && std::abs(value) < 1e15) {
      json[name] = static_cast<int64_t>(value);
    } else {
      json[name] = value;
    }
  }
  for (const auto& [name, value] : row.texts) json[name] = value;
  return json;
}

}  // namespace

std::string phase_title(const std::string& phase) {
  std::string title = phase;
  // The name of a named lookup says enough.
  if (title.starts_with("lookup_") && title.find_first_of("0123456789") != 7) title.erase(0, 7);
  std::replace(title.begin(), title.end(), '_', ' ');
  return title;
}

std::vector<ResultRow> medians(const std::vector<ResultRow>& rows) {
  std::vector<ResultRow> chosen;
  std::set<std::string> done;
  for (const ResultRow& row : rows) {
    if (!done.insert(row.engine_name() + " " + row.phase).second) continue;
    std::vector<ResultRow> same;
    for (const ResultRow& other : rows) {
      if (other.engine_name() == row.engine_name() && other.phase == row.phase) {
        same.push_back(other);
      }
    }
    auto middle = same.begin() + static_cast<std::ptrdiff_t>((same.size() - 1) / 2);
    std::nth_element(same.begin(), middle, same.end(), [](const ResultRow& a, const ResultRow& b) {
      return a.records_per_second() < b.records_per_second();
    });
    chosen.push_back(*middle);
    chosen.back().numbers["repeats"] = static_cast<double>(same.size());
  }
  return chosen;
}

std::string to_json(const std::vector<ResultRow>& rows) {
  std::string text = "[";
  for (const ResultRow& row : rows) {
    text += (text.size() > 1 ? ",\n" : "\n") + row_to_json(row).dump();
  }
  return text + "\n]\n";
}

Status write_text_file(const std::string& path, const std::string& text) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out << text;
  out.close();
  return out ? Status() : Status::from_errno(errno, "write", path);
}

Status write_json(const std::string& path, const std::vector<ResultRow>& rows) {
  return write_text_file(path, to_json(rows));
}

std::string comparison(const std::vector<ResultRow>& rows) {
  TextTable table;
  add_rates(rows, &table);
  add_ratios(rows, &table);
  add_limits(rows, &table);
  bool with_peers = std::any_of(rows.begin(), rows.end(), is_peer);
  return table.to_string() + (with_peers ? "* the best peer of the column\n" : "") +
         "open: after closing; size: of the files; memory: the most that writing took; "
         "raw: of all keys and values\n";
}

}  // namespace stride::benchmark
