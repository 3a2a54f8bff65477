// Databases on a device, a fake one or a real one, beside the host's answers.
#pragma once

#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "gpu/device/device_faults.h"
#include "tests/support/catch.h"
#include "tests/support/fake_device.h"
#include "tests/support/model.h"
#include "tests/support/printed_seed.h"
#include "tests/support/sanitizers.h"

namespace stride::test {

inline constexpr uint64_t all_memory = uint64_t{1} << 40;
// More than a device begins at.
inline constexpr uint64_t many_queries = smaller_under_sanitizers(1500, 600);

// What the tests vary.
struct Setting {
  const char* name;
  bool real;
  ValuePlacement values;
  uint64_t memory;  // of a fake device
};

inline constexpr ValuePlacement on_host = ValuePlacement::host, on_device = ValuePlacement::device;

class ResidencyTest {
 protected:
  const Setting setting_ = GENERATE(Setting{"fake", false, on_host, all_memory},
                                    Setting{"fake_values", false, on_device, all_memory},
                                    Setting{"fake_small", false, on_host, 100'000},
                                    Setting{"fake_small_values", false, on_device, 160'000},
                                    Setting{"fake_none", false, on_device, 0},
                                    Setting{"cuda", true, on_host, all_memory},
                                    Setting{"cuda_values", true, on_device, all_memory});
  RunsWith name_{setting_.name};

  ResidencyTest() {
    if (setting_.real) {
      auto device = Backend::cuda({.host_threads = 2});
      if (!device.ok()) SKIP(device.status().to_string());
      device_ = std::move(*device);
    } else {
      fake_ = std::make_shared<FakeDevice>(setting_.memory);
      device_ = fake_;
    }
  }
  ~ResidencyTest() { DeviceFaults::clear(); }

  std::unique_ptr<Database> open(const std::string& path) {
    Options options;
    options.shared_backend = device_;
    options.value_placement = setting_.values;
    options.durability = Durability::none;
    auto db = Database::open(path, options);
    CHECK_OK(db);
    return db.ok() ? std::move(*db) : nullptr;
  }
  // The n-th call to the device fails.
  void fail_call(uint64_t n, StatusCode code) {
    if (fake_) {
      fake_->fail_call(n, code);
    } else {
      DeviceFaults::fail_call(
          n, code == StatusCode::io_error ? DeviceFault::lost : DeviceFault::out_of_memory);
    }
  }
  void work_again() {
    if (fake_) fake_->fail_call(0, StatusCode::io_error);
    DeviceFaults::clear();
  }
  uint64_t calls() const { return fake_ ? fake_->calls() : DeviceFaults::calls(); }

  std::shared_ptr<FakeDevice> fake_;
  std::shared_ptr<Backend> device_;
  TemporaryDirectory directory_;
};

inline std::string random_key(std::mt19937_64& random, uint32_t width) {
  uint64_t n = random() % 9000;
  std::string key = std::to_string(n * 7919 % 9000);
  if (width) key = std::string(width - std::min<size_t>(width, key.size()), '0') + key;
  return width ? key.substr(0, width) : key + std::string(n % 13, 'x');
}

inline std::string random_value(std::mt19937_64& random, bool fixed) {
  return std::string(fixed ? 12 : random() % 40, static_cast<char>('a' + random() % 26));
}

// Some thousand changes in one commit.
inline Status change(Database& db, const Table& table, std::mt19937_64& random, bool fixed,
                     Model* model) {
  WriteTransaction t = db.begin();
  Model after = *model;
  std::vector<std::string> puts, values, erased;
  for (uint64_t i = 500 + random() % smaller_under_sanitizers(3000, 1000); i > 0; --i) {
    std::string key = random_key(random, table.key_width());
    if (random() % 5 == 0) {
      erased.push_back(key);
      after.erase(key);
    } else {
      puts.push_back(key);
      values.push_back(random_value(random, fixed));
    }
  }
  for (size_t i = 0; i < puts.size(); ++i) after[puts[i]] = values[i];
  STRIDE_TRY(t.erase(table, Rows(erased).column()));
  STRIDE_TRY(t.put(table, Rows(puts).column(), Rows(values).column()));
  Status s = t.commit();
  if (s.ok()) *model = std::move(after);
  return s;
}

inline std::vector<std::string> random_queries(std::mt19937_64& random, uint32_t width) {
  std::vector<std::string> queries;
  for (uint64_t i = 0; i < many_queries; ++i) queries.push_back(random_key(random, width));
  queries[7] = "";
  queries[8] = std::string(300, 'z');
  return queries;
}

}  // namespace stride::test
