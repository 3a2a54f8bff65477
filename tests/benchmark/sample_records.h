// Small loads for the benchmark's tests.
#pragma once

#include <memory>
#include <random>
#include <string>
#include <vector>

#include "benchmark/datasets/text_source.h"
#include "benchmark/harness/records.h"

namespace stride::test {

// Owns the columns of flows that it is given record by record.
class SampleRecords {
 public:
  explicit SampleRecords(size_t flows) : keys_(flows), values_(flows) {}

  // Keys as numbers: 8 big-endian bytes.
  void add(size_t flow, uint64_t key, std::string_view value) {
    for (int shift = 56; shift >= 0; shift -= 8) {
      keys_[flow].push_back(static_cast<std::byte>(key >> shift));
    }
    values_[flow].add(value);
  }
  benchmark::Records records() const {
    std::vector<benchmark::Flow> flows;
    for (size_t f = 0; f < keys_.size(); ++f) {
      flows.push_back(
          {KeyColumn::fixed(keys_[f].data(), 8, keys_[f].size() / 8), values_[f].view()});
    }
    return benchmark::Records(std::move(flows));
  }

  // Random keys, some of them more than once, with values of up to 60 bytes.
  static SampleRecords random(size_t flows, uint64_t records, uint64_t seed) {
    std::mt19937_64 random(seed);
    SampleRecords sample(flows);
    std::vector<uint64_t> used;
    for (uint64_t i = 0; i < records; ++i) {
      bool again = !used.empty() && random() % 10 == 0;
      uint64_t key = again ? used[random() % used.size()] : random();
      used.push_back(key);
      std::string value(random() % 61, '\0');
      for (char& c : value) c = static_cast<char>(random());
      sample.add(i % flows, key, value);
    }
    return sample;
  }

 private:
  std::vector<std::vector<std::byte>> keys_;
  std::vector<benchmark::TextColumn> values_;
};

}  // namespace stride::test
