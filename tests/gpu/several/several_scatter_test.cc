// Sums over several devices beside those of a loop.
#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "tests/gpu/several/several_fixture.h"
#include "tests/support/catch.h"
#include "tests/support/printed_seed.h"

namespace stride::test {
namespace {

template <class T>
std::vector<T> scattered(const std::vector<T>& sources, const std::vector<uint32_t>& targets,
                         std::vector<T> into, ScatterOperation operation) {
  for (size_t i = 0; i < targets.size(); ++i) {
    if (targets[i] >= into.size()) continue;
    T& sum = into[targets[i]];
    if (operation == ScatterOperation::add)
      sum = static_cast<T>(sum + sources[i]);
    else
      sum = operation == ScatterOperation::min ? std::min(sum, sources[i])
                                               : std::max(sum, sources[i]);
  }
  return into;
}

// Columns of small numbers, whose sums are exact in any order.
template <class T>
void expect_scatters(const SeveralDevices& devices, Backend& backend, Random& random) {
  constexpr ScatterOperation operations[] = {ScatterOperation::add, ScatterOperation::min,
                                             ScatterOperation::max};
  for (ScatterOperation operation : operations) {
    for (size_t n : {1, 63, 128, 129, 1000, 20'000}) {
      std::vector<T> sources(n), sums(1 + random() % 50);
      std::vector<uint32_t> targets(n);
      for (T& source : sources) source = static_cast<T>(static_cast<int>(random() % 2000) - 1000);
      for (T& sum : sums) sum = static_cast<T>(static_cast<int>(random() % 2000) - 1000);
      for (uint32_t& target : targets)
        target = static_cast<uint32_t>(random() % (sums.size() + random() % 2));
      const std::vector<T> expected = scattered(sources, targets, sums, operation), before = sums;
      uint64_t missing = 0, first = UINT64_MAX;
      for (size_t i = 0; i < n; ++i)
        if (targets[i] >= sums.size()) {
          ++missing;
          first = std::min<uint64_t>(first, i);
        }
      ScatterReport report;
      const Numbers numbers = Numbers::of(std::span<const T>(sources));
      REQUIRE_OK(backend.scatter().apply(numbers, Indexes::of(targets),
                                         MutableNumbers::of(std::span<T>(sums)),
                                         {.operation = operation}, &report));
      REQUIRE(sums == expected);
      REQUIRE(report.out_of_range == missing);
      REQUIRE(report.first_out_of_range == first);
      sums = before;
      Status status = backend.scatter().apply(
          numbers, Indexes::of(targets), MutableNumbers::of(std::span<T>(sums)),
          {.operation = operation, .out_of_range = OutOfRange::error});
      REQUIRE(status.code() == (missing ? StatusCode::invalid_argument : StatusCode::ok));
      if (missing) {
        CHECK(status.message().find("source " + std::to_string(first) + " ") != std::string::npos);
      }
      REQUIRE(sums == (missing ? before : expected));
      // All columns in the memory of devices.
      auto there = [&](const void* data, uint64_t bytes) {
        auto memory = backend.allocate(bytes);
        REQUIRE_OK(memory);
        REQUIRE_OK(backend.copy((*memory)->data(), data, bytes));
        return std::move(*memory);
      };
      const auto s = there(sources.data(), n * sizeof(T)), r = there(targets.data(), n * 4),
                 t = there(before.data(), before.size() * sizeof(T));
      REQUIRE_OK(backend.scatter().apply({number_type_of<T>(), s->data(), n}, {r->data(), n, 4},
                                         {number_type_of<T>(), t->data(), before.size()},
                                         {.operation = operation}));
      REQUIRE_OK(backend.copy(sums.data(), t->data(), sums.size() * sizeof(T)));
      REQUIRE(sums == expected);
    }
  }
  if (devices.fakes().size() < 2) return;
  uint64_t on_others = 0;
  for (const auto& fake : devices.fakes()) on_others += fake->scatters() > 0;
  CHECK(on_others == devices.size());
}

TEST_CASE_METHOD(SeveralTest, "SeveralScatterTest.AddsOnAll", "[SeveralScatterTest]") {
  Random random(seed());
  expect_scatters<int32_t>(devices_, *backend_, random);
  expect_scatters<int64_t>(devices_, *backend_, random);
  expect_scatters<float>(devices_, *backend_, random);
  expect_scatters<double>(devices_, *backend_, random);
}

// What is added to nothing stays as it is, to the sign of zero.
TEST_CASE_METHOD(SeveralTest, "SeveralScatterTest.SumsWithoutSourcesStay", "[SeveralScatterTest]") {
  const std::vector<uint32_t> targets(1000, 2);
  std::vector<double> sums = {-0.0, 0.0, 1.0, std::numeric_limits<double>::infinity()};
  REQUIRE_OK(backend_->scatter().apply(Numbers::ones(NumberType::f64, targets.size()),
                                       Indexes::of(targets),
                                       MutableNumbers::of(std::span<double>(sums))));
  CHECK((sums[0] == 0 && std::signbit(sums[0])));
  CHECK((sums[1] == 0 && !std::signbit(sums[1])));
  CHECK(sums[2] == 1001);
  CHECK(std::isinf(sums[3]));
}

// All sums are there, or T is as it was.
TEST_CASE_METHOD(SeveralTest, "SeveralScatterTest.AddsWithoutTheDeviceThatFails",
                 "[SeveralScatterTest]") {
  if (devices_.size() < 2) SKIP("one device");
  Random random(seed());
  std::vector<int64_t> sources(5000), sums(20);
  std::vector<uint32_t> targets(sources.size());
  for (size_t i = 0; i < sources.size(); ++i) {
    sources[i] = static_cast<int64_t>(random() >> 16);
    targets[i] = static_cast<uint32_t>(random() % sums.size());
  }
  const auto expected = scattered(sources, targets, sums, ScatterOperation::add);
  for (size_t device = 0; device < devices_.size(); ++device) {
    for (uint64_t call = 1; call < 40; ++call) {
      auto backend = devices_.backend();
      std::fill(sums.begin(), sums.end(), 0);
      devices_.fail_call(device, call, StatusCode::io_error);
      const Status status = backend->scatter().apply(Numbers::of(std::span<const int64_t>(sources)),
                                                     Indexes::of(targets),
                                                     MutableNumbers::of(std::span<int64_t>(sums)));
      const uint64_t calls = devices_.calls(device);
      devices_.work_again();
      // While the sums of all shares are added to T, no other device can go on.
      if (status.ok()) {
        REQUIRE_MESSAGE(sums == expected, "device " << device << ", call " << call);
      } else {
        REQUIRE_MESSAGE(status.code() == StatusCode::io_error, status.to_string());
        REQUIRE(device == 0u);
      }
      CHECK(backend->lost_devices() == (calls >= call ? 1u : 0u));
      if (calls < call) break;
    }
  }
}

}  // namespace
}  // namespace stride::test
