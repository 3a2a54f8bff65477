#include "benchmark/datasets/zipf.h"

#include <algorithm>
#include <cmath>

namespace stride::benchmark {
namespace {

double sum_of_terms(uint64_t first, uint64_t past, double theta) {
  double sum = 0;
  for (uint64_t i = first; i < past; ++i) sum += std::pow(static_cast<double>(i), -theta);
  return sum;
}

// What is between the sum and the integral at one of its ends.
double end_correction(double x, double theta) {
  const double f = std::pow(x, -theta);
  const double first = -theta * f / x;
  const double third = -theta * (theta + 1) * (theta + 2) * f / (x * x * x);
  return first / 12 - third / 720;
}

}  // namespace

double zeta(uint64_t n, double theta) {
  constexpr uint64_t exact = 1000;
  if (n <= exact) return sum_of_terms(1, n + 1, theta);
  const double a = exact, b = static_cast<double>(n);
  const double integral = (std::pow(b, 1 - theta) - std::pow(a, 1 - theta)) / (1 - theta);
  const double ends = (std::pow(a, -theta) + std::pow(b, -theta)) / 2;
  // The first of the tail's terms is the last of the exact ones.
  return sum_of_terms(1, exact, theta) + integral + ends + end_correction(b, theta) -
         end_correction(a, theta);
}

ZipfRanks::ZipfRanks(uint64_t n, double theta)
    : n_(n),
      theta_(theta),
      alpha_(1 / (1 - theta)),
      zeta_of_2_(zeta(2, theta)),
      zeta_of_n_(zeta(n, theta)) {
  find_eta();
}

void ZipfRanks::find_eta() {
  const double n = static_cast<double>(n_);
  // With two ranks or fewer it is never used.
  if (n_ > 2) eta_ = (1 - std::pow(2 / n, 1 - theta_)) / (1 - zeta_of_2_ / zeta_of_n_);
}

void ZipfRanks::grow(uint64_t n) {
  if (n <= n_) return;
  zeta_of_n_ = n - n_ < 100 ? zeta_of_n_ + sum_of_terms(n_ + 1, n + 1, theta_) : zeta(n, theta_);
  n_ = n;
  find_eta();
}

uint64_t ZipfRanks::operator[](uint64_t random_bits) const {
  const double u = share_of_one(random_bits), of_zeta = u * zeta_of_n_;
  if (of_zeta < 1 || n_ == 1) return 0;
  if (of_zeta < zeta_of_2_ || n_ == 2) return 1;
  const double rank = static_cast<double>(n_) * std::pow(eta_ * u - eta_ + 1, alpha_);
  return std::min(static_cast<uint64_t>(rank), n_ - 1);
}

}  // namespace stride::benchmark
