#include "gpu/access_costs.h"

#include <algorithm>
#include <cmath>
#include <sstream>

#include "storage/status.h"

namespace stride {

double AccessCosts::between(const std::array<double, sizes>& at, double bytes) {
  double place = std::log2(std::max(bytes, 1.0) / static_cast<double>(bytes_of(0))) / 2;
  place = std::clamp(place, 0.0, static_cast<double>(sizes - 1));
  auto below = std::min(static_cast<size_t>(place), static_cast<size_t>(sizes - 2));
  double share = place - static_cast<double>(below);
  return at[below] + share * (at[below + 1] - at[below]);
}

void AccessCosts::drop_noise() {
  for (uint32_t i = 0; i < sizes; ++i) {
    if (i > 0) nanoseconds_at[i] = std::max(nanoseconds_at[i], nanoseconds_at[i - 1]);
    latency_at[i] = std::max(latency_at[i], nanoseconds_at[i]);
    if (i > 0) latency_at[i] = std::max(latency_at[i], latency_at[i - 1]);
  }
}

AccessCosts AccessCosts::typical_host(unsigned threads) {
  AccessCosts costs;
  costs.threads = std::max(threads, 1u);
  costs.nanoseconds_at = {1.6, 1.6, 1.7, 2.2, 3.5, 6.0, 9.0, 11.0};
  costs.latency_at = {1.5, 3, 4, 8, 20, 40, 80, 100};
  for (double& x : costs.nanoseconds_at) x /= costs.threads;
  return costs;
}

AccessCosts AccessCosts::typical_device() {
  AccessCosts costs;
  costs.device = true;
  costs.nanoseconds_at = {0.006, 0.006, 0.006, 0.0063, 0.0063, 0.0070, 0.0215, 0.0245};
  costs.latency_at = {250, 250, 250, 250, 280, 350, 600, 650};
  return costs;
}

std::string AccessCosts::to_text() const {
  std::ostringstream text;
  text << (device ? "device" : "host") << ' ' << threads;
  for (double x : nanoseconds_at) text << ' ' << x;
  for (double x : latency_at) text << ' ' << x;
  return text.str();
}

Result<AccessCosts> AccessCosts::parse(const std::string& text) {
  std::istringstream words(text);
  AccessCosts costs;
  std::string side;
  words >> side >> costs.threads;
  costs.device = side == "device";
  bool good = (costs.device || side == "host") && costs.threads > 0;
  auto read = [&](double& x) { good = good && words >> x && x > 0 && x < 1e6; };
  for (double& x : costs.nanoseconds_at) read(x);
  for (double& x : costs.latency_at) read(x);
  std::string rest;
  if (good && !(words >> rest)) return costs;
  return Status::invalid("'" + text.substr(0, 80) + "' is no list of access costs")
      .with_remedy("measure them again");
}

}  // namespace stride
